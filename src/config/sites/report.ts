import type { LineCounter } from 'yaml';
import { maskLines } from '../masked-lines.ts';
import type { ConfigProblem } from '../problem.ts';
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
    const path = typeof place === 'string' ? place : (place.path ?? '');
    const offset = typeof place === 'string' ? marks.offsetOf(place) : place.offset;
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    masked ??= maskLines(text, PUBLIC_KEYS);
    const shown = maskUserInfo(masked[line - 1] ?? '');
    return {
      file,
      line: Math.max(1, line),
      column: Math.max(1, col),
      path: shownPath ?? path,
      problem,
      lineText: hideValue ? shown.replace(/^([^:]*:).*$/, '$1') : shown,
      ...(hint !== undefined && { hint }),
    };
  };
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

/** User and password of URLs, however broken the URL is: up to the last @ of the word. */
const maskUserInfo = (text: string): string => text.replaceAll(/\/\/\S*@/g, '//[redacted]@');

const MAX_SHOWN = 200;

function quote(value: string): string {
  const shown = maskUserInfo(value);
  return JSON.stringify(shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}...` : shown);
}
