import { objectOrEmpty } from '../base/lists.ts';
import { type TextFinding, type ValueCount, Walk } from '../shape/decode-yaml.ts';
import { parseText, type TextFault } from '../shape/parse-text.ts';
import { isSerdeFloat, SERDE } from '../shape/serde-scalar.ts';
import { FREE } from '../shape/shape.ts';

/*
 * This file owns the reading of a text as nmstate reads it. A document in a resource of Kubernetes, or in the
 * configuration of a site, was read by Go first, and comes here in its normal form or as values.
 */

export type NetworkText = {
  /** An empty object if there is a problem. */
  readonly value: unknown;
  /** Why the text has no value, as a sentence without its subject; it quotes no part of the text. */
  readonly problem?: string;
  /** The same problem apart from its place. */
  readonly fault?: TextPlace & { readonly problem: string };
  readonly writtenOf: WrittenOf;
  /** The value at a path, or the nearest one above it; undefined if the document has no part of it. */
  readonly placeOf: (path: string) => TextPlace | undefined;
};

/** Line and column, from 1. */
export type TextPlace = { readonly line: number; readonly column: number };

/** The text of a value that was written without quotes, by its path; undefined for any other. */
export type WrittenOf = (path: string) => string | undefined;

/** Values of a network with some thousand interfaces. */
const MOST_VALUES = 60_000;

/** A value on a line of its own has indentation, key, colon, space, value and line break. */
const LEXEMES_OF_VALUE = 6;

/** @param count counts the values, and limits them */
export function readNetworkText(
  text: string,
  count: ValueCount = { values: 0, most: MOST_VALUES },
): NetworkText {
  const { most = MOST_VALUES } = count;
  // nmstatectl does the same: texts from web pages have such spaces.
  const parsed = parseText(text.replaceAll('\u00a0', ' '), LEXEMES_OF_VALUE * most);
  const walk = new Walk(parsed, count, SERDE);
  const isParsed = parsed.faults.length === 0;
  const value = (isParsed ? walk.read(parsed.document.contents, FREE, '') : undefined) ?? {};
  const [fault] = [...parsed.faults, ...walk.findings.map(explainFinding)];
  const placeAt = (offset: number): TextPlace => {
    const { line, col } = parsed.lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const what = walk.isTooLarge ? 'too large' : 'not YAML';
  return {
    value: fault ? {} : value,
    ...(fault && describeFault(what, fault.problem, placeAt(fault.offset))),
    writtenOf: walk.writtenOf,
    placeOf: (path) => (hasPart(value, path) ? placeAt(walk.offsetOf(path)) : undefined),
  };
}

const describeFault = (
  what: string,
  problem: string,
  place: TextPlace,
): Required<Pick<NetworkText, 'problem' | 'fault'>> => ({
  problem: `is ${what}: line ${place.line}: ${problem}`,
  fault: { ...place, problem: `is ${what}: ${problem}` },
});

const hasPart = (value: unknown, path: string): boolean =>
  Object.hasOwn(objectOrEmpty(value), path.replace(/[.[].*$/, ''));

function explainFinding({ code, problem, offset }: TextFinding): TextFault {
  const subject = code === 'config.duplicate-key' ? 'a key ' : 'a value ';
  const why = problem.replace(/^not valid YAML: /, '');
  return { offset, problem: why.startsWith('is ') ? `${subject}${why}` : why };
}

/** True for `1500.0` and `1e3`, which nmstate does not take for whole numbers. */
export const isFloat = (written: string | undefined): boolean =>
  written !== undefined && isSerdeFloat(written);
