/** The part of ASN.1's Distinguished Encoding Rules (X.690) that certificates need, and no parser. */
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

/** X.680 41.4: what a PrintableString may hold. */
const PRINTABLE = /^[A-Za-z0-9 '()+,\-./:=?]*$/;

/** RFC 5280 4.1.2.5: from 2050 on dates have years of four digits. */
const FIRST_GENERALIZED_YEAR = 2050;

export const encodeSequence = (...parts: readonly Uint8Array[]): Buffer =>
  encodeElement(TAG.sequence, parts);

export const encodeSet = (...parts: readonly Uint8Array[]): Buffer => encodeElement(TAG.set, parts);

export const encodeOctets = (bytes: Uint8Array): Buffer => encodeElement(TAG.octetString, [bytes]);

export const encodeNull = (): Buffer => encodeElement(TAG.null, []);

/** The value `true`: `false` is a default everywhere in certificates, and defaults are left out. */
export const encodeTrue = (): Buffer => encodeElement(TAG.boolean, [Uint8Array.of(0xff)]);

/** `[number]` around a whole element. */
export const encodeExplicit = (number: number, part: Uint8Array): Buffer =>
  encodeElement(0xa0 | number, [part]);

/** `[number]` in place of a primitive element's own tag. */
export const encodeImplicit = (number: number, bytes: Uint8Array): Buffer =>
  encodeElement(0x80 | number, [bytes]);

/** Bits, the first of which is the highest of the first byte; `unused` ones at the end are padding. */
export const encodeBits = (bytes: Uint8Array, unused = 0): Buffer =>
  encodeElement(TAG.bitString, [Uint8Array.of(unused), bytes]);

/** A number that is not negative. */
export function encodeInteger(value: bigint): Buffer {
  const digits = value.toString(16);
  const bytes = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
  const isHigh = (bytes[0] ?? 0) >= 0x80;
  return encodeElement(TAG.integer, isHigh ? [Uint8Array.of(0), bytes] : [bytes]);
}

/** An object identifier in its usual dotted form. */
export function encodeOid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return encodeElement(TAG.objectIdentifier, [Uint8Array.from(bytes)]);
}

/** A PrintableString where that can hold the text, else a UTF8String: what Go's encoder chooses. */
export const encodeText = (text: string): Buffer =>
  encodeElement(PRINTABLE.test(text) ? TAG.printableString : TAG.utf8String, [Buffer.from(text)]);

/** Seconds since 1970. */
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

/** X.690 8.1.3: itself when below 128, else how many bytes it takes, and those. */
function encodeSize(size: number): readonly number[] {
  if (size < 0x80) return [size];
  const bytes: number[] = [];
  for (let left = size; left > 0; left >>>= 8) bytes.unshift(left & 0xff);
  return [0x80 | bytes.length, ...bytes];
}
