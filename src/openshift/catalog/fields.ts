import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined, isObject } from '../../base/lists.ts';

/** An object within a document, and what to do with what is wrong with it. */
export type Fields = {
  readonly object: Readonly<Record<string, unknown>>;
  /** From the document to the object, with a dot at its end, e.g. `entries[3].`; '' for the document. */
  readonly path: string;
  readonly report: (problem: string) => void;
};

/**
 * Keys that are equal after this are the same key. The dotless i folds to itself alone (Unicode
 * CaseFolding.txt has it for Turkic languages only), although its capital is I.
 */
export const foldCase = (key: string): string =>
  key
    .split('ı')
    .map((part) => part.toLowerCase().toUpperCase())
    .join('ı');

/** The value of a key, whatever its case, as Go's encoding/json finds it; null is as good as absent. */
export const readField = (fields: Fields, key: string): unknown =>
  findValue(fields.object, key) ?? undefined;

/** The value of a key, whatever its case; undefined when it is absent. */
export function findValue(object: Fields['object'], key: string): unknown {
  if (Object.hasOwn(object, key)) return object[key];
  const folded = foldCase(key);
  const other = Object.keys(object).find((candidate) => foldCase(candidate) === folded);
  return other === undefined ? undefined : object[other];
}

/** A string, undefined when it is absent. */
export function readText(fields: Fields, key: string): string | undefined {
  const value = readField(fields, key);
  if (value === undefined || typeof value === 'string') return value;
  reportType(fields, key, { value, expected: 'a string' });
  return undefined;
}

/** A string that has to be there and has to say something; '' after a report. */
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

/** The strings of a list; none when it is absent. */
export function readTexts(fields: Fields, key: string): readonly string[] {
  return readList(fields, key).filter((value, index): value is string => {
    if (typeof value === 'string') return true;
    reportType(fields, `${key}[${index}]`, { value, expected: 'a string' });
    return false;
  });
}

/** The objects of a list; none when it is absent. */
export function readObjects(fields: Fields, key: string): readonly Fields[] {
  return readList(fields, key).flatMap((value, index) => {
    const item = `${key}[${index}]`;
    if (isObject(value)) return { ...fields, object: value, path: `${fields.path}${item}.` };
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

/** What a value is, in the words of RFC 8259; a short one with its text. */
export function nameType(value: unknown): string {
  if (value === undefined) return 'absent';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return `the string ${JSON.stringify(value.slice(0, 40))}`;
  if (typeof value === 'number' || typeof value === 'boolean')
    return `the ${typeof value} ${value}`;
  return `a ${typeof value}`;
}

/** A catalog of nothing but mistakes should not fill the terminal with them. */
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
