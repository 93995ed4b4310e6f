import { maxOf } from '../../base/lists.ts';
import { escapeCharacter, toPrintable } from '../../base/text/words.ts';

/** Words of this program, and `code`: texts of unknown origin, which must not take effect. */
export type Phrase = readonly (string | { readonly code: string })[];

export type ReportTable = {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly Phrase[])[];
};

/** A report that begins with the most important facts, as text for a terminal or as Markdown. */
export type Report = {
  readonly title: Phrase;
  /** Sentences by their labels. */
  readonly summary: readonly (readonly [label: string, sentence: Phrase])[];
  readonly tables: readonly ReportTable[];
  readonly notes: readonly Phrase[];
};

/** Formats a report for a terminal: labels in a column, then tables indented below their titles. */
export function formatReport({ summary, tables, notes }: Report): string {
  const width =
    2 +
    maxOf(
      summary.map(([label]) => label.length),
      0,
    );
  return [
    ...summary.map(([label, sentence]) => `${label.padEnd(width)}${toText(sentence)}`),
    ...notes.map((note) => `note: ${toText(note)}`),
    ...tables.flatMap((table) => ['', table.title, ...formatRows(table)]),
    '',
  ].join('\n');
}

function formatRows({ head, rows }: ReportTable): readonly string[] {
  const lines = [head, ...rows.map((row) => row.map(toText))];
  const widths = head.map((_, column) =>
    maxOf(
      lines.map((line) => line[column]?.length ?? 0),
      0,
    ),
  );
  return lines.map((line) =>
    `  ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
  );
}

const toText = (phrase: Phrase): string =>
  phrase.map((piece) => (typeof piece === 'string' ? piece : toPrintable(piece.code))).join('');

/**
 * Formats GitHub Flavored Markdown. Each text of unknown origin is a code span, so that no link,
 * mention or HTML in it takes effect.
 */
export function formatMarkdownReport({ title, summary, tables, notes }: Report): string {
  return [
    `## ${toMarkdown(title)}`,
    '',
    ...summary.map(([label, sentence]) => `- **${label}**: ${toMarkdown(sentence)}`),
    ...notes.map((note) => `- note: ${toMarkdown(note)}`),
    ...tables.flatMap(({ title, head, rows }) => [
      '',
      `### ${title}`,
      '',
      formatRow(head),
      formatRow(head.map(() => '---')),
      ...rows.map((row) => formatRow(row.map(toMarkdown))),
    ]),
    '',
  ].join('\n');
}

const formatRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const toMarkdown = (phrase: Phrase): string =>
  phrase.map((piece) => (typeof piece === 'string' ? piece : toCodeSpan(piece.code))).join('');

/**
 * Makes a code span. A code span (GFM 6.3) ends at a backtick, and a cell of a table (GFM 4.10) at
 * a bar anywhere in it: both are written as escapes, like control characters.
 */
const toCodeSpan = (text: string): string =>
  text === '' ? '' : `\`${toPrintable(text).replaceAll(/[`|]/g, escapeCharacter)}\``;
