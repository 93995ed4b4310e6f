import { decodeUserText } from '../../base/text/utf8.ts';
import { readFile, stat } from 'node:fs/promises';
import { ConfigError, isError } from '../../base/errors.ts';
import { append } from '../../base/lists.ts';
import { formatSize, printable } from '../../base/text/words.ts';
import {
  readCsvTable,
  readXlsxTable,
  readYamlTable,
  type Table,
  type TableProblem,
  type TableRow,
} from '../../table/index.ts';
import { readTemplateFolder, type TemplateFile, type TemplateFolder } from './folder.ts';
import { findContextFault, normalizeValue } from './holes.ts';
import {
  MAX_FILE,
  MAX_TABLE,
  HARMLESS,
  REFUSED,
  type MemberSource,
  type SiteList,
  type SiteMember,
  type SiteProblem,
  findLabelFault,
  foldName,
  groupByFold,
} from './list.ts';
import { listMembers } from './members.ts';
import { fillTemplate, findValueFault, holesOf, suggest, type Hole } from './template.ts';
import { nameCell, traceFindings } from './trace.ts';

/* Owns the sites of a table: columns against holes, and rows into sites. */

export type TemplateOptions = { readonly template: string; readonly signal: AbortSignal };

type Filling = {
  readonly path: string;
  readonly folder: TemplateFolder;
  /** Columns for which the template has a hole, with the first hole. */
  readonly wanted: ReadonlyMap<string, { readonly shownAs: string; readonly line: number }>;
  readonly holes: readonly { readonly file: string; readonly hole: Hole }[];
  readonly problems: SiteProblem[];
};

/**
 * Makes the sites of a table, each from the template folder and one row. A hole without a column
 * stops all sites; a row that lacks a column stops only itself; a column without a hole is noted. The
 * column `name` names the site and needs no hole.
 */
export async function readFilled(
  path: string,
  { template, signal }: TemplateOptions,
): Promise<SiteList> {
  const folder = await readTemplateFolder(template, signal);
  const { rows, rowProblems, tableProblems, headerLine } = await readTable(path, signal);
  const filling: Filling = {
    path,
    folder,
    wanted: findWanted(folder),
    holes: folder.files.flatMap(({ shownAs, content }) =>
      holesOf(content).map((hole) => ({ file: shownAs.slice(shownAs.lastIndexOf('/') + 1), hole })),
    ),
    problems: [...folder.problems],
  };
  for (const problem of tableProblems) report(filling, problem, '');
  for (const problem of rowProblems) report(filling, problem, labelOf(problem.line));
  const isUsable = tableProblems.length === 0 && !folder.problems.some(isError);
  const fits =
    isUsable && rows.length > 0 && checkColumns(filling, rows, headerLine ?? rows[0]?.line);
  const usable = fits ? checkRows(filling, rows) : new Map<string, TableRow>();
  return toList(filling, usable);
}

/** A row without a usable name is counted by its line. */
const labelOf = (line: number): string => `line ${line}`;

function report({ path, problems }: Filling, { line, problem }: TableProblem, name: string): void {
  problems.push({ ...REFUSED, name, file: path, line, problem });
}

function findWanted({ files }: TemplateFolder): Filling['wanted'] {
  const wanted = new Map<string, { shownAs: string; line: number }>();
  for (const { name, content, shownAs } of files) {
    for (const { column, line } of [...holesOf(name), ...holesOf(content)]) {
      if (!wanted.has(column)) wanted.set(column, { shownAs, line });
    }
  }
  return wanted;
}

/** True if the table has the columns that the template needs. */
function checkColumns(filling: Filling, rows: readonly TableRow[], line = 1): boolean {
  const all = new Set(rows.flatMap(({ cells }) => [...cells.keys()]));
  for (const [column, { shownAs, line }] of filling.wanted) {
    if (all.has(column)) continue;
    const problem = `hole "${column}" has no column${suggest(column, all)}`;
    filling.problems.push({ ...REFUSED, name: '', file: shownAs, line, problem });
  }
  for (const column of all) if (!isUsed(filling, column)) noteUnused(filling, column, line);
  if (!all.has('name'))
    report(
      filling,
      {
        line,
        problem: `there is no column "name", which must name the site${suggest('name', all)}`,
      },
      '',
    );
  return !filling.problems.some(isStopping);
}

const isUsed = ({ wanted }: Filling, column: string): boolean =>
  column === 'name' || wanted.has(column);

/** True for a fault of the template or of the whole table. */
const isStopping = ({ severity, name }: SiteProblem): boolean =>
  isError({ severity }) && name === '';

/** Notes a column that no file needs: tables of planners have many. */
function noteUnused({ path, wanted, problems }: Filling, column: string, line: number): void {
  const problem = `column "${column}" has no hole in the template${suggest(column, wanted.keys())}`;
  problems.push({ ...HARMLESS, name: '', file: path, line, problem });
}

function checkRows(filling: Filling, rows: readonly TableRow[]): Map<string, TableRow> {
  const twins = groupByFold(rows, ({ cells }) => cells.get('name') ?? '');
  const labels = labelRows(twins);
  const usable = new Map<string, TableRow>();
  for (const row of rows) {
    const name = row.cells.get('name') ?? '';
    const label = labels.get(row) ?? printable(name);
    const faults = [...findNameFaults(row, twins), ...findCellFaults(filling, row, label)];
    for (const problem of faults) report(filling, { line: row.line, problem }, label);
    if (faults.length > 0) continue;
    const { names, problems } = listMembers(fill(filling, row));
    append(filling.problems, problems);
    if (names.length > 0) usable.set(name, row);
  }
  return usable;
}

