import { requireBytes } from './bounds.ts';

const QUARTER_HOUR = 15 * 60 * 1000;

/**
 * ECMA-119 9.1.5: seven bytes, years since 1900 to seconds and the zone in quarter hours east of
 * Greenwich. All zero, or no date of a calendar, is undefined.
 */
export function decodeShortDate(bytes: Uint8Array, at: number): Date | undefined {
  requireBytes(bytes, { at, size: 7 });
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zone = 0] = bytes.subarray(
    at,
    at + 7,
  );
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined;
  const local = Date.UTC(1900 + year, month - 1, day, hour, minute, second);
  return new Date(local - ((zone << 24) >> 24) * QUARTER_HOUR);
}

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
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(digits)?.slice(1).map(Number);
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, hundredths = 0] =
    parts ?? [];
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined;
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  local.setUTCHours(hour, minute, second, hundredths * 10);
  const zone = ((bytes[at + 16] ?? 0) << 24) >> 24;
  return new Date(local.getTime() - zone * QUARTER_HOUR);
}

/** In Greenwich time, to the hundredth of a second; years 0 to 9999. */
export function encodeLongDate(date: Date | undefined): Uint8Array {
  const bytes = new Uint8Array(17);
  const digits = date ? date.toISOString().replaceAll(/\D/g, '').slice(0, 16) : '0'.repeat(16);
  bytes.set(Buffer.from(digits, 'latin1'));
  return bytes;
}
