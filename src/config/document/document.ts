import { parseText } from './parse-text.ts';
import type { DocumentProblem } from '../../base/errors.ts';
import { createReport, type Report } from './report.ts';
import { listKeys, shapeOf, type SchemaNode } from './schema.ts';
import type { Plain, Shape, ValueOf } from './shape.ts';
import { UNKNOWN_KEY, Walk, type ValueCount } from './walk.ts';

/** A YAML or JSON file, read along what may stand in it. */
export type ConfigDocument<Value = Plain> = {
  readonly value: Value;
  /** Syntax, duplicate keys, aliases; of a document read along a shape, also unknown keys and types. */
  readonly problems: readonly DocumentProblem[];
  /** Unknown keys that a lenient shape lets pass. */
  readonly warnings: readonly DocumentProblem[];
  /** The text is not valid YAML or unfolds to too much: there is no value to check. */
  readonly isBroken: boolean;
  readonly report: Report;
  readonly file: string;
  /** Of the value at a path, or of the nearest thing above it that is written; from 1. */
  readonly lineOf: (path: string) => number;
  /** Whether the value was written without quotes. */
  readonly isUnquoted: (path: string) => boolean;
  /** The paths at which null is written, or nothing: an overlay removes what stands there. */
  readonly nulls: ReadonlySet<string>;
  /** Where in a configuration it stands; empty: it is all of one. */
  readonly path: string;
};

export type TextSource = {
  readonly text: string | Uint8Array;
  /** How the file is named in problems. */
  readonly file: string;
  readonly publicKeys: ReadonlySet<string>;
  /** Shared by texts that are bounded together. */
  readonly count?: ValueCount;
  /** Where in a configuration the text stands; absent: it is all of one. */
  readonly path?: string;
  /** The lines as problems show them; absent: those of the text, with secret values masked. */
  readonly shownLines?: readonly string[];
};

/**
 * Reads a document along a schema, which is to be checked afterwards: an unknown key holds `{}`, and a
 * value of another type stays.
 */
export const readAlongSchema = (
  source: Omit<TextSource, 'publicKeys'> & Partial<TextSource>,
  schema: SchemaNode,
): ConfigDocument =>
  read({ publicKeys: listKeys(schema), ...source }, shapeOf(schema), true) as ConfigDocument;

/**
 * Reads a document along a shape, strictly: unknown keys and values of another type are problems and
 * left out of the value.
 */
export const readAlongShape = <S extends Shape>(
  source: TextSource,
  shape: S,
): ConfigDocument<ValueOf<S>> => read(source, shape, false) as ConfigDocument<ValueOf<S>>;

/**
 * In YAML 1.1, of which JSON is a part: keys of records match without regard to case; a plain scalar
 * where text is wanted keeps its written text (`4.20` is not the number 4.2); an empty value counts as
 * absent.
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
