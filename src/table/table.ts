import { ConfigError } from '../base/errors.ts';

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

/** Limits the rows of a table. @throws ConfigError `sites.too-large` */
export function refuseManyRows(count: number): void {
  if (count <= MAX_ROWS) return;
  throw new ConfigError('sites.too-large', `the table has more than ${MAX_ROWS} rows`, {
    hint: 'split the table, or remove its blank rows',
  });
}

/** Ten thousand sites of two hundred columns each. */
const MAX_CELLS = 2_000_000;

/** Limits the cells of a table. @throws ConfigError `sites.too-large` */
export function refuseManyCells(count: number): void {
  if (count <= MAX_CELLS) return;
  throw new ConfigError(
    'sites.too-large',
    `the table has ${count} cells or more, but may have at most ${MAX_CELLS}`,
    { hint: 'split the table, or remove columns that are empty' },
  );
}

const MAX_QUOTED = 4;
const QUOTED_FLOOR = 16 << 20;

/**
 * The parser copies a cell for each wrong quote in it, so that a line of quotes costs the square
 * of its size.
 *
 * @param quoted bytes of all those copies
 * @throws ConfigError `sites.too-large` when they are many times the size of the table
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
