import { type CellTexts, type FormatKind, kindOfBuiltIn, kindOfFormat } from './cells.ts';
import { createHiddenColumns, createRow, createRun } from './sheet-row.ts';
import {
  refuseManyCells,
  refuseManyRows,
  type Line,
  type Table,
  type TableProblem,
  toTable,
} from './table.ts';
import { openWorkbook, type Tag, type Workbook, type WorkbookOptions } from './workbook.ts';

/* Owns the reading of a sheet of a workbook (ECMA-376 part 1, 18.3) as a table. */

/**
 * Reads the first sheet that is not hidden. Lines are its rows, as a spreadsheet program counts them. Every cell is
 * a text: formulas give the result that was saved, whole numbers their digits. What is not certain to be what
 * the person saw (dates, other numbers, errors, merged cells, hidden rows) is a problem of its row.
 *
 * @throws ConfigError `sites.spreadsheet`, `sites.too-large`, `sites.damaged`
 */
export async function readXlsxTable(bytes: Buffer, options: WorkbookOptions): Promise<Table> {
  const workbook = await openWorkbook(bytes, options);
  const main = (await workbook.relationsOf('')).get('officeDocument') ?? 'xl/workbook.xml';
  const relations = await workbook.relationsOf(main);
  const path = relations.get((await findSheet(workbook, main)) ?? '');
  const texts = {
    shared: await readShared(workbook, relations.get('sharedStrings')),
    formats: await readFormats(workbook, relations.get('styles')),
  };
  return tableOf(path === undefined ? [] : await readSheet(workbook, { path, texts }));
}

/** Id of the relation to the first sheet that a person sees. */
async function findSheet(workbook: Workbook, path: string): Promise<string | undefined> {
  let found: string | undefined;
  await workbook.parse(path, {
    open({ name, attributes }) {
      if (name !== 'sheet' || (attributes['state'] ?? 'visible') !== 'visible') return;
      const [, id] = Object.entries(attributes).find(([key]) => /^\w+:id$/.test(key)) ?? [];
      found ??= id;
    },
  });
  return found;
}

/** Texts that cells share: all runs of each, without the pronunciation that Asian texts may have. */
async function readShared(workbook: Workbook, path: string | undefined): Promise<string[]> {
  const shared: string[] = [];
  if (path === undefined) return shared;
  const run = createRun();
  await workbook.parse(path, {
    open({ name }) {
      if (name === 'si') run.begin();
      run.open(name);
    },
    text: run.text,
    close(name) {
      run.close(name);
      if (name === 'si') refuseManyCells(shared.push(run.end()));
    },
  });
  return shared;
}

/** Formats of cells, by their place in the list. */
async function readFormats(workbook: Workbook, path: string | undefined): Promise<FormatKind[]> {
  const kinds = new Map<number, FormatKind>();
  const formats: FormatKind[] = [];
  if (path === undefined) return formats;
  let isOfCells = false;
  await workbook.parse(path, {
    open({ name, attributes: { numFmtId, formatCode } }) {
      const id = Number(numFmtId ?? 0);
      if (name === 'cellXfs') isOfCells = true;
      else if (name === 'numFmt') kinds.set(id, kindOfFormat(formatCode ?? ''));
      else if (name === 'xf' && isOfCells) formats.push(kinds.get(id) ?? kindOfBuiltIn(id));
    },
    close(name) {
      if (name === 'cellXfs') isOfCells = false;
    },
  });
  return formats;
}

/** A row with a text or a fault. */
type SheetRow = Line & { readonly faults: readonly string[] };

async function readSheet(
  workbook: Workbook,
  { path, texts }: { readonly path: string; readonly texts: CellTexts },
): Promise<readonly SheetRow[]> {
  const rows: SheetRow[] = [];
  const merges = createMerges();
  const columns = createHiddenColumns();
  const row = createRow(texts, columns);
  let count = 0;
  await workbook.parse(path, {
    open(tag) {
      columns.open(tag);
      row.open(tag);
      merges.open(tag);
    },
    text: row.text,
    close(name) {
      row.close(name);
      if (name !== 'row') return;
      const found = row.end();
      if (found.faults.length === 0 && found.cells.every((cell) => cell === '')) return;
      refuseManyCells((count += found.cells.length));
      refuseManyRows(rows.length);
      rows.push(found);
    },
  });
  return rows.map((each) =>
    merges.has(each.line) ? { ...each, faults: [...each.faults, MERGED] } : each,
  );
}

const MERGED = 'has merged cells, whose text belongs to one place alone: unmerge them';

/** Rows of ranges that are merged (18.3.1.55): any number of ranges of any size. */
function createMerges() {
  const starts: number[] = [];
  const ends: number[] = [];
  let isSorted = false;
  const countTo = (sorted: readonly number[], line: number): number => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] ?? 0) <= line) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return {
    open({ name, attributes: { ref = '' } }: Tag): void {
      const [, first, last] = /^[A-Z]+(\d+):[A-Z]+(\d+)$/.exec(ref) ?? [];
      if (name !== 'mergeCell' || first === undefined) return;
      starts.push(Number(first));
      ends.push(Number(last));
    },
    has(line: number): boolean {
      if (!isSorted) for (const list of [starts, ends]) list.sort((one, other) => one - other);
      isSorted = true;
      return countTo(starts, line) > countTo(ends, line - 1);
    },
  };
}

/** The first row names the columns; later ones end with their last text. */
function tableOf([header, ...rows]: readonly SheetRow[]): Table {
  if (!header) return toTable([], { rowProblems: [] });
  const { line: headerLine, cells, faults } = header;
  if (faults.length > 0) {
    const tableProblems = faults.map((problem) => ({ line: headerLine, problem }));
    return { rows: [], rowProblems: [], tableProblems, headerLine };
  }
  const rowProblems = rows.flatMap(({ line, faults }) =>
    faults.map((problem): TableProblem => ({ line, problem })),
  );
  const good = rows
    .filter(({ faults }) => faults.length === 0)
    .map(({ line, cells: own }) => {
      const missing = Math.max(0, cells.length - own.length);
      return { line, cells: [...own, ...Array<string>(missing).fill('')] };
    });
  refuseManyCells(cells.length * good.length);
  return toTable([header, ...good], { rowProblems });
}
