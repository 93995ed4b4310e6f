import { parse, type CsvError } from 'csv-parse/sync';
import {
  type Line,
  refuseManyCells,
  refuseManyQuotes,
  refuseManyRows,
  type Table,
  type TableProblem,
  toTable,
} from './table.ts';

/* Owns the parsing of CSV and TSV (RFC 4180). */

export type CsvOptions = {
  readonly separator?: string;
  /** Gives a column its name by the text in the header. */
  readonly nameColumn?: (written: string) => string;
};

/** The line break is not part of the match, so that lines keep their numbers. */
const TOLD_DELIMITER = /^sep=([,;\t])(?=\r?\n)/i;

/**
 * Reads RFC 4180 with a header row. The separator is the comma; or `;` or a tab if the header has that and no
 * comma, as spreadsheets of many countries write; or the one in Excel's line `sep=;` before the header. White
 * space around a cell is not part of it. Lines without any text are skipped.
 *
 * @throws ConfigError `sites.too-large`
 */
export function readCsvTable(
  text: string,
  { separator, nameColumn = (written) => written }: CsvOptions = {},
): Table {
  const rowProblems: TableProblem[] = [];
  const told = TOLD_DELIMITER.exec(text)?.[1];
  const rest = text.replace(TOLD_DELIMITER, '');
  const delimiter = told ?? separator ?? findDelimiter(rest);
  const lines = readLines(rest, { delimiter, problems: rowProblems });
  return toTable(lines, { rowProblems, nameColumn });
}

/** Texts of the parser's errors quote the cell, which may be a password; these do not. */
const FAULTS: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'has a quote that is never closed',
  INVALID_OPENING_QUOTE: 'has a quote in a cell that does not begin with one',
  CSV_INVALID_CLOSING_QUOTE: 'has text after a closing quote',
};

/** The parser makes an error with a stack for each wrong quote: it costs as much as this many bytes. */
const FAULT_COST = 1000;

type Reading = { readonly delimiter: string; readonly problems: TableProblem[] };

function readLines(text: string, { delimiter, problems }: Reading): Line[] {
  const lines: Line[] = [];
  let next = 1;
  let records = 0; // with the blank ones, which cost as much
  let count = 0;
  let quoted = 0;
  parse(text, {
    delimiter,
    relax_column_count: true,
    skip_records_with_error: true,
    on_record: (cells: string[], context) => {
      count += cells.length;
      refuseManyCells(count);
      refuseManyRows(++records);
      if (cells.some((cell) => cell !== '')) lines.push({ line: next, cells });
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
