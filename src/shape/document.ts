import type { DocumentProblem } from '../base/errors.ts';
import { suggestName } from '../base/text/words.ts';
import { Walk, type ValueCount } from './decode-yaml.ts';
import { decode, formatSteps, GO_RULES, YAML_RULES, type Decoded, type Finding } from './decode.ts';
import { type ParsedText, parseText } from './parse-text.ts';
import { createReport, type ReportProblem, type ReportDetails } from './report.ts';
import { coreOf, type Plain, type Shape, type TypeOf } from './shape.ts';

/*
 * Reads configuration documents: the text of a YAML or JSON file comes in, and a value with its
 * problems, lines and nulls leaves, read along a schema or a shape. The room must not know the
 * rules of a configuration: it reports syntax, keys and types only.
 */

/** A YAML or JSON file, read along the shape of its document. */
export type ConfigDocument<Value = Plain> = {
  readonly value: Value;
  /** Problems of syntax, duplicate keys and aliases; along a shape, also unknown keys and types. */
  readonly problems: readonly DocumentProblem[];
  /** Unknown keys that a lenient shape lets pass. */
  readonly warnings: readonly DocumentProblem[];
  /** True if the text is not valid YAML or expands to too much: there is no value to check. */
  readonly isBroken: boolean;
  readonly report: ReportProblem;
  readonly file: string;
  /** The file of the value at a path, if values are of several files. */
  readonly fileOf?: (path: string) => string;
  /** Line of the value at a path, or of the nearest written value above it; from 1. */
  readonly lineOf: (path: string) => number;
  /** The text of a scalar that was written without quotes; undefined for any other value. */
  readonly writtenOf: (path: string) => string | undefined;
  /** The paths at which null or no value is written: an overlay removes the values at these paths. */
  readonly nulls: ReadonlySet<string>;
  /** Its place in a configuration; empty if it is a whole configuration. */
  readonly path: string;
};

