import { createHash } from 'node:crypto';
import type { Digest } from '../digest.ts';

/** Any value that JSON can hold. `undefined` members of objects are left out, as JSON.stringify does. */
export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

/**
 * One text per value: keys sorted by UTF-16 code unit, no white space (RFC 8785's order and number
 * form), so that a digest of the text is a digest of the value.
 */
export function formatCanonicalJson(value: Json): string {
  return JSON.stringify(sortKeys(value));
}

/** The digest of the canonical text, without building it: it would take as much memory as the value. */
export function digestCanonicalJson(value: Json): Digest {
  const hash = createHash('sha256');
  let text = '';
  writeCanonical(value, (piece) => {
    text += piece;
    if (text.length < PIECE) return;
    hash.update(text);
    text = '';
  });
  return `sha256:${hash.update(text).digest('hex')}`;
}

/** Characters that are hashed at once. */
const PIECE = 1 << 16;

function writeCanonical(value: Json, write: (piece: string) => void): void {
  if (value === null || typeof value !== 'object') {
    write(JSON.stringify(value));
    return;
  }
  const isList = Array.isArray(value);
  let separator = isList ? '[' : '{';
  const writeMember = (name: string, member: Json): void => {
    write(separator + name);
    writeCanonical(member, write);
    separator = ',';
  };
  if (isList) for (const item of value as readonly Json[]) writeMember('', item);
  else {
    for (const [key, member] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (member !== undefined) writeMember(`${JSON.stringify(key)}:`, member);
    }
  }
  write(`${separator === ',' ? '' : separator}${isList ? ']' : '}'}`);
}

/** JSON for people: keys in canonical order, indented by two spaces, ended by a newline. */
export function formatReadableJson(value: Json): string {
  return `${JSON.stringify(sortKeys(value), null, 2)}\n`;
}

function sortKeys(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(sortKeys);
  if (value === null || typeof value !== 'object') return value;
  const object = value as Readonly<Record<string, Json | undefined>>;
  const sorted: Record<string, Json> = {};
  for (const key of Object.keys(object).sort()) {
    const member = object[key];
    if (member !== undefined) sorted[key] = sortKeys(member);
  }
  return sorted;
}
