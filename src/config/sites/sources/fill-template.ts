import { findNearest } from '../../document/edit-distance.ts';
import { printable } from './read-path.ts';

/** A text with holes: `{{ column }}`, and `{{ '{{' }}` for two braces as they are. */
export type Template = {
  readonly parts: readonly (string | Hole)[];
  /** Braces that are no hole. Lines from 1. */
  readonly faults: readonly { readonly line: number; readonly problem: string }[];
};

export type Hole = {
  readonly column: string;
  readonly line: number;
  /** White space that its line begins with. */
  readonly indent: string;
};

export const isColumnName = (text: string): boolean => /^[A-Za-z_][A-Za-z0-9_.-]*$/.test(text);

const HOLE = /\{\{[ \t]*(?:('\{\{')|([^{}\r\n]*?))[ \t]*\}\}|\{\{/g;

export function parseTemplate(text: string): Template {
  const parts: (string | Hole)[] = [];
  const faults: { line: number; problem: string }[] = [];
  const position = { line: 1, at: 0 };
  let end = 0;
  for (const match of text.matchAll(HOLE)) {
    const [whole, braces, column] = match;
    const line = countLines(text, position, match.index);
    parts.push(text.slice(end, match.index));
    end = match.index + whole.length;
    if (braces !== undefined) parts.push('{{');
    else if (column !== undefined && isColumnName(column)) {
      parts.push({ column, line, indent: indentAt(text, match.index) });
    } else {
      const problem = `"${printable(whole)}" is no hole: write {{ column }}, or {{ '{{' }} for braces that are meant`;
      faults.push({ line, problem });
    }
  }
  parts.push(text.slice(end));
  return { parts, faults };
}

/** Counts on from where it stopped the last time. */
function countLines(text: string, position: { line: number; at: number }, index: number): number {
  for (; position.at < index; position.at++) {
    if (text.charCodeAt(position.at) === 10) position.line++;
  }
  return position.line;
}

function indentAt(text: string, index: number): string {
  const start = text.lastIndexOf('\n', index - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start, index))?.[0] ?? '';
}

export const holesOf = ({ parts }: Template): readonly Hole[] =>
  parts.filter((part) => typeof part === 'object');

/**
 * Puts the texts of one row into the holes. Of a text with line breaks, every line but the first gets
 * the indentation of the hole's line, so that `|` and a line with nothing but the hole take a whole
 * certificate; line breaks at its end are dropped. What was put in is not searched for holes.
 */
export function fillTemplate({ parts }: Template, cells: ReadonlyMap<string, string>): string {
  return parts
    .map((part) =>
      typeof part === 'string' ? part : indentLines(cells.get(part.column) ?? '', part.indent),
    )
    .join('');
}

const indentLines = (text: string, indent: string): string =>
  text
    .split(/\r\n|\n|\r/)
    .map((line, index) => (index === 0 || line === '' ? line : `${indent}${line}`))
    .join('\n')
    .replace(/\n+$/, '');

/** What must not be put into YAML (1.2.2, 5.1), or undefined. Tabs and line breaks may. */
export function findValueFault(text: string): string | undefined {
  // eslint-disable-next-line no-control-regex -- they are what is looked for
  if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]/.test(text)) return 'has control characters';
  if (/\p{Surrogate}/u.test(text)) return 'has half a surrogate pair';
  return undefined;
}

/** `: did you mean "x"?`, or nothing. */
export function suggest(word: string, candidates: Iterable<string>): string {
  const nearest = findNearest(
    word,
    [...candidates].filter((candidate) => candidate !== word),
  );
  return nearest === undefined ? '' : `: did you mean "${nearest}"?`;
}
