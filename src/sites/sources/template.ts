import { LineCounter } from 'yaml';
import { formatSize, appendSuggestion, printable } from '../../base/text/words.ts';
import { explainBroken } from '../../base/text/utf8.ts';
import { parseAllDocuments, findYamlExcess } from '../../shape/parse-text.ts';
import {
  findContexts,
  type HoleContext,
  indentValue,
  normalizeValue,
  writeValue,
} from './holes.ts';
import { isColumnName } from '../../table/index.ts';
import { MAX_FILE } from './list.ts';

/* Owns texts with holes, and the filling of them. */

/** A text with holes: `{{ column }}`, and `{{ '{{' }}` for two braces as they are. */
export type Template = {
  readonly parts: readonly (string | Hole)[];
  /** Braces that are not a placeholder. Lines from 1. */
  readonly faults: readonly { readonly line: number; readonly problem: string }[];
};

export type Hole = {
  readonly column: string;
  readonly line: number;
  /** White space at the beginning of its line. */
  readonly indent: string;
  /** Place of the hole in YAML; without it, values are put in unchanged. */
  readonly context?: HoleContext;
};

/** Braces, a name, or another text, in time that grows with the size of the text. */
const HOLE = /\{\{(?:[ \t]*('\{\{')[ \t]*|[ \t]*([^{}\s]+)[ \t]*|[^{}\r\n]*)\}\}|\{\{/g;

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
      const problem = `"${printable(whole)}" is not a placeholder: write {{ column }}, or {{ '{{' }} for literal braces`;
      faults.push({ line, problem });
    }
  }
  parts.push(text.slice(end));
  return { parts, faults };
}

export const holesOf = ({ parts }: Template): readonly Hole[] =>
  parts.filter((part) => typeof part === 'object');

const PLACEHOLDER = 'hole';

/** Adds the YAML context of each hole to a template. JSON is YAML, too. */
export function placeHoles(template: Template): Template {
  const { parts, faults } = template;
  const holes = holesOf(template);
  if (holes.length === 0 || faults.length > 0) return template;
  const words = parts.map((part) => (typeof part === 'string' ? part : PLACEHOLDER));
  const text = words.join('');
  const broken = findSyntaxFault(text);
  if (broken) return { parts, faults: [broken] };
  let at = 0;
  const places = words.map((word) => ({ start: at, end: (at += word.length) }));
  const contexts = findContexts(
    text,
    places.filter((_, index) => typeof parts[index] === 'object'),
  );
  const placed = new Map(holes.map((hole, index) => [hole, contexts[index]]));
  return {
    parts: parts.map((part) => {
      const context = typeof part === 'string' ? undefined : placed.get(part);
      return typeof part === 'object' && context ? { ...part, context } : part;
    }),
    faults: holes
      .filter((hole) => !placed.get(hole))
      .map(({ column, line }) => ({
        line,
        problem: `hole "${column}" is not inside a text of the YAML`,
      })),
  };
}

/**
 * Puts the values of one row into the holes, so that YAML reads each value unchanged: escaped in
 * quotes; in a `|` or on its own line, each line with the indentation of the hole's line. Line breaks at its end are dropped. Inserted text is not searched for holes.
 */
export function fillTemplate({ parts }: Template, cells: ReadonlyMap<string, string>): string {
  return parts
    .map((part) => (typeof part === 'string' ? part : fillHole(part, cells.get(part.column) ?? '')))
    .join('');
}

/** The origin of a place in a filled text: line in the template, and hole whose value it is. From 1. */
export function traceFilled(
  { parts }: Template,
  cells: ReadonlyMap<string, string>,
  place: { readonly line: number; readonly column: number },
): { readonly line: number; readonly hole?: Hole } {
  let before = '';
  let added = 0;
  for (const part of parts) {
    const text = typeof part === 'string' ? part : fillHole(part, cells.get(part.column) ?? '');
    const lines = before.split('\n');
    const line = lines.length;
    if (line > place.line) break;
    const breaks = text.split('\n').length - 1;
    if (typeof part === 'object') {
      if (isWithin(place, { line, text: lines.at(-1) ?? '', filled: text })) {
        return { line: part.line, hole: part };
      }
      added += breaks;
    }
    before += text;
  }
  return { line: place.line - added };
}

/** True if a place is in the value of a hole, or in the YAML scalar before it in its line. */
function isWithin(
  place: { readonly line: number; readonly column: number },
  hole: { readonly line: number; readonly text: string; readonly filled: string },
): boolean {
  const lines = hole.filled.split('\n');
  if (place.line > hole.line) return place.line < hole.line + lines.length;
  const end = hole.text.length + (lines[0] ?? '').length;
  // A key, or another item of a flow collection, is not part of the scalar.
  return place.column <= end + 1 && !/[:,]\s|[[{]/.test(hole.text.slice(place.column - 1));
}

/** The fault of a value that must not be put into YAML (1.2.2, 5.1); tabs and line breaks are allowed. */
export function findValueFault(text: string): string | undefined {
  // eslint-disable-next-line no-control-regex -- they are what is looked for
  if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]/.test(text)) return 'has control characters';
  if (text.length > MAX_FILE) return `is too long: a file may have at most ${formatSize(MAX_FILE)}`;
  return explainBroken(text);
}

/** `: did you mean "x"?`, or nothing. */
export const suggest = (word: string, candidates: Iterable<string>): string =>
  appendSuggestion(
    word,
    [...candidates].filter((candidate) => candidate !== word),
    ': ',
  );

/** Continues counting from the last position. */
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

function findSyntaxFault(text: string): Template['faults'][number] | undefined {
  const lineCounter = new LineCounter();
  const excess = findYamlExcess(text, lineCounter);
  if (excess) {
    const { line } = lineCounter.linePos(excess.offset);
    return { line, problem: `is not YAML: ${excess.message}` };
  }
  const documents = parseAllDocuments(text, {
    uniqueKeys: false,
    prettyErrors: false,
    lineCounter,
    logLevel: 'silent',
  });
  const [error] = 'empty' in documents ? [] : documents.flatMap(({ errors }) => errors);
  if (!error) return undefined;
  const reason = error.code.toLowerCase().replaceAll('_', ' ');
  return {
    line: lineCounter.linePos(error.pos[0]).line,
    problem: `is not YAML with a word in place of each hole: ${reason}`,
  };
}

function fillHole({ context, indent }: Hole, text: string): string {
  const value = normalizeValue(text);
  return context ? writeValue(value, context, indent) : indentValue(value, indent);
}
