import { requireBytes } from '../extent.ts';

/**
 * ECMA-119 7.3.3: most 32-bit numbers in a volume stand twice in a row, first little-endian and then
 * big-endian. The little-endian copy is what every system reads, so it is what we return.
 */
export function decodeBoth32(bytes: Uint8Array, at: number): number {
  requireBytes(bytes, { at, size: 8 });
  return little32(bytes, at);
}

/** ECMA-119 7.2.3: most 16-bit numbers in a volume, in the same two byte orders. */
export function decodeBoth16(bytes: Uint8Array, at: number): number {
  requireBytes(bytes, { at, size: 4 });
  return little16(bytes, at);
}

export function encodeBoth32(target: Uint8Array, at: number, value: number): void {
  requireBytes(target, { at, size: 8 });
  for (let byte = 0; byte < 4; byte++) {
    target[at + byte] = target[at + 7 - byte] = value >>> (8 * byte);
  }
}

export function encodeBoth16(target: Uint8Array, at: number, value: number): void {
  requireBytes(target, { at, size: 4 });
  target[at] = target[at + 3] = value;
  target[at + 1] = target[at + 2] = value >>> 8;
}

export function isBothEqual32(bytes: Uint8Array, at: number): boolean {
  requireBytes(bytes, { at, size: 8 });
  return isMirrored(bytes, at, at + 7);
}

export function isBothEqual16(bytes: Uint8Array, at: number): boolean {
  requireBytes(bytes, { at, size: 4 });
  return isMirrored(bytes, at, at + 3);
}

function isMirrored(bytes: Uint8Array, first: number, last: number): boolean {
  for (let [at, other] = [first, last]; at < other; at++, other--) {
    if (bytes[at] !== bytes[other]) return false;
  }
  return true;
}

// A record has a dozen numbers, and a DataView for each would take most of its reading time.
const little32 = (bytes: Uint8Array, at: number): number =>
  little16(bytes, at) + little16(bytes, at + 2) * 0x10000;

const little16 = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);

const QUARTER_HOUR = 15 * 60 * 1000;

/**
 * ECMA-119 9.1.5: seven bytes, years since 1900 to seconds and the zone in quarter hours east of Greenwich.
 * Undefined if all bytes are zero, or there is no such day in a calendar.
 */
export function decodeShortDate(bytes: Uint8Array, at: number): Date | undefined {
  requireBytes(bytes, { at, size: 7 });
  const byteAt = (index: number): number => bytes[at + index] ?? 0;
  const [month, day] = [byteAt(1), byteAt(2)];
  if (!isCalendarDay(month, day)) return undefined;
  const year = 1900 + byteAt(0);
  const local = Date.UTC(year, month - 1, day, byteAt(3), byteAt(4), byteAt(5));
  return new Date(local - toSigned(byteAt(6)) * QUARTER_HOUR);
}

const toSigned = (byte: number): number => (byte << 24) >> 24;

/** The last time of ECMA-119 9.1.5, in seconds since 1970. */
export const LAST_EPOCH = Date.UTC(2156, 0, 1) / 1000 - 1;

/** Seconds since 1970, within what a medium can hold: images without a time have the year 1, as Go writes. */
export const clampEpoch = (date: Date): number =>
  Math.min(Math.max(Math.floor(date.getTime() / 1000), 0), LAST_EPOCH);

/** In Greenwich time, milliseconds dropped; not specified outside of the years 1900 to 2155. */
export function encodeShortDate(date: Date | undefined): Uint8Array {
  const year = (date?.getUTCFullYear() ?? -1) - 1900;
  if (!date || year < 0 || year > 255) return new Uint8Array(7);
  return Uint8Array.of(
    year,
    date.getUTCMonth() + 1,
    date.getUTCDate(),
    date.getUTCHours(),
    date.getUTCMinutes(),
    date.getUTCSeconds(),
    0,
  );
}

/** ECMA-119 8.4.26.1: sixteen digits to hundredths of a second, then the zone; zeros are undefined. */
export function decodeLongDate(bytes: Uint8Array, at: number): Date | undefined {
  requireBytes(bytes, { at, size: 17 });
  const digits = Buffer.from(bytes.subarray(at, at + 16)).toString('latin1');
  if (!/^\d{16}$/.test(digits)) return undefined;
  const part = (from: number, to: number): number => Number(digits.slice(from, to));
  if (!isCalendarDay(part(4, 6), part(6, 8))) return undefined;
  const local = new Date(0);
  local.setUTCFullYear(part(0, 4), part(4, 6) - 1, part(6, 8));
  local.setUTCHours(part(8, 10), part(10, 12), part(12, 14), part(14, 16) * 10);
  return new Date(local.getTime() - toSigned(bytes[at + 16] ?? 0) * QUARTER_HOUR);
}

/** In Greenwich time, to the hundredth of a second; years 0 to 9999. */
export function encodeLongDate(date: Date | undefined): Uint8Array {
  const bytes = new Uint8Array(17);
  const digits = date ? date.toISOString().replaceAll(/\D/g, '').slice(0, 16) : '0'.repeat(16);
  bytes.set(Buffer.from(digits, 'latin1'));
  return bytes;
}

const isCalendarDay = (month: number, day: number): boolean =>
  month >= 1 && month <= 12 && day >= 1 && day <= 31;
