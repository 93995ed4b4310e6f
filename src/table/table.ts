import { ConfigError } from '../base/errors.ts';
import { printable } from '../base/text/words.ts';

/* Owns the rows of a table with their places, the names of columns, and the limits of tables. */

/** A fault of a table, and its line, from 1. */
export type TableProblem = { readonly line: number; readonly problem: string };

export type TableRow = {
  /** Line at which the row begins, from 1. */
  readonly line: number;
  /** Texts as written, by column. */
  readonly cells: ReadonlyMap<string, string>;
};

export type Table = {
  /** Rows without a problem. */
  readonly rows: readonly TableRow[];
  /** Problems of single rows: the others are good. */
  readonly rowProblems: readonly TableProblem[];
  /** Problems of the whole table: no row can be used. */
  readonly tableProblems: readonly TableProblem[];
  /** Line that names the columns, if they are named once for all rows. */
  readonly headerLine?: number;
};

export const isColumnName = (text: string): boolean => /^[A-Za-z_][A-Za-z0-9_.-]*$/.test(text);

/** More columns than a person writes. */
export const MAX_COLUMNS = 10_000;

/** The program is made for ten thousand sites. */
const MAX_ROWS = 50_000;

export function refuseManyRows(count: number): void {
  if (count <= MAX_ROWS) return;
  throw new ConfigError('sites.too-large', `the table has more than ${MAX_ROWS} rows`, {
    hint: 'split the table, or remove its blank rows',
  });
}

/** Ten thousand sites of two hundred columns each. */
const MAX_CELLS = 2_000_000;

export function refuseManyCells(count: number): void {
  if (count <= MAX_CELLS) return;
  throw new ConfigError(
    'sites.too-large',
    `the table has ${count} cells or more, but may have at most ${MAX_CELLS}`,
    { hint: 'split the table, or remove columns that are empty' },
  );
}

/** A line of a sheet, and its cells. */
export type Line = { readonly line: number; readonly cells: readonly string[] };

type Header = {
  /** Problems of lines that are known so far. */
  readonly rowProblems: readonly TableProblem[];
  /** Gives a column its name by the text in the header. */
  readonly nameColumn?: (written: string) => string;
};

/** Makes the table of lines of which the first names the columns. White space around a cell is not part of it. */
export function toTable(
  [header, ...lines]: readonly Line[],
  { rowProblems: known, nameColumn = (written) => written }: Header,
): Table {
  const rowProblems = [...known];
  if (!header)
    return { rows: [], rowProblems, tableProblems: [{ line: 1, problem: 'has no header row' }] };
  const columns = dropEmptyEnd(header.cells).map((cell) => nameColumn(cell.trim()));
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

/** The message does not show the cells: in a shifted row it is not known which cell is the password. */
function findCountFault(cells: readonly string[], columns: readonly string[]): string | undefined {
  const isFull = cells.length >= columns.length;
  if (isFull && cells.slice(columns.length).every((cell) => cell === '')) return undefined;
  return `has ${cells.length} cells, but the header names ${columns.length}`;
}

const MAX_QUOTED = 4;
const QUOTED_FLOOR = 16 << 20;

/**
 * The parser copies a cell for each wrong quote in it, so that a line of quotes costs the square of its size.
 *
 * @param quoted bytes of all those copies
 */
export function refuseManyQuotes({
  quoted,
  size,
  line,
}: {
  readonly quoted: number;
  readonly size: number;
  readonly line: number;
}): void {
  if (quoted <= QUOTED_FLOOR + MAX_QUOTED * size) return;
  throw new ConfigError(
    'sites.too-large',
    `line ${line} of the table has too many quotes in cells that do not begin with one`,
    { hint: 'put each such cell in quotes, and double the quotes in it' },
  );
}
