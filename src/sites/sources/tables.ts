import { parse, type CsvError } from 'csv-parse/sync';
import { isMap, isScalar, isSeq, type Document, type Node, type Scalar, type YAMLMap } from 'yaml';
import { createAliases } from '../../shape/decode-yaml.ts';
import { parseText } from '../../shape/parse-text.ts';
import {
  MAX_COLUMNS,
  refuseManyCells,
  refuseManyQuotes,
  refuseManyRows,
  printable,
  type Table,
  type TableProblem,
  type TableRow,
} from './list.ts';
import { isColumnName } from './template.ts';

/* Owns the parsing of tables, in CSV and YAML. */

type Piece = { readonly line: number; readonly text: string };

type Named = { readonly name?: string; readonly mapping: YAMLMap };

/** The line break is not part of the match, so that lines keep their numbers. */
const TOLD_DELIMITER = /^sep=([,;\t])(?=\r?\n)/i;

/**
 * Reads RFC 4180 with a header row. The separator is the comma; or `;` or a tab if the header has
 * that and no comma, as spreadsheets of many countries write; or the one in Excel's line `sep=;`
 * before the header. White space around a cell is not part of it. Lines without any text are
 * skipped.
 *
 * @throws ConfigError `sites.too-large`
 */
export function readCsvTable(text: string, separator?: string): Table {
  const rowProblems: TableProblem[] = [];
  const told = TOLD_DELIMITER.exec(text)?.[1];
  const rest = text.replace(TOLD_DELIMITER, '');
  const delimiter = told ?? separator ?? findDelimiter(rest);
  const [header, ...lines] = readLines(rest, { delimiter, problems: rowProblems });
  if (!header)
    return { rows: [], rowProblems, tableProblems: [{ line: 1, problem: 'has no header row' }] };
  const columns = dropEmptyEnd(header.cells).map((cell) => cell.trim());
  const tableProblems = checkHeader(columns, header.line);
  const rows: TableRow[] = [];
  for (const { line, cells } of tableProblems.length > 0 ? [] : lines) {
    const fault = findCountFault(cells, columns);
    if (fault === undefined)
      rows.push({
        line,
        cells: new Map(columns.map((column, i) => [column, (cells[i] ?? '').trim()])),
      });
    else rowProblems.push({ line, problem: fault });
  }
  return { rows, rowProblems, tableProblems, headerLine: header.line };
}

/**
 * Reads a list of mappings, or a mapping from name to mapping. All scalars keep their written
 * text: `4.20`, `yes` and `0x10` are not numbers or booleans here. Each entry is parsed by itself,
 * so that ten thousand of them take little memory and a broken one does not hide the rest; an
 * alias therefore reaches only anchors of its own entry.
 *
 * @throws ConfigError `sites.too-large`
 */
export function readYamlTable(text: string): Table {
  const { pieces, problems } = splitEntries(text);
  const rows: TableRow[] = [];
  const rowProblems: TableProblem[] = [];
  for (const piece of problems.length > 0 ? [] : pieces) {
    const row = readEntry(piece);
    if ('problem' in row) rowProblems.push(row);
    else rows.push(row);
  }
  return { rows, rowProblems, tableProblems: problems };
}

type Line = { readonly line: number; readonly cells: readonly string[] };

/** Texts of the parser's errors quote the cell, which may be a password; these do not. */
const FAULTS: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'has a quote that is never closed',
  INVALID_OPENING_QUOTE: 'has a quote in a cell that does not begin with one',
  CSV_INVALID_CLOSING_QUOTE: 'has text after a closing quote',
};

/**
 * The parser makes an error with a stack for each wrong quote: it costs as much as this many
 * bytes.
 */
const FAULT_COST = 1000;

type Reading = { readonly delimiter: string; readonly problems: TableProblem[] };

function readLines(text: string, { delimiter, problems }: Reading): Line[] {
  const lines: Line[] = [];
  let next = 1;
  let count = 0;
  let quoted = 0;
  parse(text, {
    delimiter,
    relax_column_count: true,
    skip_records_with_error: true,
    on_record: (cells: string[], context) => {
      count += cells.length;
      refuseManyCells(count);
      if (cells.some((cell) => cell !== '')) lines.push({ line: next, cells });
      refuseManyRows(lines.length);
      next = context.lines + 1;
      return null;
    },
    on_skip: (error: CsvError | undefined) => {
      const line = Number(error?.['lines'] ?? next);
      const field: unknown = error?.['field'];
      quoted += FAULT_COST + (typeof field === 'string' ? field.length : 0);
      refuseManyQuotes({ quoted, size: text.length, line });
      if (line < next) return undefined; // the line has a problem already
      refuseManyRows(problems.length);
      problems.push({ line: next, problem: FAULTS[error?.code ?? ''] ?? 'is not well-formed' });
      next = line + 1;
      return undefined;
    },
  });
  return lines;
}

function findDelimiter(text: string): string {
  const header = /[^\r\n]+/.exec(text)?.[0] ?? '';
  return [',', ';', '\t'].find((delimiter) => header.includes(delimiter)) ?? ',';
}

const dropEmptyEnd = (cells: readonly string[]): readonly string[] =>
  cells.slice(0, cells.findLastIndex((cell) => cell.trim() !== '') + 1);

