import { isPlainInGo } from '../../shape/go-scalar.ts';

/*
 * Writes YAML to the byte as Go does (sigs.k8s.io/yaml): the loader of configuration images compares files
 * byte by byte.
 */

type Members = Readonly<Record<string, unknown>>;

/** Members whose value is undefined are left out. */
export const formatGoYaml = (value: Members): string => writeMembers(value, 0);

function writeMembers(members: Members, indent: number): string {
  const names = Object.keys(members).filter((name) => members[name] !== undefined);
  return names
    .sort(compareKeys)
    .map((name) => {
      const key = `${' '.repeat(indent)}${writeScalar(name, { column: indent, indent, isKey: true })}:`;
      return `${key}${writeValue(members[name], { column: lengthOf(key), indent })}`;
    })
    .join('');
}

type Place = {
  /** Characters before the value in its line. */
  readonly column: number;
  /** Indentation of the mapping or list that holds the value. */
  readonly indent: number;
};

/** The value behind a colon or dash, with the line break at its end. */
function writeValue(value: unknown, place: Place): string {
  const { column, indent } = place;
  if (Array.isArray(value)) {
    return value.length === 0 ? ' []\n' : `\n${writeItems(value, indent)}`;
  }
  if (typeof value !== 'object' || value === null) {
    return ` ${endLine(writeScalar(value, { column: column + 1, indent: indent + 2, isKey: false }))}`;
  }
  return isEmpty(value) ? ' {}\n' : `\n${writeMembers(value as Members, indent + 2)}`;
}

/** A list stands at the indentation of the mapping that holds it; its items begin behind a dash. */
const writeItems = (items: readonly unknown[], indent: number): string =>
  items
    .map((item) => {
      const dash = `${' '.repeat(indent)}-`;
      const isBlock = typeof item === 'object' && item !== null && !isEmpty(item);
      if (!isBlock) return `${dash}${writeValue(item, { column: indent + 1, indent })}`;
      const inner = Array.isArray(item)
        ? writeItems(item as readonly unknown[], indent + 2)
        : writeMembers(item as Members, indent + 2);
      return `${dash} ${inner.slice(indent + 2)}`;
    })
    .join('');

const isEmpty = (value: object): boolean =>
  Object.values(value).every((member) => member === undefined);

const endLine = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`);

type ScalarPlace = Place & { readonly isKey: boolean };

function writeScalar(value: unknown, place: ScalarPlace): string {
  if (typeof value !== 'string') return String(value);
  const isBlock = value.includes('\n') && !place.isKey && allowsBlock(value);
  if (isBlock) return writeLiteral(value, place.indent);
  if (!isPlainInGo(value) || value.includes('\n') || SPECIAL.test(value)) {
    return writeDoubleQuoted(value, place);
  }
  return allowsPlain(value) ? fold(value, place) : writeSingleQuoted(value, place);
}

/** Characters that libyaml does not print; line breaks of Unicode, which need quotes too. */
const SPECIAL = /[^\n\u0020-\u007e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/u;

const allowsBlock = (text: string): boolean =>
  !text.endsWith(' ') && !text.includes(' \n') && !SPECIAL.test(text);

/** Characters and words that have a meaning at the beginning of a scalar or in it. */
const INDICATOR = /^(?:[#,[\]{}&*!|>'"%@`]|[?:-](?:[ \t]|$)|---|\.\.\.)|:(?:[ \t]|$)|[ \t]#/;

const allowsPlain = (text: string): boolean => !/^ | $/.test(text) && !INDICATOR.test(text);

function writeLiteral(text: string, indent: number): string {
  const hint = /^[ \n]/.test(text) ? '2' : '';
  const chomp = !text.endsWith('\n') ? '-' : /^\n$|\n\n$/.test(text) ? '+' : '';
  const lines = text.replace(/\n$/, '').split('\n');
  const shown = lines.map((line) => (line === '' ? '' : `${' '.repeat(indent)}${line}`));
  return `|${hint}${chomp}\n${shown.join('\n')}\n`;
}

/** Columns after which a line may break at a space. */
const BEST_WIDTH = 80;

