/** Milliseconds since 1970. */
export type Validity = { readonly notBefore: number; readonly notAfter: number };

const UTC_TIME = 0x17;
const CONTEXT_0 = 0xa0;

/**
 * RFC 5280 4.1.2.5, of a certificate in PEM that is known to be one: takes a hundredth of what
 * parsing all of it would.
 */
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

type Element = { readonly tag: number; readonly start: number; readonly end: number };

/** X.690 8.1: tag, length in one byte or in as many as the first one says, content. */
function readElement(der: Buffer, offset: number): Element {
  const first = der.readUInt8(offset + 1);
  const more = first < 0x80 ? 0 : first & 0x7f;
  const start = offset + 2 + more;
  const size = more === 0 ? first : der.readUIntBE(offset + 2, more);
  return { tag: der.readUInt8(offset), start, end: start + size };
}

/** `YYMMDDhhmmssZ` of 1950 to 2049, `YYYYMMDDhhmmssZ` of later years. */
function readTime(der: Buffer, { tag, start, end }: Element): number {
  const text = der.toString('latin1', start, end);
  const century = tag !== UTC_TIME ? '' : Number(text.slice(0, 2)) < 50 ? '20' : '19';
  const digits = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(`${century}${text}`);
  if (!digits) throw new RangeError(`a certificate has the time ${text}`);
  const [year = 0, month = 0, day, hour, minute, second] = digits.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
