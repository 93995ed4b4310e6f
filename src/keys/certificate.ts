import { childrenOf, readElement, readElements, DER, type Element } from './der.ts';

/*
 * Owns the form of an X.509 certificate (RFC 5280, 4.1), as strict as Go's x509.ParseCertificate.
 * OpenSSL, which also reads it, accepts negative serial numbers and bytes after the certificate.
 */

/** Explains in Go's words why bytes are not a certificate in DER. */
export function findCertificateFault(bytes: Buffer): string | undefined {
  const outer = readElement(bytes);
  if (outer?.tag === DER.sequence && outer.whole.length < bytes.length)
    return 'x509: trailing data';
  const [signed, algorithm, signature, ...more] = childrenOf(outer);
  if (!hasTags([signed, algorithm, signature], [DER.sequence, DER.sequence, DER.bitString]))
    return 'x509: malformed certificate';
  if (more.length > 0 || (signature?.content[0] ?? 8) > 7) return 'x509: malformed signature';
  return judgeSigned(childrenOf(signed), algorithm);
}

const hasTags = (elements: readonly (Element | undefined)[], tags: readonly number[]): boolean =>
  elements.length === tags.length && elements.every((each, at) => each?.tag === tags[at]);

function judgeSigned(elements: readonly Element[], algorithm?: Element): string | undefined {
  const hasVersion = elements[0]?.tag === VERSION;
  const version = hasVersion ? readVersion(elements[0]) : 1;
  const [serial, inner, ...others] = hasVersion ? elements.slice(1) : elements;
  if (version < 1 || version > 3) return 'x509: invalid version';
  return (
    judgeSerial(serial) ??
    judgeAlgorithms(inner, algorithm) ??
    judgeNames(others) ??
    (version === 3 ? judgeExtensions(others.slice(4)) : undefined)
  );
}

const judgeAlgorithms = (inner?: Element, outer?: Element): string | undefined =>
  outer && inner?.whole.equals(outer.whole) === true
    ? undefined
    : "x509: inner and outer signature algorithm identifiers don't match";

/** Context-specific tags of TBSCertificate. */
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;

/** The version that people say, which is one more than the number; 0 if it is malformed. */
function readVersion(element: Element | undefined): number {
  const [number, ...more] = (element && readElements(element.content)) ?? [];
  const isNumber = number?.tag === DER.integer && number.content.length === 1 && more.length === 0;
  return isNumber ? (number.content[0] ?? 255) + 1 : 0;
}

const MALFORMED_SERIAL = 'x509: malformed serial number';

/** X.690, 8.3.2: the first nine bits are not all the same. */
function judgeSerial(serial: Element | undefined): string | undefined {
  const bytes = serial?.tag === DER.integer ? serial.content : Buffer.of();
  const isLong = bytes.length > 1 && [0, 0x1ff].includes(bytes.readUInt16BE(0) >> 7);
  if (bytes.length === 0 || isLong) return MALFORMED_SERIAL;
  return bytes.readInt8(0) < 0 ? 'x509: negative serial number' : undefined;
}

const NAMES = [
  ['issuer', DER.sequence],
  ['validity', DER.sequence],
  ['subject', DER.sequence],
  ['spki', DER.sequence],
] as const;

function judgeNames(elements: readonly Element[]): string | undefined {
  const wrong = NAMES.find(([, tag], at) => elements[at]?.tag !== tag);
  if (wrong) return `x509: malformed ${wrong[0]}`;
  const times = childrenOf(elements[1]);
  if (times.length !== 2 || !times.every(isTime)) return 'x509: malformed validity';
  return isKey(childrenOf(elements[3])) ? undefined : 'x509: invalid RSA public key';
}

/** rsaEncryption (RFC 8017, A.1). */
const RSA = '2a864886f70d010101';

/** False for an RSA key whose modulus or exponent is not positive; other keys are not judged. */
function isKey([algorithm, key]: readonly Element[]): boolean {
  if (childrenOf(algorithm)[0]?.content.toString('hex') !== RSA) return true;
  const numbers = childrenOf(readElement(key?.content.subarray(1) ?? Buffer.of()));
  return (
    hasTags(numbers, [DER.integer, DER.integer]) &&
    numbers.every(({ content }) => content.length > 0 && content.readInt8(0) >= 0)
  );
}

/** RFC 5280, 4.1.2.5: Greenwich time with seconds. */
const isTime = ({ tag, content }: Element): boolean =>
  (tag === DER.utcTime && /^\d{12}Z$/.test(content.toString('latin1'))) ||
  (tag === DER.generalizedTime && /^\d{14}Z$/.test(content.toString('latin1')));

function judgeExtensions(elements: readonly Element[]): string | undefined {
  const holder = elements.find(({ tag }) => tag === EXTENSIONS);
  if (holder === undefined) return undefined;
  const list = readElements(holder.content) ?? [];
  if (!hasTags(list, [DER.sequence])) return 'x509: malformed extensions';
  const names = childrenOf(list[0]).map(nameExtension);
  if (names.length === 0 || names.includes(undefined)) return 'x509: malformed extension';
  return new Set(names).size < names.length
    ? 'x509: certificate contains duplicate extensions'
    : undefined;
}

/** The object identifier of an extension, in hexadecimal digits; undefined if it is malformed. */
function nameExtension(extension: Element): string | undefined {
  const parts = childrenOf(extension);
  const isWhole =
    hasTags(parts, [DER.oid, DER.octetString]) ||
    hasTags(parts, [DER.oid, DER.boolean, DER.octetString]);
  return isWhole ? parts[0]?.content.toString('hex') : undefined;
}
