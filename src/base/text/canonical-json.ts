/** What JSON can hold. `undefined` members of objects are left out, as JSON.stringify does. */
export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

/**
 * One text per value: keys sorted by UTF-16 code unit, no white space (RFC 8785's order and number
 * form), so that a digest of it is a digest of the value.
 */
export function formatCanonicalJson(value: Json): string {
  return JSON.stringify(sortKeys(value));
}

/** The same order, indented by two spaces and ended by a newline: for files that people read. */
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
