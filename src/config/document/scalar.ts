import type { Scalar } from 'yaml';

const NULL = /^(?:~|null|Null|NULL)?$/;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const INTEGER = /^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/** Sexagesimals, dates, merge and value keys, the floats that are not numbers: some reader takes them so. */
const OTHER =
  /^(?:[-+]?[\d_]*\.[\d_]*|[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?|\d{4}-\d\d?-\d\d?.*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|<<|=)$/;

/**
 * What a scalar means in YAML 1.1 as the peers read it: `yes` is true, `010` is 8, and sexagesimals and
 * dates stay text.
 */
export function resolveScalar(scalar: Scalar): null | boolean | number | string {
  const text = scalar.source ?? '';
  if (scalar.type !== 'PLAIN' || scalar.tag !== undefined) return text;
  return resolvePlain(text);
}

function resolvePlain(text: string): null | boolean | number | string {
  if (NULL.test(text)) return null;
  if (TRUE.test(text)) return true;
  if (FALSE.test(text)) return false;
  if (!/^[-+.\d]/.test(text)) return text;
  const digits = text.replaceAll('_', '');
  const number = INTEGER.test(text) ? readInteger(digits) : readFloat(digits);
  return Number.isFinite(number) ? number : text;
}

function readInteger(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const digits = text.replace(/^[-+]/, '');
  return sign * Number(/^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits);
}

const readFloat = (text: string): number => (FLOAT.test(text) ? Number(text) : NaN);

/** Whether a text without quotes would be read as something else than that text, by any reader of YAML. */
export const isOtherInYaml = (text: string): boolean =>
  typeof resolvePlain(text) !== 'string' || isLikeNumber(text) || OTHER.test(text);

/** Of any size: some reader takes the largest for infinite. */
const isLikeNumber = (text: string): boolean =>
  INTEGER.test(text) || FLOAT.test(text.replaceAll('_', ''));
