/** From when to when a certificate is valid, in seconds since 1970; both are still in it. */
export type Validity = { readonly notBefore: number; readonly notAfter: number };

/** X.690 8.1.2 and RFC 5280 4.1: what stands before the validity may begin with the version. */
const VERSION_TAG = 0xa0;
const UTC_TIME_TAG = 0x17;

type Element = { readonly tag: number; readonly start: number; readonly end: number };

/**
 * Reads the dates of a certificate, PEM, that was checked or made before: node:crypto decodes the
 * key as well, and takes a hundred times as long, which is a millisecond a site.
 *
 * @throws RangeError where it is no certificate after all
 */
export function readValidity(certificate: string): Validity {
  const [, base64 = ''] = /-----BEGIN CERTIFICATE-----([^-]*)-----END/.exec(certificate) ?? [];
  const der = Buffer.from(base64, 'base64');
  const body = readElement(der, readElement(der, 0).start);
  const version = readElement(der, body.start);
  const serial = version.tag === VERSION_TAG ? readElement(der, version.end) : version;
  const issuer = readElement(der, readElement(der, serial.end).end);
  const dates = readElement(der, issuer.end);
  const notBefore = readElement(der, dates.start);
  const notAfter = readElement(der, notBefore.end);
  return { notBefore: readTime(der, notBefore), notAfter: readTime(der, notAfter) };
}

/** X.690 8.1.3: a size below 128, or how many bytes have the size. */
function readElement(der: Buffer, at: number): Element {
  const first = der.readUInt8(at + 1);
  const sizeSize = first < 0x80 ? 0 : first & 0x7f;
  const start = at + 2 + sizeSize;
  const size = sizeSize === 0 ? first : der.readUIntBE(at + 2, sizeSize);
  return { tag: der.readUInt8(at), start, end: start + size };
}

/** RFC 5280 4.1.2.5: `YYMMDDhhmmssZ` from 1950 to 2049, or with a year of four digits. */
function readTime(der: Buffer, { tag, start, end }: Element): number {
  const text = der.toString('latin1', start, end);
  const century = text < '50' ? '20' : '19';
  const digits = tag === UTC_TIME_TAG ? `${century}${text}` : text;
  const iso = digits.replace(/^(....)(..)(..)(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z');
  const milliseconds = Date.parse(iso);
  if (Number.isNaN(milliseconds)) throw new RangeError('a certificate has no date where it should');
  return milliseconds / 1000;
}
