import type { Dialect } from './decode-yaml.ts';

/*
 * Owns the meaning of a plain scalar to serde_yaml 0.9, by which nmstate reads a document: YAML 1.2, but
 * with numbers of base 2, and with digits behind a zero as text.
 */

const INTEGER = /^[-+]?(?:0x[\da-fA-F]+|0o[0-7]+|0b[01]+|0|[1-9]\d*)$/;
const ZERO_AND_DIGITS = /^[-+]?0\d+$/;
const FLOAT = /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/;
const WORDS: Readonly<Record<string, null | boolean>> = {
  ...spread(['', '~', 'null', 'Null', 'NULL'], null),
  // JSON, in which nmstate keeps an interface, has no such numbers.
  ...spread(['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF', '-.inf', '-.Inf', '-.INF'], null),
  ...spread(['.nan', '.NaN', '.NAN'], null),
  ...spread(['true', 'True', 'TRUE'], true),
  ...spread(['false', 'False', 'FALSE'], false),
};

function spread<T>(words: readonly string[], value: T): Readonly<Record<string, T>> {
  return Object.fromEntries(words.map((word) => [word, value]));
}

function readScalar(text: string): null | boolean | number | string {
  if (Object.hasOwn(WORDS, text)) return WORDS[text] ?? null;
  if (INTEGER.test(text)) return readInteger(text);
  return isSerdeFloat(text) ? Number(text) : text;
}

/** JavaScript reads no sign before 0x. */
function readInteger(text: string): number {
  const size = Number(text.replace(/^[-+]/, ''));
  return text.startsWith('-') && size > 0 ? -size : size;
}

/** True for a number that is not a whole one, even `1500.0`; too large ones are text. */
export const isSerdeFloat = (text: string): boolean =>
  FLOAT.test(text) &&
  !INTEGER.test(text) &&
  !ZERO_AND_DIGITS.test(text) &&
  Number.isFinite(Number(text));

export const SERDE: Dialect = { readScalar, hasMerges: false };
