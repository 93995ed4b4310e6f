import { stripVTControlCharacters } from 'node:util';
import { maxOf } from '../../base/lists.ts';
import { formatCommand } from '../../base/text/shell.ts';

/* Owns the drawing of our own Markdown on a terminal, as far as the documents of the package use it. */

type Block = {
  readonly kind: 'blank' | 'heading' | 'fence' | 'indented' | 'table' | 'item' | 'text';
  readonly lines: readonly string[];
};

/** Widest text that is easy to read. */
const MOST_COLUMNS = 100;

/** Formats Markdown for a terminal with this many columns, with escapes for bold text. */
export function formatMarkdown(text: string, columns: number): string {
  const width = Math.min(Math.max(columns, 40), MOST_COLUMNS);
  return splitBlocks(text.trimEnd().split('\n'))
    .flatMap((block) => formatBlock(block, width))
    .map((line) => `${line}\n`)
    .join('');
}

/** Beginnings of lines, in the order in which they are tried. */
const STARTS: readonly (readonly [Block['kind'], RegExp])[] = [
  ['blank', /^\s*$/],
  ['heading', /^#+ /],
  ['fence', /^ *```/],
  ['table', /^\|/],
  ['item', /^ *(?:[-*]|\d+\.) /],
  ['indented', /^ {4}/],
];

const kindOf = (line: string): Block['kind'] =>
  STARTS.find(([, start]) => start.test(line))?.[0] ?? 'text';

function splitBlocks(lines: readonly string[]): readonly Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length;) {
    const kind = kindOf(lines[at] ?? '');
    const end = endOf(kind, lines, at);
    blocks.push({ kind, lines: lines.slice(at, end) });
    at = end;
  }
  return blocks;
}

function endOf(kind: Block['kind'], lines: readonly string[], start: number): number {
  let at = start + 1;
  if (kind === 'blank' || kind === 'heading') return at;
  const continues = CONTINUES[kind];
  while (at < lines.length && continues(lines[at] ?? '')) at++;
  return kind === 'fence' ? at + 1 : at;
}

const isText = (line: string): boolean => ['text', 'indented'].includes(kindOf(line));

/** True if a line belongs to the block of the lines above it. */
const CONTINUES: Readonly<
  Record<Exclude<Block['kind'], 'blank' | 'heading'>, (line: string) => boolean>
> = {
  fence: (line) => !/^ *```$/.test(line),
  indented: (line) => kindOf(line) === 'indented',
  table: (line) => kindOf(line) === 'table',
  item: isText,
  text: isText,
};

const formatBlock = ({ kind, lines }: Block, width: number): readonly string[] =>
  FORMATS[kind](lines, width);

const FORMATS: Readonly<
  Record<Block['kind'], (lines: readonly string[], width: number) => readonly string[]>
> = {
  blank: () => [''],
  heading: ([line = '']) => [bold(formatInline(line.replace(/^#+ /, '')))],
  fence: (lines) => lines.slice(1, -1).map((line) => `    ${line}`),
  indented: (lines) => lines,
  table: (lines, width) => formatTable(lines.map(splitRow), width),
  item: (lines, width) => {
    const [mark = ''] = /^ *(?:[-*]|\d+\.) /.exec(lines[0] ?? '') ?? [];
    const [first = '', ...others] = lines;
    const text = joinLines([first.slice(mark.length), ...others]);
    return wrap(text, { width, first: mark, rest: ' '.repeat(mark.length) });
  },
  text: (lines, width) => {
    const [indent = ''] = /^ */.exec(lines[0] ?? '') ?? [];
    return wrap(joinLines(lines), { width, first: indent, rest: indent });
  },
};

const joinLines = (lines: readonly string[]): string =>
  formatInline(lines.map((line) => line.trim()).join(' '));

/** Cells of a row of a table; a bar in a cell is written `\|`. */
const splitRow = (line: string): readonly string[] =>
  line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => formatInline(cell.trim().replaceAll(String.raw`\|`, '|')));

/** Formats a table: in columns if they fit, otherwise each row as a list of its cells. */
function formatTable(
  [head = [], , ...rows]: readonly (readonly string[])[],
  width: number,
): readonly string[] {
  const widths = head.map((name, column) =>
    maxOf(
      rows.map((row) => widthOf(row[column] ?? '')),
      widthOf(name),
    ),
  );
  if (widths.reduce((sum, one) => sum + one + 2, -2) > width)
    return rows.flatMap(listCells(head, width));
  return [head.map(bold), ...rows].map((row) =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)))
      .join('  ')
      .trimEnd(),
  );
}

const listCells =
  (head: readonly string[], width: number) =>
  ([first = '', ...cells]: readonly string[]): readonly string[] => [
    bold(first),
    ...cells.flatMap((cell, index) =>
      cell === ''
        ? []
        : wrap(`${head[index + 1] ?? ''}: ${cell}`, { width, first: '  ', rest: '    ' }),
    ),
  ];

type Margins = { readonly width: number; readonly first: string; readonly rest: string };

/** Wraps a text at its spaces; a word that is longer than a line is not cut. */
function wrap(text: string, { width, first, rest }: Margins): readonly string[] {
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of text.split(' ')) {
    if (!isEmpty && widthOf(line) + 1 + widthOf(word) > width) {
      lines.push(line);
      line = rest;
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, line];
}

const widthOf = (text: string): number => stripVTControlCharacters(text).length;

/** ECMA-48 8.3.117, SGR: bold on, and normal intensity. */
const bold = (text: string): string => `\u001b[1m${text}\u001b[22m`;

/** Formats code, bold text and links of one paragraph. */
const formatInline = (text: string): string =>
  text
    .split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]*\))/)
    .map(formatPiece)
    .join('');

function formatPiece(piece: string): string {
  const [, label, target = ''] = /^\[(.+)\]\(([^)]*)\)$/.exec(piece) ?? [];
  if (label !== undefined) return formatLink(label, target);
  if (/^`.+`$/.test(piece)) return piece.slice(1, -1);
  return /^\*\*.+\*\*$/.test(piece) ? bold(piece.slice(2, -2)) : piece;
}

/** Formats a link: another document is named by the command that prints it. */
function formatLink(label: string, target: string): string {
  const [, topic] = /^([\w-]+)\.md(?:#.*)?$/.exec(target) ?? [];
  if (topic !== undefined) {
    const command = `"${formatCommand('help', topic)}"`;
    return label.endsWith('.md') ? command : `${label} (${command})`;
  }
  const plain = label.replaceAll('`', '');
  return target.startsWith('https:') ? `${plain} (${target})` : plain;
}
