import { createHash, createPublicKey, sign, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

/* Owns the encoding and signing of certificates in DER, and the reading of their validity. */

/** A subject; its organization or unit comes before its common name. */
export type Subject = {
  readonly commonName: string;
  readonly organization?: string;
  readonly organizationalUnit?: string;
};

export type CertificateTerms = {
  readonly subject: Subject;
  readonly publicKey: KeyObject;
  /** 8 random bytes, which decide the serial number. */
  readonly serial: Uint8Array;
  /** Seconds since 1970. */
  readonly notBefore: number;
  /** Seconds since 1970; the certificate is still valid in this second. */
  readonly notAfter: number;
};

export type Issuer = { readonly subject: Subject; readonly privateKey: KeyObject };

/** Milliseconds since 1970. */
export type Validity = { readonly notBefore: number; readonly notAfter: number };

type Element = { readonly tag: number; readonly start: number; readonly end: number };

/** Tags of ASN.1's Distinguished Encoding Rules (X.690) that certificates need. */
const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

export const encodeSequence = (...parts: readonly Uint8Array[]): Buffer =>
  encodeElement(TAG.sequence, parts);

export const encodeSet = (...parts: readonly Uint8Array[]): Buffer => encodeElement(TAG.set, parts);

const encodeOctets = (bytes: Uint8Array): Buffer => encodeElement(TAG.octetString, [bytes]);

export const encodeNull = (): Buffer => encodeElement(TAG.null, []);

/** The value `true`: `false` is a default everywhere in certificates, and defaults are left out. */
export const encodeTrue = (): Buffer => encodeElement(TAG.boolean, [Uint8Array.of(0xff)]);

/** `[number]` around a whole element. */
export const encodeExplicit = (number: number, part: Uint8Array): Buffer =>
  encodeElement(0xa0 | number, [part]);

/** `[number]` in place of a primitive element's own tag. */
const encodeImplicit = (number: number, bytes: Uint8Array): Buffer =>
  encodeElement(0x80 | number, [bytes]);

/** Bits, starting with the highest bit of the first byte; the last `unused` bits are padding. */
export const encodeBits = (bytes: Uint8Array, unused = 0): Buffer =>
  encodeElement(TAG.bitString, [Uint8Array.of(unused), bytes]);

/** A number that is not negative. */
export function encodeInteger(value: bigint): Buffer {
  const digits = value.toString(16);
  const bytes = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
  const isHigh = (bytes[0] ?? 0) >= 0x80;
  return encodeElement(TAG.integer, isHigh ? [Uint8Array.of(0), bytes] : [bytes]);
}

export function encodeOid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return encodeElement(TAG.objectIdentifier, [Uint8Array.from(bytes)]);
}

/** X.680 41.4: the characters that a PrintableString may hold. */
const PRINTABLE = /^[A-Za-z0-9 '()+,\-./:=?]*$/;

/** A PrintableString if it can hold the text, else a UTF8String: the choice of Go's encoder. */
export const encodeText = (text: string): Buffer =>
  encodeElement(PRINTABLE.test(text) ? TAG.printableString : TAG.utf8String, [Buffer.from(text)]);

/** RFC 5280 4.1.2.5: from 2050 on, dates have years of four digits. */
const FIRST_GENERALIZED_YEAR = 2050;

/** A time in seconds since 1970: UTCTime until 2049, GeneralizedTime from 2050 on. */
export function encodeTime(seconds: number): Buffer {
  const date = new Date(seconds * 1000);
  const digits = `${date.toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`;
  return date.getUTCFullYear() < FIRST_GENERALIZED_YEAR
    ? encodeElement(TAG.utcTime, [Buffer.from(digits.slice(2))])
    : encodeElement(TAG.generalizedTime, [Buffer.from(digits)]);
}

function encodeElement(tag: number, parts: readonly Uint8Array[]): Buffer {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Uint8Array.of(tag, ...encodeSize(size)), ...parts]);
}

/** X.690 8.1.3: the size itself if it is below 128, else the number of its bytes, then these bytes. */
function encodeSize(size: number): readonly number[] {
  if (size < 0x80) return [size];
  const bytes: number[] = [];
  for (let left = size; left > 0; left >>>= 8) bytes.unshift(left & 0xff);
  return [0x80 | bytes.length, ...bytes];
}

const OID = {
  organization: encodeOid('2.5.4.10'),
  organizationalUnit: encodeOid('2.5.4.11'),
  commonName: encodeOid('2.5.4.3'),
  rsaEncryption: encodeOid('1.2.840.113549.1.1.1'),
  sha256WithRsa: encodeOid('1.2.840.113549.1.1.11'),
  subjectKeyId: encodeOid('2.5.29.14'),
  keyUsage: encodeOid('2.5.29.15'),
  basicConstraints: encodeOid('2.5.29.19'),
  authorityKeyId: encodeOid('2.5.29.35'),
  extendedKeyUsage: encodeOid('2.5.29.37'),
  serverAuth: encodeOid('1.3.6.1.5.5.7.3.1'),
  clientAuth: encodeOid('1.3.6.1.5.5.7.3.2'),
};

/** RFC 5280 4.2.1.3: bit 0 is digitalSignature, 2 keyEncipherment, 5 keyCertSign. */
const SIGNER_USAGE = encodeBits(Uint8Array.of(0b1010_0100), 2);

/**
 * A CA that signs itself, X.509 PEM: key usages digitalSignature, keyEncipherment and keyCertSign,
 * no path length, subject key id by SHA-1 of the PKCS#1 key. The same terms give the same bytes.
 */
