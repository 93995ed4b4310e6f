import { isMap, isScalar, isSeq, type Document, type Node, type Scalar, type YAMLMap } from 'yaml';
import { createAliases } from '../shape/aliases.ts';
import { parseText } from '../shape/parse-text.ts';
import { printable } from '../base/text/words.ts';
import {
  isColumnName,
  refuseManyRows,
  type Table,
  type TableProblem,
  type TableRow,
} from './table.ts';

/* Owns the parsing of tables in YAML. */

type Piece = { readonly line: number; readonly text: string };

type Named = { readonly name?: string; readonly mapping: YAMLMap };

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

type Split = { readonly pieces: readonly Piece[]; readonly problems: readonly TableProblem[] };

/** Cuts before lines indented as the first: content is indented further (YAML 1.2.2, 8.2), comments aside. */
function splitEntries(text: string): Split {
  const pieces: { line: number; lines: string[] }[] = [];
  let isStart: ((line: string) => boolean) | undefined;
  for (const [index, line] of text.split(/\r\n|\n|\r/).entries()) {
    if (pieces.length === 0 && /^(---)?[ \t]*(#.*)?$/.test(line)) continue;
    isStart ??= createStartTest(line);
    const problem = findLineFault(line, pieces.length === 0 && !isStart(line));
    if (problem !== undefined) return { pieces: [], problems: [{ line: index + 1, problem }] };
    if (isStart(line)) {
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

const ELEMENT = /^-(\s|$)/;
const KEY = /^(?!-(\s|$))[^\s#[{]/;

/** Recognizes the lines that are indented as the first, and are elements or keys as the first. */
function createStartTest(first: string): (line: string) => boolean {
  const indent = /^ */.exec(first)?.[0] ?? '';
  const form = ELEMENT.test(first.slice(indent.length)) ? ELEMENT : KEY;
  return (line) => line.startsWith(indent) && form.test(line.slice(indent.length));
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
