import type { Scalar } from 'yaml';

const NULL = /^(?:~|null|Null|NULL)?$/;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const INTEGER = /^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/**
 * What a scalar means in YAML 1.1 as the peers read it: `yes` is true, `010` is 8, and sexagesimals and
 * dates stay text.
 */
export function resolveScalar(scalar: Scalar): null | boolean | number | string {
  const text = scalar.source ?? '';
  if (scalar.type !== 'PLAIN' || scalar.tag !== undefined) return text;
  if (NULL.test(text)) return null;
  if (TRUE.test(text)) return true;
  if (FALSE.test(text)) return false;
  if (INTEGER.test(text)) return readInteger(text.replaceAll('_', ''));
  return FLOAT.test(text) ? Number(text) : text;
}

function readInteger(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const digits = text.replace(/^[-+]/, '');
  return sign * Number(/^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits);
}
