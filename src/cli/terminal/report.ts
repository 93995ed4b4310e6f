import { formatProblem } from '../../base/errors.ts';
import { maxOf } from '../../base/lists.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import { escapeCharacter, formatSize, toPrintable } from '../../base/text/words.ts';
import type { CliHost } from '../host.ts';
import { writeResult, type OutputFormat } from './output.ts';

/*
 * Owns the form of every result: a value for programs, and one description of it for people, from which its text and
 * its Markdown are made.
 */

/** Words of this program, and `code`: texts of unknown origin, which must not take effect. */
export type Phrase = readonly (string | { readonly code: string })[];

/** Makes a phrase of a template: its words are of this program, texts between them of unknown origin. */
export const say = (
  words: TemplateStringsArray,
  ...values: readonly (string | number | Phrase)[]
): Phrase =>
  words.flatMap((word, index) => [...(word === '' ? [] : [word]), ...toPieces(values[index])]);

const toPieces = (value: string | number | Phrase = []): Phrase =>
  typeof value === 'object' ? value : [typeof value === 'string' ? { code: value } : String(value)];

export type ReportTable = {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly Phrase[])[];
};

/** A part of a report; an empty line separates others. */
export type ReportBlock =
  | { readonly type: 'line'; readonly indent: number; readonly phrase: Phrase }
  /** A line with a label; without one, it continues the line before. `width` is that of the column of labels. */
  | {
      readonly type: 'row';
      readonly indent: number;
      readonly width: number;
      readonly label: string;
      readonly phrase: Phrase;
    }
  | { readonly type: 'title'; readonly title: string }
  /** Lines that stay as they are, such as problems with their places. */
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'table' } & ReportTable);

/** A report for people, the most important facts first. The title is for Markdown alone. */
export type Report = { readonly title: Phrase; readonly body: readonly ReportBlock[] };

/** A line; its phrase may be empty. */
export const lineOf = (phrase: Phrase, indent = 0): ReportBlock => ({
  type: 'line',
  indent,
  phrase,
});

export const gap: ReportBlock = lineOf([]);

/** A sentence by its label; the label of a sentence that continues another is empty. */
export type ReportRow = readonly [label: string, sentence: Phrase];

export const listRows = (
  { indent = 0, width }: { readonly indent?: number; readonly width: number },
  rows: readonly ReportRow[],
): readonly ReportBlock[] =>
  rows.map(([label, phrase]) => ({ type: 'row', indent, width, label, phrase }));

/** Lines with labels in a column that is as wide as the longest of them. */
export const summarize = (rows: readonly ReportRow[]): readonly ReportBlock[] =>
  listRows(
    {
      width:
        2 +
        maxOf(
          rows.map(([label]) => label.length),
          0,
        ),
    },
    rows,
  );

/** Text as it is; no block if it is empty. */
export const quoteText = (text: string): readonly ReportBlock[] =>
  text === '' ? [] : [{ type: 'text', text }];

/** Sentences under one label, which the first of them has. */
export const underLabel = (label: string, phrases: readonly Phrase[]): readonly ReportRow[] =>
  phrases.map((phrase, index) => [index === 0 ? label : '', phrase]);

export const rowsOf = (label: string, phrases: readonly Phrase[]): readonly ReportRow[] =>
  phrases.map((phrase) => [label, phrase]);

/** The first of some blocks, and how many more there are. */
export const listShown = (
  blocks: readonly ReportBlock[],
  most: number,
  what = '',
): readonly ReportBlock[] =>
  blocks.length <= most
    ? blocks
    : [
        ...blocks.slice(0, most),
        lineOf([`${what}and ${blocks.length - most} more; -o json lists all`]),
      ];

/** Problems with their places, as they are reported elsewhere. */
export const quoteProblems = (
  problems: readonly Parameters<typeof formatProblem>[0][],
): readonly ReportBlock[] =>
  problems.map((problem) => ({ type: 'text', text: formatProblem(problem) }));

/** The report of a file that is complete: its name and size, and rows about it. */
export const describeWhole = (name: string, size: number, rows: readonly ReportRow[]): Report => ({
  title: [{ code: name }],
  body: [
    lineOf(say`${name} is complete: ${formatSize(size)}`),
    ...listRows({ indent: 2, width: 10 }, rows),
  ],
});

