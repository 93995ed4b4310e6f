import type { LineCounter } from 'yaml';
import { withoutUndefined } from '../../base/members.ts';
import { maskLines } from '../../config/document/masked-lines.ts';
import type { ConfigProblem } from '../../config/document/problem.ts';
import { PUBLIC_KEYS } from './public-keys.ts';

export type ReportDetails = {
  readonly hint?: string | undefined;
  /** The path as the peers print it, where it is not the path of the document. */
  readonly shownPath?: string | undefined;
  /** The value on the line is nobody's business: show the line up to its colon. */
  readonly hideValue?: boolean | undefined;
};

/** Makes a problem about the value at a path, or about an offset of the text. */
export type Report = (
  place: string | { readonly offset: number; readonly path?: string },
  problem: string,
  details?: ReportDetails,
) => ConfigProblem;

type Source = {
  readonly text: string;
  readonly file: string;
  readonly lines: LineCounter;
  readonly marks: { offsetOf: (path: string) => number };
};

/** Costs nothing before the first problem: most files have none. */
export function createReporter({ text, file, lines, marks }: Source): Report {
  let masked: readonly string[] | undefined;
  return (place, problem, { hint, shownPath, hideValue = false } = {}) => {
    const { offset, path = '' } =
      typeof place === 'string' ? { offset: marks.offsetOf(place), path: place } : place;
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    masked ??= maskLines(text, PUBLIC_KEYS);
    return {
      file,
      line: Math.max(1, line),
      column: Math.max(1, col),
      path: printable(shownPath ?? path),
      problem: printable(problem),
      lineText: showLine(masked[line - 1] ?? '', hideValue),
      ...withoutUndefined({ hint }),
    };
  };
}

const MAX_SHOWN = 200;
const MAX_VALUE = 1000;

const MAX_TEXT = 1000;

/** Of what others wrote nothing may command a terminal or fill it; a tab keeps its place in the line. */
export function printable(text: string): string {
  const short = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text;
  return short.replaceAll(/(?!\t)\p{Cc}/gu, '?');
}

/** A key of a mapping on one line, as JSON has them. */
const INNER_KEY = /[{,]\s*["']?([\w.-]+)["']?\s*:/g;

/** A line too long to help is left out, and so is one that holds keys nobody knows. */
function showLine(line: string, hideValue: boolean): string {
  if (line.length > MAX_SHOWN) return '';
  const keys = [...line.matchAll(INNER_KEY)].map(([, key = '']) => key.toLowerCase());
  if (!keys.every((key) => PUBLIC_KEYS.has(key))) return '';
  const shown = printable(maskUserInfo(line));
  return hideValue ? shown.replace(/^([^:]*:).*$/, '$1') : shown;
}

// The shapes of the Kubernetes field errors that the peers print behind the path.

export const required = (why: string): string => `Required value: ${why}`;

/** The value as Go's `%q` has it, nearly; long values are cut, secrets of URLs masked. */
export const invalid = (value: string, why: string): string =>
  `Invalid value: ${quote(value)}: ${why}`;

export const unsupported = (value: string, supported: readonly string[]): string =>
  `Unsupported value: ${quote(value)}: supported values: ${supported.map(quote).join(', ')}`;

export const tooMany = (count: number, most: number): string =>
  `Too many: ${count}: must have at most ${most} items`;

/**
 * User and password of URLs, however broken the URL is: up to the last @ of the word. Before the @ of
 * a digest stands none.
 */
const maskUserInfo = (text: string): string =>
  text
    .replaceAll(/\/\/\S*@/g, '//[redacted]@')
    .replaceAll(/[^\s"'=,/@]+:[^\s"'/@]*@(?!sha\d+:)/g, '[redacted]@');

function quote(value: string): string {
  // Not even a part: a suffix could reveal a password.
  if (value.length > MAX_VALUE) return `"[${value.length} characters]"`;
  const shown = maskUserInfo(value);
  return JSON.stringify(shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}...` : shown);
}
