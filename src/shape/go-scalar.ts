/*
 * Owns the meaning of a plain scalar to Go's reader of YAML 1.1, go-yaml 2 in sigs.k8s.io/yaml: by it, Kubernetes and
 * the installer read every manifest.
 */

/** A date is read as its text; it has a kind because a writer must quote a text that is like one. */
export type GoScalar =
  | { readonly kind: 'null'; readonly value: null }
  | { readonly kind: 'flag'; readonly value: boolean }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'text' | 'date'; readonly value: string };

const NULL = /^(?:~|null|Null|NULL)?$/;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const INFINITE = /^[-+]?\.(?:inf|Inf|INF)$/;
const NOT_A_NUMBER = /^\.(?:nan|NaN|NAN)$/;

export function readGoScalar(text: string): GoScalar {
  if (NULL.test(text)) return { kind: 'null', value: null };
  if (TRUE.test(text)) return { kind: 'flag', value: true };
  if (FALSE.test(text)) return { kind: 'flag', value: false };
  if (isDate(text)) return { kind: 'date', value: text };
  const value = readNumber(text);
  return value === undefined ? { kind: 'text', value: text } : { kind: 'number', value };
}

function readNumber(text: string): number | undefined {
  if (INFINITE.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  if (NOT_A_NUMBER.test(text)) return NaN;
  if (text.startsWith('.')) return readFloat(text.replaceAll(/(?<=\d)_(?=\d)/g, ''));
  if (!/^[-+\d]/.test(text)) return undefined;
  const digits = text.replaceAll('_', '');
  return readInteger(digits.replace(SIGN_INSIDE, '$<sign>0b')) ?? readFloat(digits);
}

/** Go reads the digits behind 0b for themselves, with a sign. */
const SIGN_INSIDE = /^0b(?<sign>[-+])(?=[01]+$)/;

/** Digits behind their prefix, by the base; a number that begins with 0 is of base 8. */
const INTEGERS = [
  [/^[-+]?0[bB]([01]+)$/, '0b'],
  [/^[-+]?0[xX]([\da-fA-F]+)$/, '0x'],
  [/^[-+]?0[oO]?([0-7]+)$/, '0o'],
  [/^[-+]?(0|[1-9]\d*)$/, ''],
] as const;

/** A whole number of 64 bits: signed, or unsigned without a sign. */
function readInteger(text: string): number | undefined {
  const [digits] = INTEGERS.flatMap(([form, prefix]) => {
    const found = form.exec(text)?.[1];
    return found === undefined ? [] : [`${prefix}${found}`];
  });
  if (digits === undefined) return undefined;
  const size = BigInt(digits);
  const isNegative = text.startsWith('-');
  if (size > (MOST[text.charAt(0)] ?? UNSIGNED)) return undefined;
  return isNegative && size > 0n ? -Number(size) : Number(size);
}

const UNSIGNED = 2n ** 64n - 1n;
const MOST: Readonly<Record<string, bigint>> = { '-': 2n ** 63n, '+': 2n ** 63n - 1n };

const FLOAT = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

function readFloat(text: string): number | undefined {
  const number = FLOAT.test(text) ? Number(text) : NaN;
  return Number.isFinite(number) ? number : undefined;
}

const DATE =
  /^(\d{4})-(\d\d?)-(\d\d?)(?:[Tt](?<time>[^ ]+?)(?:[Zz]|[-+]\d\d:\d\d)| (?<alone>[^ ]+))?$/;
const TIME = /^(?:[01]?\d|2[0-3]):[0-5]?\d:[0-5]?\d(?:[.,]\d+)?$/;

/** A date that exists, alone, or with a time of day. */
function isDate(text: string): boolean {
  const found = DATE.exec(text);
  if (!found) return false;
  const [year, month, day] = found.slice(1, 4).map(Number) as [number, number, number];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return false;
  const clock = found.groups?.['time'] ?? found.groups?.['alone'];
  return clock === undefined || TIME.test(clock);
}

/** Go quotes such texts although it does not read them as numbers. */
const BASE_60 = /^[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?$/;

/** True if Go writes a text without quotes, as far as its meaning decides. */
export const isPlainInGo = (text: string): boolean =>
  readGoScalar(text).kind === 'text' && !BASE_60.test(text);
