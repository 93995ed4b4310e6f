/* Owns the text of cells of a workbook (ECMA-376 part 1, 18.3.1.4 and 18.8.30) as a person sees it. */

/** A cell as written. */
export type WrittenCell = {
  /** Its place, as in `B3`. */
  readonly at: string;
  /** ST_CellType: `n` unless it is written. */
  readonly type: string;
  /** Text of `<v>` or `<is>`; undefined without either. */
  readonly value: string | undefined;
  readonly hasFormula: boolean;
  /** Number in the list of formats. */
  readonly style: number;
};

/** `plain` shows the digits of a whole number as they are. */
export type FormatKind = 'plain' | 'date' | 'other';

/** Parts of a workbook that give cells their text. */
export type CellTexts = {
  readonly shared: readonly string[];
  readonly formats: readonly FormatKind[];
};

/** Longest text that spreadsheet programs let a person type. */
const LONGEST = 32_767;

/** The format General shows so many digits. */
const WHOLE = /^-?\d{1,11}$/;

type Read = { readonly text: string } | { readonly fault: string };

/** @returns the text, or why it is not the one on the screen; a fault never quotes it */
export function readCell(cell: WrittenCell, texts: CellTexts): Read {
  const { at, value, hasFormula } = cell;
  const read = value === undefined ? readEmpty(hasFormula) : readValue({ ...cell, value }, texts);
  return 'fault' in read ? { fault: `cell ${at} ${read.fault}` } : read;
}

const readEmpty = (hasFormula: boolean): Read =>
  hasFormula
    ? { fault: 'has a formula without a result: open the sheet in its program and save it' }
    : { text: '' };

function readValue(
  { type, value, style }: WrittenCell & { readonly value: string },
  { shared, formats }: CellTexts,
): Read {
  switch (type) {
    case 'n':
      return readNumber(value, formats[style] ?? 'plain');
    case 'b':
      return BOOLEANS[value] ?? { fault: 'has neither 0 nor 1 as its boolean value' };
    case 'd':
      return { fault: DATE };
    case 'e':
      return { fault: 'shows an error of its formula' };
    case 's':
      return readText(/^\d{1,9}$/.test(value) ? shared[Number(value)] : undefined);
    default:
      return readText(value);
  }
}

const BOOLEANS: Readonly<Record<string, Read>> = {
  0: { text: 'FALSE' },
  1: { text: 'TRUE' },
};

function readNumber(value: string, format: FormatKind): Read {
  if (format === 'date') return { fault: DATE };
  if (format === 'plain' && WHOLE.test(value)) return { text: value };
  return {
    fault:
      'is a number, of which digits may be lost: give the column the format "Text" and type it again',
  };
}

function readText(written: string | undefined): Read {
  if (written === undefined) return { fault: 'names a text that the workbook does not have' };
  if (written.length > LONGEST) return { fault: `has more than ${LONGEST} characters` };
  return { text: written.replaceAll(/_x([0-9A-Fa-f]{4})_/g, (_, hex: string) => fromHex(hex)) };
}

/** Characters that XML cannot have, and what looks like one of them (22.9.2.19). */
const fromHex = (hex: string): string => String.fromCharCode(Number.parseInt(hex, 16));

const DATE = 'is a date: give the column the format "Text" and type it again';

/** Characters of the longest format that spreadsheet programs take. */
const LONGEST_FORMAT = 255;

/** Kind of a format by its code, as in `General` or `yyyy-mm-dd`. */
export function kindOfFormat(code: string): FormatKind {
  if (code === 'General' || code === '0' || code === '@') return 'plain';
  if (code.length > LONGEST_FORMAT) return 'other';
  // Letters of dates and times outside of quotes, escapes, colours and conditions.
  const bare = code
    .replaceAll(/"[^"]*"|\\.|_.|\*./g, '')
    .replaceAll(/\[(?!h+\]|m+\]|s+\])[^\]]*\]/gi, '');
  return /[ymdhs]/i.test(bare) ? 'date' : 'other';
}

/** Kind of a format that workbooks do not write (18.8.30); dates of other languages are among 27 to 58. */
export function kindOfBuiltIn(id: number): FormatKind {
  if (id === 0 || id === 1 || id === 49) return 'plain';
  return (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 58)
    ? 'date'
    : 'other';
}

/** Number of a column, from 0: `A` is 0, `AB` is 27. */
export const columnOf = (letters: string): number =>
  Buffer.from(letters).reduce((sum, letter) => sum * 26 + letter - 64, 0) - 1;

/** Letters of a column. */
export function nameOfColumn(column: number): string {
  const last = String.fromCharCode(65 + (column % 26));
  return column < 26 ? last : nameOfColumn(Math.floor(column / 26) - 1) + last;
}
