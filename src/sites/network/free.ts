import type { Plain } from '../../shape/shape.ts';

// Looks into data that no shape describes. What has another type reads as absent.

export type FreeMap = Readonly<Record<string, Plain>>;

export const isMapping = (value: Plain | undefined): value is FreeMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Empty where there is none. */
export const mapOf = (value: Plain | undefined): FreeMap => (isMapping(value) ? value : {});

/** Empty where there is none. */
export const listOf = (value: Plain | undefined): readonly Plain[] =>
  Array.isArray(value) ? (value as readonly Plain[]) : [];

/** Numbers and flags too, as they are written in JSON. */
export const textOf = (value: Plain | undefined): string | undefined =>
  value === undefined || value === null || typeof value === 'object' ? undefined : String(value);

/** Also in the other spellings that nmstate takes for a flag. */
export function flagOf(value: Plain | undefined): boolean | undefined {
  const text = textOf(value)?.toLowerCase() ?? '';
  if (/^(?:1|true|yes|on|y)$/.test(text)) return true;
  return /^(?:0|false|no|off|n)$/.test(text) ? false : undefined;
}

/** A whole number, or a text that is one: nmstate takes decimal and, with 0x, hexadecimal digits. */
export function numberOf(value: Plain | undefined): number | undefined {
  const number =
    typeof value === 'string' && /^(?:[-+]?\d+|0x[\da-fA-F]+)$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
}