export const nextStep = (command: string): ReportBlock => lineOf(say`next: ${command}`);

/** Prints a result: its value as JSON with sorted keys, or its description as text or Markdown. */
export const writeReport = <Value extends Json>(
  { host, outputFormat }: { readonly host: CliHost; readonly outputFormat: OutputFormat },
  value: Value,
  describe: (value: Value) => Report,
): Promise<void> => writeResult(host, formatAs(outputFormat, value, describe));

/** A result in a format; a line break ends it. */
export function formatAs<Value extends Json>(
  format: OutputFormat,
  value: Value,
  describe: (value: Value) => Report,
): string {
  if (format === 'json') return formatReadableJson(value);
  return (format === 'markdown' ? formatMarkdownReport : formatReport)(describe(value));
}

/** Formats a report for a terminal: labels in a column, tables indented below their titles. */
export const formatReport = ({ body }: Report): string =>
  [...body.flatMap(formatBlock), ''].join('\n');

function formatBlock(block: ReportBlock): readonly string[] {
  switch (block.type) {
    case 'line':
      return [`${' '.repeat(block.indent)}${toText(block.phrase)}`];
    case 'row':
      return [
        `${' '.repeat(block.indent)}${block.label.padEnd(block.width)}${toText(block.phrase)}`,
      ];
    case 'title':
      return [block.title];
    case 'text':
      return [block.text];
    case 'table':
      return ['', block.title, ...formatRows(block)];
  }
}

function formatRows({ head, rows }: ReportTable): readonly string[] {
  const lines = [head, ...rows.map((row) => row.map(toText))];
  const widths = head.map((_, column) =>
    maxOf(
      lines.map((cells) => cells[column]?.length ?? 0),
      0,
    ),
  );
  return lines.map((cells) =>
    `  ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
  );
}

const toText = (phrase: Phrase): string =>
  phrase.map((piece) => (typeof piece === 'string' ? piece : toPrintable(piece.code))).join('');

/**
 * Formats GitHub Flavored Markdown. Each text of unknown origin is a code span, so that no link,
 * mention or HTML in it takes effect.
 */
export const formatMarkdownReport = ({ title, body }: Report): string =>
  [`## ${toMarkdown(title)}`, '', ...body.flatMap(formatMarkdownBlock), ''].join('\n');

function formatMarkdownBlock(block: ReportBlock): readonly string[] {
  switch (block.type) {
    case 'line':
      return block.phrase.length === 0
        ? []
        : [`${block.indent > 0 ? '  ' : ''}- ${toMarkdown(block.phrase)}`];
    case 'row':
      return [
        block.label === ''
          ? `  - ${toMarkdown(block.phrase)}`
          : `- **${block.label.trim()}**: ${toMarkdown(block.phrase)}`,
      ];
    case 'title':
      return ['', `### ${block.title}`, ''];
    case 'text':
      return quoteMarkdown(block.text);
    case 'table':
      return [
        '',
        `### ${block.title}`,
        '',
        formatRow(block.head),
        formatRow(block.head.map(() => '---')),
        ...block.rows.map((row) => formatRow(row.map(toMarkdown))),
      ];
  }
}

/** A fenced code block (GFM 4.5), which ends at a fence that is as long as its own. */
function quoteMarkdown(text: string): readonly string[] {
  const fence = '`'.repeat(
    3 +
      maxOf(
        [...text.matchAll(/`+/g)].map(([run]) => run.length),
        0,
      ),
  );
  return ['', `${fence}text`, text, fence, ''];
}

const formatRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const toMarkdown = (phrase: Phrase): string =>
  phrase.map((piece) => (typeof piece === 'string' ? piece : toCodeSpan(piece.code))).join('');

/** A code span (GFM 6.3) ends at a backtick, a cell of a table (GFM 4.10) at a bar: both are escaped. */
const toCodeSpan = (text: string): string =>
  text === '' ? '' : `\`${toPrintable(text).replaceAll(/[`|]/g, escapeCharacter)}\``;
