import { ConfigError } from '../base/errors.ts';
import { withoutUndefined, isObject as isRecord } from '../base/lists.ts';
import { foldCase } from './keys.ts';
import { nameType } from './words.ts';

/* Owns JSON in the manner of Go: reading keys regardless of case, and the bytes of encoding/json. */

/** An object within a document, and the report of its faults. */
export type Fields = {
  readonly object: Readonly<Record<string, unknown>>;
  /** From the document to the object, with a dot at its end, e.g. `entries[3].`; '' for the document. */
  readonly path: string;
  readonly report: (problem: string) => void;
};

/** The value of a key as Go's encoding/json finds it, regardless of case; null counts as absent. */
export const readField = (fields: Fields, key: string): unknown =>
  findValue(fields.object, key) ?? undefined;

export function findValue(object: Fields['object'], key: string): unknown {
  if (Object.hasOwn(object, key)) return object[key];
  const folded = foldCase(key);
  const other = Object.keys(object).find((candidate) => foldCase(candidate) === folded);
  return other === undefined ? undefined : object[other];
}

export function readText(fields: Fields, key: string): string | undefined {
  const value = readField(fields, key);
  if (value === undefined || typeof value === 'string') return value;
  reportType(fields, key, { value, expected: 'a string' });
  return undefined;
}

/** A string that must exist and must not be empty; '' after a report. */
export function needText(fields: Fields, key: string): string {
  const value = readField(fields, key);
  if (value === undefined || value === '') {
    fields.report(
      `${fields.path}${key} should be a string, but is ${value === '' ? 'empty' : 'absent'}`,
    );
    return '';
  }
  return readText(fields, key) ?? '';
}

/** The strings of a list; empty if it is absent. */
export function readTexts(fields: Fields, key: string): readonly string[] {
  return readList(fields, key).filter((value, index): value is string => {
    if (typeof value === 'string') return true;
    reportType(fields, `${key}[${index}]`, { value, expected: 'a string' });
    return false;
  });
}

/** The objects of a list; empty if it is absent. */
export function readObjects(fields: Fields, key: string): readonly Fields[] {
  return readList(fields, key).flatMap((value, index) => {
    const item = `${key}[${index}]`;
    if (isRecord(value)) return { ...fields, object: value, path: `${fields.path}${item}.` };
    reportType(fields, item, { value, expected: 'an object' });
    return [];
  });
}

function readList(fields: Fields, key: string): readonly unknown[] {
  const value = readField(fields, key);
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  reportType(fields, key, { value, expected: 'a list' });
  return [];
}

function reportType(
  { path, report }: Fields,
  key: string,
  { value, expected }: { readonly value: unknown; readonly expected: string },
): void {
  report(`${path}${key} should be ${expected}, but is ${nameType(value)}`);
}

/** Most problems in one report. A catalog full of mistakes should not fill the terminal. */
const MAX_PROBLEMS = 1000;

/** The refusal of a catalog, with its problems, one a line. */
export function malformedCatalog(
  name: string,
  problems: readonly string[],
  hint?: string,
): ConfigError {
  const more = problems.length - MAX_PROBLEMS;
  const shown = problems.slice(0, MAX_PROBLEMS);
  const lines = more > 0 ? [...shown, `and ${more} more`] : shown;
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  return new ConfigError(
    'catalog.malformed',
    [`catalog ${name} has ${count}:`, ...lines.map((line) => `  ${line}`)].join('\n'),
    { ...withoutUndefined({ hint }) },
  );
}

/** A value in the manifests of a site; a map keeps the order of its keys. */
export type GoJson =
  string | number | boolean | null | readonly GoJson[] | ReadonlyMap<string, GoJson>;

/** Characters that Go's encoding/json escapes for browsers; JSON.stringify does not. */
const ESCAPED_BY_GO = /[<>&\u2028\u2029]/g;

/** The bytes that Go's encoding/json gives: one line, no white space, no newline at the end. */
export function formatGoJson(value: GoJson): string {
  if (typeof value === 'string') return formatString(value);
  if (value === null || typeof value !== 'object') return String(value);
  if (isListOfGoJson(value)) return `[${value.map(formatGoJson).join(',')}]`;
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

const isListOfGoJson = (value: GoJson): value is readonly GoJson[] => Array.isArray(value);

/** An empty object does not count: `omitempty` looks at pointers of structs, not into them. */
const isEmpty = (value: GoJson): boolean =>
  (typeof value === 'string' || isListOfGoJson(value)) && value.length === 0;

const formatString = (text: string): string =>
  JSON.stringify(text).replaceAll(
    ESCAPED_BY_GO,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
