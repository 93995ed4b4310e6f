import { readFileSync } from 'node:fs';
import type { DocumentProblem } from '../base/errors.ts';
import { PACKAGE_ROOT } from '../base/program.ts';
import { UNKNOWN_KEY, Walk, type ValueCount } from './decode-yaml.ts';
import { parseText } from './parse-text.ts';
import { createReport, type Report } from './report.ts';
import {
  FLAG,
  FREE,
  INTEGER,
  list,
  record,
  TEXT,
  type Shape,
  type Plain,
  type ValueOf,
} from './shape.ts';

/*
 * Reads configuration documents: the text of a YAML or JSON file comes in, and a value with its
 * problems, lines and nulls leaves, read along a schema or a shape. The room must not know the
 * rules of a configuration: it reports syntax, keys and types only.
 */

/** The part of JSON Schema draft 7 that is used. */
export type SchemaNode = {
  readonly title?: string;
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'boolean' | 'integer';
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly items?: SchemaNode;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly minLength?: number;
};

/**
 * The schemas that ship with the program, by the documents that they describe. `init` writes each
 * at the same path next to the file that it begins, so that editors find it on every machine.
 */
export const SCHEMA = {
  appliance: 'schema/appliance-config.schema.json',
  installation: 'schema/image-based-installation-config.schema.json',
  site: 'schema/site.schema.json',
} as const;

type SchemaPath = (typeof SCHEMA)[keyof typeof SCHEMA];

export const readSchemaText = (path: SchemaPath): string =>
  readFileSync(new URL(path, PACKAGE_ROOT), 'utf8');

const schemas = new Map<SchemaPath, SchemaNode>();

export function readSchema(path: SchemaPath = SCHEMA.appliance): SchemaNode {
  const schema = schemas.get(path) ?? (JSON.parse(readSchemaText(path)) as SchemaNode);
  schemas.set(path, schema);
  return schema;
}

/** The line that names the schema of a YAML file for editors; the path is relative to the file. */
export const formatModeline = (path: string): string => `# yaml-language-server: $schema=${path}\n`;

/** The name of every key on any level, in lower case. */
export function listKeys(node: SchemaNode): ReadonlySet<string> {
  const below = Object.entries(node.properties ?? {}).flatMap(([name, child]) => [
    name.toLowerCase(),
    ...listKeys(child.items ?? child),
  ]);
  return new Set(below);
}

/** The shape for reading a document that the schema describes. */
function shapeOf({ type, properties, items }: SchemaNode): Shape {
  if (type === 'array') return list(items ? shapeOf(items) : FREE);
  if (type === 'object' && properties) {
    const members = Object.entries(properties).map(
      ([name, node]) => [name, shapeOf(node)] as const,
    );
    return record(Object.fromEntries(members));
  }
  return type === undefined || type === 'object' ? FREE : SCALARS[type];
}

const SCALARS = { string: TEXT, boolean: FLAG, integer: INTEGER } as const;

/** A YAML or JSON file, read along the shape of its document. */
export type ConfigDocument<Value = Plain> = {
  readonly value: Value;
  /**
   * Problems of syntax, duplicate keys and aliases; for a document read along a shape, also
   * unknown keys and types.
   */
  readonly problems: readonly DocumentProblem[];
  /** Unknown keys that a lenient shape lets pass. */
  readonly warnings: readonly DocumentProblem[];
  /** True if the text is not valid YAML or expands to too much: there is no value to check. */
  readonly isBroken: boolean;
  readonly report: Report;
  readonly file: string;
  /** Line of the value at a path, or of the nearest written value above it; from 1. */
  readonly lineOf: (path: string) => number;
  /** True if the value was written without quotes. */
  readonly isUnquoted: (path: string) => boolean;
  /**
   * The paths at which null or no value is written: an overlay removes the values at these paths.
   */
  readonly nulls: ReadonlySet<string>;
  /** Its place in a configuration; empty if it is a whole configuration. */
  readonly path: string;
};

export type TextSource = {
  readonly text: string | Uint8Array;
  /** Name of the file in problems. */
  readonly file: string;
  readonly publicKeys: ReadonlySet<string>;
  /** Shared by texts that are bounded together. */
  readonly count?: ValueCount;
  /** Place of the text in a configuration; absent if it is a whole configuration. */
  readonly path?: string;
  /** The lines that problems show; absent: the lines of the text, with secret values masked. */
  readonly shownLines?: readonly string[];
};