/** A plain text; a space between words beyond the best width becomes a line break. */
const fold = (text: string, { column, indent, isKey }: ScalarPlace): string =>
  foldUnits(Array.from(text), { column, indent, isKey, edge: 0 });

function writeSingleQuoted(text: string, place: ScalarPlace): string {
  const units = Array.from(text).map((character) => (character === "'" ? "''" : character));
  return `'${foldUnits(units, { ...place, column: place.column + 1, edge: 1 })}'`;
}

function writeDoubleQuoted(text: string, place: ScalarPlace): string {
  const units = Array.from(text).map(escape);
  const folding = { ...place, column: place.column + 1, edge: 1, isDouble: true };
  return `"${foldUnits(units, folding)}"`;
}

type Folding = ScalarPlace & {
  /** Units at each end where no line breaks. */
  readonly edge: number;
  /** True between double quotes: a line may break before several spaces, the second of which is escaped then. */
  readonly isDouble?: boolean;
};

function foldUnits(units: readonly string[], folding: Folding): string {
  let { column } = folding;
  return units
    .map((unit, at) => {
      const isBreak = column > BEST_WIDTH && mayBreak(units, at, folding);
      const escape = units[at + 1] === ' ' ? '\\' : '';
      const written = isBreak ? `${' '.repeat(folding.indent)}${escape}` : unit;
      column = isBreak ? lengthOf(written) : column + lengthOf(written);
      return isBreak ? `\n${written}` : written;
    })
    .join('');
}

/** True for the first space between two words. */
function mayBreak(
  units: readonly string[],
  at: number,
  { isKey, edge, isDouble = false }: Folding,
): boolean {
  if (units[at] !== ' ' || units[at - 1] === ' ' || isKey) return false;
  const isInside = at >= edge && at < units.length - edge;
  return isInside && (isDouble || units[at + 1] !== ' ');
}

const lengthOf = (text: string): number => Array.from(text).length;

const ESCAPES: Readonly<Record<string, string>> = {
  '\0': '\\0',
  '\x07': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '\x1b': '\\e',
  '"': '\\"',
  '\\': '\\\\',
  '\u0085': '\\N',
  '\u2028': '\\L',
  '\u2029': '\\P',
};

function escape(character: string): string {
  const known = ESCAPES[character];
  if (known !== undefined) return known;
  if (!SPECIAL.test(character)) return character;
  const code = character.codePointAt(0) ?? 0;
  const [letter, width] = code <= 0xff ? ['x', 2] : code <= 0xffff ? ['u', 4] : ['U', 8];
  return `\\${letter}${code.toString(16).toUpperCase().padStart(width, '0')}`;
}

const LETTER = /\p{L}/u;

/** The order of keys in go-yaml 2: letters behind other characters, numbers by their size. */
function compareKeys(a: string, b: string): number {
  const [left, right] = [a, b].map((key) => Array.from(key)) as [string[], string[]];
  const at = left.findIndex((character, index) => character !== right[index]);
  if (at < 0 || at >= right.length) return left.length - right.length;
  const [x = '', y = ''] = [left[at], right[at]];
  const [isLeft, isRight] = [LETTER.test(x), LETTER.test(y)];
  if (isLeft !== isRight) return isRight ? -1 : 1;
  if (isLeft) return comparePoints(x, y);
  return compareNumbers(left, right, at) || comparePoints(x, y);
}

const comparePoints = (a: string, b: string): number =>
  (a.codePointAt(0) ?? 0) - (b.codePointAt(0) ?? 0);

/** The numbers that begin where two keys begin to differ; a zero behind other digits counts as one of more digits. */
function compareNumbers(a: readonly string[], b: readonly string[], at: number): number {
  const isZero = a[at] === '0' || b[at] === '0';
  const before = a.slice(0, at).join('');
  const lead = isZero && /[1-9]\d*$/.test(before) ? '1' : '0';
  const [x, y] = [a, b].map((key) => key.slice(at).join('')).map((rest) => /^\d*/.exec(rest)?.[0]);
  const [left, right] = [BigInt(`${lead}${x ?? ''}`), BigInt(`${lead}${y ?? ''}`)];
  if (left !== right) return left < right ? -1 : 1;
  return (x ?? '').length - (y ?? '').length;
}
