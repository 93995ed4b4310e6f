import { requireBytes } from '../bounds.ts';

const QUARTER_HOUR = 15 * 60 * 1000;

/**
 * ECMA-119 9.1.5: seven bytes, years since 1900 to seconds and the zone in quarter hours east of
 * Greenwich. All zero, or no date of a calendar, is undefined.
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

/** In Greenwich time, milliseconds dropped; years 1900 to 2155. */
export function encodeShortDate(date: Date | undefined): Uint8Array {
  if (!date) return new Uint8Array(7);
  const year = date.getUTCFullYear() - 1900;
  if (year < 0 || year > 255)
    throw new RangeError(`year of ${date.toISOString()} has no short date`);
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