export function issueSigner(terms: CertificateTerms, privateKey: KeyObject): Promise<string> {
  const { subject, publicKey } = terms;
  return signCertificate(terms, { subject, privateKey }, [
    encodeCritical(OID.keyUsage, SIGNER_USAGE),
    encodeCritical(OID.basicConstraints, encodeSequence(encodeTrue())),
    encodeExtension(OID.subjectKeyId, encodeOctets(identifyKey(publicKey))),
  ]);
}

const CLIENT_USAGE = encodeBits(Uint8Array.of(0b1010_0000), 5);

/** A client certificate, X.509 PEM: not a CA, for clientAuth and, as always, serverAuth. */
export function issueClient(terms: CertificateTerms, issuer: Issuer): Promise<string> {
  const authority = encodeImplicit(0, identifyKey(createPublicKey(issuer.privateKey)));
  return signCertificate(terms, issuer, [
    encodeCritical(OID.keyUsage, CLIENT_USAGE),
    encodeExtension(OID.extendedKeyUsage, encodeSequence(OID.serverAuth, OID.clientAuth)),
    encodeCritical(OID.basicConstraints, encodeSequence()),
    encodeExtension(OID.subjectKeyId, encodeOctets(identifyKey(terms.publicKey))),
    encodeExtension(OID.authorityKeyId, encodeSequence(authority)),
  ]);
}

const CONTEXT_0 = 0xa0;

/** RFC 5280 4.1.2.5, of a PEM that is known to be a certificate: a hundredth of the time of a whole parse. */
export function readValidity(pem: string): Validity {
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64');
  const certificate = readElement(der, 0);
  const body = readElement(der, certificate.start);
  let at = readElement(der, body.start);
  if (at.tag === CONTEXT_0) at = readElement(der, at.end); // version
  for (let behind = 0; behind < 3; behind++) at = readElement(der, at.end); // serial number, signature, issuer
  const notBefore = readElement(der, at.start);
  const notAfter = readElement(der, notBefore.end);
  return { notBefore: readTime(der, notBefore), notAfter: readTime(der, notAfter) };
}

/** Signs in Node's thread pool: six signatures of a site cost five times as much as the rest of it. */
const signAside = promisify(sign);

/** RFC 5280 4.1.2.1. */
const X509_V3 = 2n;

const RSA = encodeSequence(OID.rsaEncryption, encodeNull());
const RSA_SHA256 = encodeSequence(OID.sha256WithRsa, encodeNull());

async function signCertificate(
  terms: CertificateTerms,
  issuer: Issuer,
  extensions: readonly Uint8Array[],
): Promise<string> {
  const body = encodeSequence(
    encodeExplicit(0, encodeInteger(X509_V3)),
    encodeInteger(chooseSerial(terms.serial)),
    RSA_SHA256,
    encodeName(issuer.subject),
    encodeSequence(encodeTime(terms.notBefore), encodeTime(terms.notAfter)),
    encodeName(terms.subject),
    encodeSequence(RSA, encodeBits(exportKey(terms.publicKey))),
    encodeExplicit(3, encodeSequence(...extensions)),
  );
  const signature = encodeBits(await signAside('sha256', body, issuer.privateKey));
  return formatPem(encodeSequence(body, RSA_SHA256, signature));
}

/** Serial numbers are below 2^63 - 1, and RFC 5280 4.1.2.2 requires them to be above 0. */
const SERIAL_RANGE = 2n ** 63n - 2n;

function chooseSerial(random: Uint8Array): bigint {
  const value = BigInt(`0x${Buffer.from(random).toString('hex')}`);
  return (value % SERIAL_RANGE) + 1n;
}

function encodeName({ organization, organizationalUnit, commonName }: Subject): Buffer {
  const names: readonly (readonly [Uint8Array, string | undefined])[] = [
    [OID.organization, organization],
    [OID.organizationalUnit, organizationalUnit],
    [OID.commonName, commonName],
  ];
  const given = names.flatMap(([type, text]) =>
    text === undefined ? [] : [encodeSet(encodeSequence(type, encodeText(text)))],
  );
  return encodeSequence(...given);
}

const encodeExtension = (type: Uint8Array, value: Uint8Array): Buffer =>
  encodeSequence(type, encodeOctets(value));

const encodeCritical = (type: Uint8Array, value: Uint8Array): Buffer =>
  encodeSequence(type, encodeTrue(), encodeOctets(value));

/** RFC 5280 4.2.1.2 (1): SHA-1 of the key's own bits, which for RSA are its PKCS#1 form. */
const identifyKey = (key: KeyObject): Buffer => createHash('sha1').update(exportKey(key)).digest();

/** PKCS#1; Node's export of the form that wraps it takes 60 times as long. */
const exportKey = (key: KeyObject): Buffer => key.export({ type: 'pkcs1', format: 'der' });

/** RFC 7468: lines of 64 characters. */
function formatPem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** X.690 8.1: tag, length in one byte or in as many bytes as the first one gives, content. */
function readElement(der: Buffer, offset: number): Element {
  const first = der.readUInt8(offset + 1);
  const more = first < 0x80 ? 0 : first & 0x7f;
  const start = offset + 2 + more;
  const size = more === 0 ? first : der.readUIntBE(offset + 2, more);
  return { tag: der.readUInt8(offset), start, end: start + size };
}

const UTC_TIME = 0x17;

/** `YYMMDDhhmmssZ` for 1950 to 2049, `YYYYMMDDhhmmssZ` for later years. */
function readTime(der: Buffer, { tag, start, end }: Element): number {
  const text = der.toString('latin1', start, end);
  const century = tag !== UTC_TIME ? '' : Number(text.slice(0, 2)) < 50 ? '20' : '19';
  const digits = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(`${century}${text}`);
  if (!digits) throw new RangeError(`a certificate has the time ${text}`);
  const [year = 0, month = 0, day, hour, minute, second] = digits.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
