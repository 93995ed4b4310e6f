import { type CellTexts, columnOf, nameOfColumn, readCell } from './cells.ts';
import { type Line, MAX_COLUMNS } from './table.ts';
import type { Tag } from './workbook.ts';

/* Owns the rows of a sheet (ECMA-376 part 1, 18.3.1.73) while they are read. */

/** Collects the text in `<t>`, but not in `<rPh>`. */
export function createRun() {
  let pieces: string[] = [];
  let depth = 0;
  let isSpoken = false;
  return {
    begin: () => void (pieces = []),
    open(name: string) {
      if (name === 'rPh') isSpoken = true;
      else if (name === 't') depth += 1;
    },
    text: (piece: string): void => {
      if (depth > 0 && !isSpoken) pieces.push(piece);
    },
    close(name: string) {
      if (name === 'rPh') isSpoken = false;
      else if (name === 't') depth -= 1;
    },
    end: () => pieces.join(''),
  };
}

type Cell = {
  readonly column: number;
  readonly type: string;
  readonly style: number;
  hasFormula: boolean;
  /** Pieces of `<v>`. */
  value: string[] | undefined;
};

/** More faults of a row than a person reads. */
const MOST_FAULTS = 20;

/** Columns that a person does not see (18.3.1.13), as ranges of numbers from 0. */
export function createHiddenColumns() {
  const ranges: (readonly [number, number])[] = [];
  return {
    open({ name, attributes: { min, max, hidden, width } }: Tag): void {
      if (name !== 'col' || ranges.length > MAX_COLUMNS) return;
      if (isOn(hidden) || Number(width ?? 1) === 0) ranges.push([Number(min) - 1, Number(max) - 1]);
    },
    has: (column: number): boolean =>
      ranges.some(([first, last]) => first <= column && column <= last),
  };
}

type HiddenColumns = ReturnType<typeof createHiddenColumns>;

const isOn = (flag: string | undefined): boolean => flag === '1' || flag === 'true';

function explainPlace(column: number, columns: Pick<HiddenColumns, 'has'>): string | undefined {
  if (column >= MAX_COLUMNS) return `is beyond the ${MAX_COLUMNS} columns that a table may have`;
  return columns.has(column) ? 'is in a hidden column: show the column, or delete it' : undefined;
}

/** Reads one row after the other. */
export function createRow(texts: CellTexts, columns: Pick<HiddenColumns, 'has'>) {
  const inline = createRun();
  let [line, column, isHidden, isInValue] = [0, -1, false, false];
  let cells: string[] = [];
  let faults: string[] = [];
  let cell: Cell | undefined;
  const beginRow = ({ r, hidden }: Tag['attributes']): void => {
    line = /^[1-9]\d{0,6}$/.test(r ?? '') ? Number(r) : line + 1;
    isHidden = isOn(hidden);
    [column, cells, faults] = [-1, [], []];
  };
  const beginCell = ({ r, t = 'n', s = '0' }: Tag['attributes']): void => {
    const [letters] = /^[A-Z]{1,3}/.exec(r ?? '') ?? [];
    column = letters === undefined ? column + 1 : columnOf(letters);
    cell = { column, type: t, style: Number(s), hasFormula: false, value: undefined };
    inline.begin();
  };
  const endCell = (ended: Cell): void => {
    const { type, style, hasFormula } = ended;
    const value = type === 'inlineStr' ? inline.end() : ended.value?.join('');
    const at = `${nameOfColumn(ended.column)}${line}`;
    const read = readCell({ at, type, value, hasFormula, style }, texts);
    if (faults.length === MOST_FAULTS) return;
    if ('fault' in read) faults.push(read.fault);
    else if (read.text !== '') {
      const why = explainPlace(ended.column, columns) ?? (cells[ended.column] && 'is there twice');
      if (why === undefined) cells[ended.column] = read.text;
      else faults.push(`cell ${at} ${why}`);
    }
  };
  return {
    open({ name, attributes }: Tag): void {
      if (name === 'row') beginRow(attributes);
      else if (name === 'c') beginCell(attributes);
      else if (name === 'f' && cell) cell.hasFormula = true;
      else if (name === 'v' && cell) [isInValue, cell.value] = [true, []];
      else inline.open(name);
    },
    text: (piece: string): void => {
      if (isInValue) cell?.value?.push(piece);
      else inline.text(piece);
    },
    close(name: string): void {
      if (name === 'v') isInValue = false;
      else if (name === 'c' && cell) {
        endCell(cell);
        cell = undefined;
      } else inline.close(name);
    },
    /** The row that has ended. */
    end(): Line & { readonly faults: readonly string[] } {
      const hasText = cells.length > 0 || faults.length > 0;
      const hidden = isHidden && hasText ? ['is hidden: show the row, or delete it'] : [];
      return {
        line,
        cells: Array.from(cells, (text: string | undefined) => text ?? ''),
        faults: [...hidden, ...faults],
      };
    },
  };
}