export type TextSource = {
  readonly text: string | Uint8Array;
  /** The text, if it was parsed before. */
  readonly parsed?: ParsedText;
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

export const UNKNOWN_KEY = 'config.unknown-key';

/** Reads a document along a shape: unknown keys and values of another shape are problems, and left out. */
export function decodeYaml<S extends Shape>(
  source: TextSource,
  shape: S,
): ConfigDocument<TypeOf<S>> {
  const document = readYaml(source, shape);
  return judge(document, shape, decode(shape, document.value ?? {}, YAML_RULES));
}

function judge<S extends Shape>(
  document: ConfigDocument<unknown>,
  shape: S,
  { value, findings }: Decoded<unknown>,
): ConfigDocument<TypeOf<S>> {
  const isWarning = ({ code }: Finding): boolean =>
    code === 'unknown' && shape.kind === 'record' && shape.others === 'warned';
  const list = (isWarned: boolean): readonly DocumentProblem[] =>
    findings
      .filter((finding) => isWarning(finding) === isWarned)
      .map((finding) => document.report(formatSteps(finding.path), ...explain(finding)));
  const problems = [...document.problems, ...list(false)];
  return {
    ...document,
    value: (value ?? {}) as TypeOf<S>,
    problems: problems.toSorted((a, b) => a.line - b.line || a.column - b.column),
    warnings: list(true),
  };
}

/** A place in a document that a person wrote. */
export type WrittenPlace = {
  readonly document: Pick<ConfigDocument<unknown>, 'report' | 'lineOf' | 'file'>;
  readonly path: string;
};

/** A value that was made of values of other documents. */
export type MadeValue = {
  readonly value: unknown;
  readonly placeOf: (path: string) => WrittenPlace;
};

/** Reports problems of one document at the places of its values in others. */
export const reportElsewhere = (
  placeOf: MadeValue['placeOf'],
): Pick<ConfigDocument, 'report' | 'lineOf'> => ({
  report(place, problem, details) {
    const { document, path } = placeOf(typeof place === 'string' ? place : (place.path ?? ''));
    return document.report(path, problem, { ...details, shownPath: path });
  },
  lineOf(written) {
    const { document, path } = placeOf(written);
    return document.lineOf(path);
  },
});

/** Reads a made value along a shape, members as Go's JSON decoder matches them; a problem names the place where its value was written. */
export function decodeMade<S extends Shape>(
  { value, placeOf }: MadeValue,
  shape: S,
): ConfigDocument<TypeOf<S>> {
  const document: ConfigDocument<unknown> = {
    value,
    problems: [],
    warnings: [],
    isBroken: false,
    ...reportElsewhere(placeOf),
    file: placeOf('').document.file,
    fileOf: (path) => placeOf(path).document.file,
    writtenOf: () => undefined,
    nulls: new Set(),
    path: '',
  };
  return judge(document, shape, decode(shape, value, GO_RULES));
}

/** A finding in the words of Go's YAML decoder, which the peers print. */
function explain({ code, path, shape, found, why = '' }: Finding): [string, ReportDetails] {
  if (code === 'unknown') {
    const name = String(path.at(-1));
    const hint = suggestName(name, shape.kind === 'record' ? Object.keys(shape.members) : []);
    return [`unknown field "${name}"`, { code: UNKNOWN_KEY, hint, hideValue: true }];
  }
  if (code !== 'type') return [why, { code: 'config.schema' }];
  const type = TYPES[coreOf(shape).kind] ?? '';
  return [`cannot unmarshal ${nameGoType(found)} into a field${type}`, { code: 'config.type' }];
}

const TYPES: Readonly<Record<string, string>> = {
  text: ' of type string',
  choice: ' of type string',
  flag: ' of type bool',
  integer: ' of type int',
  list: ' of type list',
  mapping: ' of type map',
  record: ' of type object',
};

function nameGoType(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/**
 * Reads YAML 1.1, of which JSON is a part, as plain data that may break the shape: keys of records
 * match without regard to case; a plain scalar in a place for text keeps its written text (`4.20`
 * is not the number 4.2); an empty value counts as absent; the value of an unknown key is `{}`.
 */
export function readYaml(source: TextSource, shape: Shape): ConfigDocument {
  const { count = { values: 0 }, path = '' } = source;
  const { parsed = parseText(source.text) } = source;
  const walk = new Walk(parsed, count);
  const report = createReport({ ...parsed, ...source, text: parsed.text, offsetOf: walk.offsetOf });
  const faults = parsed.faults.map(({ offset, problem }) =>
    report({ offset }, `not valid YAML: ${problem}`, { code: 'config.syntax' }),
  );
  const isRead = faults.length === 0;
  const value = isRead ? (walk.read(parsed.document.contents, shape, path) ?? null) : {};
  const problems = walk.findings.map((finding) => report(finding, finding.problem, finding));
  return {
    value,
    problems: [...faults, ...problems],
    warnings: [],
    isBroken: !isRead || walk.isTooLarge,
    report,
    file: source.file,
    lineOf: (path) => Math.max(1, parsed.lines.linePos(walk.offsetOf(path)).line),
    writtenOf: walk.writtenOf,
    nulls: walk.nulls,
    path,
  };
}

/** Lenient reading: a value of another type counts as absent, because the schema has already reported it. */
export type View = {
  readonly document: ConfigDocument;
  readonly report: ReportProblem;
  text: (path: string) => string | undefined;
  flag: (path: string) => boolean | undefined;
  number: (path: string) => number | undefined;
  /** The paths of a list's items. */
  items: (path: string) => readonly string[];
  /** The directory to which a relative path in this value is relative. */
  directoryOf: (path: string) => string;
};

type ViewOptions = {
  /** Absent: no value is a path. */
  readonly directoryOf?: View['directoryOf'];
  /** A prefix that readers do not see, of the texts at some paths. */
  readonly hidden?: { readonly prefix: RegExp; readonly at: RegExp };
};

export function createView(
  document: ConfigDocument,
  { directoryOf = () => '', hidden }: ViewOptions = {},
): View {
  const read = (path: string): Plain | undefined => readPath(document.value, path);
  return {
    document,
    directoryOf,
    report: document.report,
    text: (path) => {
      const value = read(path);
      if (typeof value !== 'string' || value === '') return undefined;
      return hidden?.at.test(path) === true ? value.replace(hidden.prefix, '') : value;
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
export function readItemTexts(
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