/**
 * Reads a document along a schema, which must be checked afterwards: the value of an unknown key is
 * `{}`, and a value of another type stays.
 */
export const readAlongSchema = (
  source: Omit<TextSource, 'publicKeys'> & Partial<TextSource>,
  schema: SchemaNode,
): ConfigDocument =>
  read({ publicKeys: listKeys(schema), ...source }, shapeOf(schema), true) as ConfigDocument;

/**
 * Reads a document along a shape, strictly: unknown keys and values of another type are problems
 * and left out of the value.
 */
export const readAlongShape = <S extends Shape>(
  source: TextSource,
  shape: S,
): ConfigDocument<ValueOf<S>> => read(source, shape, false) as ConfigDocument<ValueOf<S>>;

/**
 * Reads YAML 1.1, of which JSON is a part: keys of records match without regard to case; a plain
 * scalar in a place for text keeps its written text (`4.20` is not the number 4.2); an empty value
 * counts as absent.
 */
function read(source: TextSource, shape: Shape, keepsAll: boolean): ConfigDocument<unknown> {
  const { count = { values: 0 }, path = '' } = source;
  const parsed = parseText(source.text);
  const walk = new Walk(parsed, { keepsAll, count });
  const report = createReport({ ...parsed, ...source, text: parsed.text, offsetOf: walk.offsetOf });
  const faults = parsed.faults.map(({ offset, problem }) =>
    report({ offset }, `not valid YAML: ${problem}`, { code: 'config.syntax' }),
  );
  const value = faults.length === 0 ? walk.read(parsed.document.contents, shape, path) : undefined;
  const isLenient = shape.kind === 'record' && shape.isLenient === true;
  const list = (isWarning: boolean): readonly DocumentProblem[] =>
    walk.findings
      .filter(({ code }) => (isLenient && code === UNKNOWN_KEY) === isWarning)
      .map((finding) => report(finding, finding.problem, finding));
  return {
    value: value ?? (keepsAll && faults.length === 0 ? null : {}),
    problems: [...faults, ...list(false)],
    warnings: list(true),
    isBroken: faults.length > 0 || walk.isTooLarge,
    report,
    file: source.file,
    lineOf: (path) => Math.max(1, parsed.lines.linePos(walk.offsetOf(path)).line),
    isUnquoted: (path) => walk.isUnquoted(path),
    nulls: walk.nulls,
    path,
  };
}

/**
 * Lenient reading of a document that may break its schema: a value of another type counts as
 * absent, because the schema has already reported it.
 */
export type View = {
  readonly document: ConfigDocument;
  readonly report: Report;
  text: (path: string) => string | undefined;
  flag: (path: string) => boolean | undefined;
  number: (path: string) => number | undefined;
  /** The paths of a list's items. */
  items: (path: string) => readonly string[];
  /** The directory to which a relative path in this value is relative. */
  directoryOf: (path: string) => string;
};

/** @param directoryOf absent: no value is a path */
export function createView(
  document: ConfigDocument,
  directoryOf: View['directoryOf'] = () => '',
): View {
  const read = (path: string): Plain | undefined => readPath(document.value, path);
  return {
    document,
    directoryOf,
    report: document.report,
    text: (path) => {
      const value = read(path);
      return typeof value === 'string' && value !== '' ? value : undefined;
    },
    flag: (path) => {
      const value = read(path);
      return typeof value === 'boolean' ? value : undefined;
    },
    number: (path) => {
      const value = read(path);
      return typeof value === 'number' ? value : undefined;
    },
    items: (path) => {
      const value = read(path);
      return Array.isArray(value) ? value.map((_, index) => `${path}[${index}]`) : [];
    },
  };
}

/** The texts of `list[].member`, each with its path; absent ones are left out. */
export function readTexts(
  view: View,
  list: string,
  member = '',
): readonly { readonly path: string; readonly text: string }[] {
  return view.items(list).flatMap((item) => {
    const path = `${item}${member}`;
    const text = view.text(path);
    return text === undefined ? [] : [{ path, text }];
  });
}

/** The value at a path, undefined if there is no value. */
export function readPath(root: Plain, path: string): Plain | undefined {
  let value: Plain | undefined = root;
  for (const part of path.split(/[.[\]]+/).filter((name) => name !== '')) {
    if (value === null || typeof value !== 'object') return undefined;
    value = Object.hasOwn(value, part)
      ? (value as Readonly<Record<string, Plain>>)[part]
      : undefined;
  }
  return value;
}