/** If several rows have one name, the first gets it, and the others get their lines: each is counted. */
function labelRows(twins: ReadonlyMap<string, readonly TableRow[]>): ReadonlyMap<TableRow, string> {
  const labels = new Map<TableRow, string>();
  for (const [folded, [, ...others]] of twins) {
    for (const row of folded === '' ? (twins.get(folded) ?? []) : others) {
      const name = printable(row.cells.get('name') ?? '');
      labels.set(row, name === '' ? labelOf(row.line) : `${name} (${labelOf(row.line)})`);
    }
  }
  return labels;
}

function findNameFaults(
  { line, cells }: TableRow,
  twins: ReadonlyMap<string, readonly TableRow[]>,
): string[] {
  const name = cells.get('name');
  if (name === undefined) return ['has no "name"'];
  const fault = findLabelFault(name);
  if (fault !== undefined) return [`site name "${printable(name)}" ${fault}`];
  const twin = twins.get(foldName(name))?.find((other) => other.line !== line);
  if (!twin) return [];
  const sameness = twin.cells.get('name') === name ? '' : ' (in another case)';
  return [`site name "${name}" is already in line ${twin.line}${sameness}`];
}

function findCellFaults(filling: Filling, { cells }: TableRow, site: string): string[] {
  const faults: string[] = [];
  for (const [column, text] of cells) {
    const fault = findValueFault(text) ?? findHoleFault(filling, column, text);
    if (fault !== undefined) faults.push(`${nameCell(column, site)} ${fault}`);
  }
  for (const column of filling.wanted.keys()) {
    if (!cells.has(column))
      faults.push(`site ${site} has no "${column}", which the template needs`);
  }
  return faults;
}

/** The message does not show the value: it may be a password. */
function findHoleFault({ holes }: Filling, column: string, text: string): string | undefined {
  const value = normalizeValue(text);
  for (const { file, hole } of holes) {
    if (hole.column !== column || !hole.context) continue;
    const fault = findContextFault(value, hole.context, hole.indent);
    if (fault !== undefined)
      return `${fault}: put the hole in line ${hole.line} of ${file} in double quotes`;
  }
  return undefined;
}

function fill({ path, folder }: Filling, row: TableRow): MemberSource {
  const shownAs = `${path}:${row.line}`;
  return {
    shownAs,
    rootName: row.cells.get('name') ?? '',
    members: folder.files.map((file) => fillFile(file, row, shownAs)),
    close: () => Promise.resolve(),
  };
}

function fillFile(
  { name, content, size, directory }: TemplateFile,
  { cells }: TableRow,
  shownAs: string,
): SiteMember {
  const path = fillTemplate(name, cells);
  const isOneName = holesOf(name).every(({ column }) => !cells.get(column)?.includes('/'));
  return {
    path,
    kind: isOneName ? 'file' : { other: 'has a "/" in a value of its name' },
    size,
    directory,
    read: () => Promise.resolve(fillContent(content, cells, `${shownAs}/${printable(path)}`)),
  };
}

function fillContent(
  content: TemplateFile['content'],
  cells: ReadonlyMap<string, string>,
  shownAs: string,
): Uint8Array {
  const bytes = new TextEncoder().encode(fillTemplate(content, cells));
  if (bytes.length <= MAX_FILE) return bytes;
  const sizes = `${shownAs} has ${formatSize(bytes.length)}, but a file may have at most ${formatSize(MAX_FILE)}`;
  throw new ConfigError('sites.too-large', sizes);
}

function toList(filling: Filling, usable: ReadonlyMap<string, TableRow>): SiteList {
  return {
    names: [...usable.keys()],
    problems: sortRows(filling),
    async open(name) {
      const row = usable.get(name);
      if (!row)
        throw new ConfigError('sites.unknown-name', `there is no site "${printable(name)}"`);
      return listMembers(fill(filling, row)).open(name);
    },
    trace(name, findings) {
      const row = usable.get(name);
      return row ? traceFindings(filling, row, findings) : findings;
    },
    close: () => Promise.resolve(),
  };
}

/** Problems of the template come first, then problems of the table in the order of its lines. */
function sortRows({ path, problems }: Filling): readonly SiteProblem[] {
  const isRow = ({ file }: SiteProblem): boolean => file === path;
  const rows = problems.filter(isRow).toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
  return [...problems.filter((problem) => !isRow(problem)), ...rows];
}

/**
 * Reads a table of sites: comma-separated values (RFC 4180; also with `;` or tabs) with a header
 * row, or YAML, a list of mappings or a mapping from name to mapping.
 */
export async function readTable(path: string, signal: AbortSignal): Promise<Table> {
  const bytes = await readBytes(path, signal);
  if (/\.xlsx$/i.test(path)) return readXlsxTable(bytes, { shownAs: path, signal });
  const text = decodeTable(path, bytes);
  if (/\.tsv$/i.test(path)) return readCsvTable(text, { separator: '\t' });
  return /\.csv$/i.test(path) ? readCsvTable(text) : readYamlTable(text);
}

async function readBytes(path: string, signal: AbortSignal): Promise<Buffer> {
  const { size } = await stat(path);
  if (size > MAX_TABLE) {
    const sizes = `${path} has ${formatSize(size)}, but a table may have at most ${formatSize(MAX_TABLE)}`;
    throw new ConfigError('sites.too-large', sizes, { hint: 'split the table' });
  }
  return readFile(path, { signal });
}

/** A spreadsheet writes a byte order mark, which is not part of the first column's name. */
const decodeTable = (path: string, bytes: Buffer): string =>
  decodeUserText(bytes, path, 'sites.not-utf8').replace(/^\ufeff/, '');
