/** What the manifests of a site consist of; a map keeps the order of its keys. */
export type GoJson = string | number | readonly GoJson[] | ReadonlyMap<string, GoJson>;

/** Go's encoding/json writes these for the sake of browsers; JSON.stringify does not. */
const ESCAPED_BY_GO = /[<>&\u2028\u2029]/g;

/** The bytes that Go's encoding/json gives: one line, no white space, no newline at the end. */
export function formatGoJson(value: GoJson): string {
  if (typeof value === 'string') return formatString(value);
  if (typeof value === 'number') return String(value);
  if (isList(value)) return `[${value.map(formatGoJson).join(',')}]`;
  const members = [...value].map(([key, member]) => `${formatString(key)}:${formatGoJson(member)}`);
  return `{${members.join(',')}}`;
}

/** The same map without the members that Go's `omitempty` leaves out. */
export function omitEmpty(
  members: Iterable<readonly [string, GoJson | undefined]>,
): ReadonlyMap<string, GoJson> {
  const kept = new Map<string, GoJson>();
  for (const [key, value] of members) {
    if (value !== undefined && !isEmpty(value)) kept.set(key, value);
  }
  return kept;
}

/** Go writes maps with their keys sorted by bytes. */
export function sortedMap(record: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  const entries = Object.entries(record);
  return new Map(entries.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
}

const isList = (value: GoJson): value is readonly GoJson[] => Array.isArray(value);

/** An empty object is not: `omitempty` looks at pointers of structs, not into them. */
const isEmpty = (value: GoJson): boolean =>
  (typeof value === 'string' || isList(value)) && value.length === 0;

const formatString = (text: string): string =>
  JSON.stringify(text).replaceAll(
    ESCAPED_BY_GO,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
