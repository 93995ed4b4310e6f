import { withoutUndefined } from '../../base/lists.ts';
import { maskLines, maskUserInfo } from './masked-lines.ts';
import type { ParsedText } from './parse-text.ts';
import type { DocumentProblem } from '../../base/errors.ts';

export type ReportDetails = {
  /** `config.rule` unless it says more. */
  readonly code?: string | undefined;
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
) => DocumentProblem;

type Source = Pick<ParsedText, 'text' | 'lines'> & {
  readonly file: string;
  /** In lower case: what may be shown. A key that is not among them may be a misspelt secret. */
  readonly publicKeys: ReadonlySet<string>;
  readonly offsetOf: (path: string) => number;
  /** Absent: the lines of the text, with secret values masked. */
  readonly shownLines?: readonly string[];
};

/** Longer texts come from a file that nobody wrote by hand. */
const MAX_TEXT = 1000;

/** Costs nothing before the first problem: most files have none. */
export function createReport(source: Source): Report {
  const { text, lines, file, publicKeys, offsetOf } = source;
  let masked = source.shownLines;
  return (place, problem, { code = 'config.rule', hint, shownPath, hideValue = false } = {}) => {
    const { offset, path = '' } =
      typeof place === 'string' ? { offset: offsetOf(place), path: place } : place;
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    masked ??= maskLines(text, publicKeys);
    const lineText = showLine(masked[line - 1] ?? '', publicKeys);
    return {
      severity: 'error',
      code,
      file,
      line: Math.max(1, line),
      column: Math.max(1, col),
      path: cut(shownPath ?? path),
      problem: cut(problem),
      lineText: hideValue ? lineText.replace(/^([^:]*:).*$/, '$1') : lineText,
      ...withoutUndefined({ hint }),
    };
  };
}

const cut = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text;

/** A key of a mapping on one line, as JSON has them. */
const INNER_KEY = /[{,]\s*["']?([\w.-]+)["']?\s*:/g;

/** A line too long to help is left out, and so is one that holds keys nobody knows. */
function showLine(line: string, publicKeys: ReadonlySet<string>): string {
  if (line.length > MAX_TEXT) return '';
  const keys = [...line.matchAll(INNER_KEY)].map(([, key = '']) => key.toLowerCase());
  return keys.every((key) => publicKeys.has(key)) ? maskUserInfo(line) : '';
}