function checkHeader(columns: readonly string[], line: number): TableProblem[] {
  if (columns.length > MAX_COLUMNS) {
    return [
      {
        line,
        problem: `has ${columns.length} columns, but a table may have at most ${MAX_COLUMNS}`,
      },
    ];
  }
  const problems: TableProblem[] = [];
  const seen = new Set<string>();
  for (const [index, column] of columns.entries()) {
    if (column === '') problems.push({ line, problem: `column ${index + 1} has no name` });
    else if (!isColumnName(column)) {
      problems.push({
        line,
        problem: `column "${printable(column)}" may have only letters, digits, "_", "-" and "."`,
      });
    } else if (seen.has(column)) {
      problems.push({ line, problem: `column "${column}" appears twice` });
    }
    seen.add(column);
  }
  return problems;
}

/**
 * The message does not show the cells: in a shifted row it is not known which cell is the
 * password.
 */
function findCountFault(cells: readonly string[], columns: readonly string[]): string | undefined {
  const isFull = cells.length >= columns.length;
  if (isFull && cells.slice(columns.length).every((cell) => cell === '')) return undefined;
  return `has ${cells.length} cells, but the header names ${columns.length}`;
}

type Split = { readonly pieces: readonly Piece[]; readonly problems: readonly TableProblem[] };

/**
 * Cuts before every line that is indented as little as the first. The content of an entry is
 * indented further (YAML 1.2.2, 8.2), except for comments.
 */
function splitEntries(text: string): Split {
  const pieces: { line: number; lines: string[] }[] = [];
  let start: RegExp | undefined;
  for (const [index, line] of text.split(/\r\n|\n|\r/).entries()) {
    if (pieces.length === 0 && /^(---)?[ \t]*(#.*)?$/.test(line)) continue;
    start ??= startOf(line);
    const problem = findLineFault(line, pieces.length === 0 && !start.test(line));
    if (problem !== undefined) return { pieces: [], problems: [{ line: index + 1, problem }] };
    if (start.test(line)) {
      pieces.push({ line: index + 1, lines: [line] });
      refuseManyRows(pieces.length);
    } else pieces.at(-1)?.lines.push(line);
  }
  return {
    pieces: pieces.map(({ line, lines }) => ({ line, text: `${lines.join('\n')}\n` })),
    problems: [],
  };
}

function findLineFault(line: string, isBadStart: boolean): string | undefined {
  if (/^(---|\.\.\.)(\s|$)|^%/.test(line)) return 'has directives or more than one document';
  return isBadStart ? 'is neither a list nor a mapping in block style' : undefined;
}

function startOf(first: string): RegExp {
  const indent = /^ */.exec(first)?.[0] ?? '';
  const isList = /^ *-(\s|$)/.test(first);
  return isList ? new RegExp(`^${indent}-(\\s|$)`) : new RegExp(`^${indent}(?!-(\\s|$))[^\\s#[{]`);
}

function readEntry({ line, text }: Piece): TableRow | TableProblem {
  // The text has no marker of another document, so there is exactly one.
  const { document, lines, faults } = parseText(text);
  const lineOf = (offset: number): number => line - 1 + lines.linePos(offset).line;
  const [fault] = faults;
  // The problem does not quote the text.
  if (fault) return { line: lineOf(fault.offset), problem: `is not YAML: ${fault.problem}` };
  const named = findMapping(document);
  if (!named) return { line, problem: 'is not a mapping from columns to values' };
  return readCells(document, named, { line, lineOf });
}

function findMapping({ contents }: Document): Named | undefined {
  if (isSeq(contents)) {
    const [mapping] = contents.items;
    return isMap(mapping) ? { mapping } : undefined;
  }
  if (!isMap(contents)) return undefined;
  const [pair] = contents.items;
  if (!pair || !isScalar(pair.key) || !isMap(pair.value)) return undefined;
  return { name: textOf(pair.key), mapping: pair.value };
}

type Lines = { readonly line: number; readonly lineOf: (offset: number) => number };

function readCells(document: Document.Parsed, named: Named, lines: Lines): TableRow | TableProblem {
  const cells = new Map<string, string>();
  const { follow } = createAliases(document);
  for (const { key, value } of named.mapping.items) {
    const column = isScalar(key) ? textOf(key) : '';
    const target = follow(value as Node | null);
    const problem = findCellFault(cells, column, target);
    if (problem !== undefined) return { line: lines.lineOf(startOfKey(key)), problem };
    cells.set(column, isScalar(target) ? textOf(target) : '');
  }
  return addName(cells, named.name, lines.line);
}

const startOfKey = (key: unknown): number => (isScalar(key) ? (key.range?.[0] ?? 0) : 0);

/** In a mapping of sites, the key is the name; the entry may repeat the name, but not change it. */
function addName(
  cells: Map<string, string>,
  name: string | undefined,
  line: number,
): TableRow | TableProblem {
  if (name === undefined) return { line, cells };
  if ((cells.get('name') ?? name) !== name)
    return { line, problem: 'has a "name" that differs from its key' };
  return { line, cells: cells.set('name', name) };
}

function findCellFault(
  cells: ReadonlyMap<string, string>,
  column: string,
  value: unknown,
): string | undefined {
  if (!isColumnName(column)) {
    return `key "${printable(column)}" may have only letters, digits, "_", "-" and "."`;
  }
  if (cells.has(column)) return `key "${column}" appears twice`;
  if (isScalar(value) && (typeof value.value === 'string' || value.value === null))
    return undefined;
  if (isScalar(value)) return `value of "${column}" has a tag: write it as a text`;
  return `value of "${column}" is a list or a mapping: write it as a text, with "|"`;
}

/** The failsafe schema (YAML 1.2.2, 10.1) has only texts; an omitted value is an empty text. */
const textOf = ({ value }: Scalar): string => (typeof value === 'string' ? value : '');
