import { type FilePlace, type Problem, ConfigError } from '../../base/errors.ts';
import { formatSize, toPrintable } from '../../base/text/words.ts';
import type { SiteInput } from '../site.ts';

/**
 * What is wrong, or looks wrong, with the inputs before any of them is looked into. An error keeps its
 * site, or with no site its member, out of the list; a warning does not.
 */
export type SiteProblem = Problem<FilePlace> & {
  /** Name of the site as it was found, or '' for what belongs to none. */
  readonly name: string;
};

export const REFUSED = { severity: 'error', code: 'sites.input' } as const;
export const UNUSED = { severity: 'warning', code: 'sites.input' } as const;

/** All sites of a source. Holds names and places, not contents; must be closed. */
export type SiteList = {
  /** Sorted; rows of a table in their order. Only sites without an error. */
  readonly names: readonly string[];
  readonly problems: readonly SiteProblem[];
  /**
   * Reads the inputs of one site; any number may be opened at the same time.
   *
   * @throws ConfigError `sites.damaged`, `sites.changed`, `sites.too-large`, `sites.unknown-name`
   */
  readonly open: (name: string) => Promise<SiteInput>;
  readonly close: () => Promise<void>;
};

/** The same list, whose problems name what is below a folder without it: the way that people type files. */
export function nameBelow(list: SiteList, cwd: string): SiteList {
  const shortenName = (name: string): string =>
    name.startsWith(`${cwd}/`) ? name.slice(cwd.length + 1) : name;
  return {
    ...list,
    problems: list.problems.map((each) => ({ ...each, file: shortenName(each.file) })),
    open: async (name) => {
      const { files } = await list.open(name);
      return {
        name,
        files: files.map((file) => ({ ...file, shownAs: shortenName(file.shownAs) })),
      };
    },
  };
}

/** What stands in a folder or an archive, before it is known to which site it belongs. */
export type SiteMember = {
  /** As written, for archives with whatever tricks are in it; `/` between names. */
  readonly path: string;
  /** What neither a file nor a folder is, or cannot be read, is refused by the words of `other`. */
  readonly kind: 'file' | 'folder' | { readonly other: string };
  /** Bytes, as the source declares it. */
  readonly size: number;
  /** Never gives more than `size` bytes; errors are those of {@link SiteList.open}. */
  readonly read: () => Promise<Uint8Array>;
  /** Of the file on this machine, absolute; absent inside an archive. */
  readonly directory?: string;
};

/** A folder or an archive: all that is in it. */
export type MemberSource = {
  /** How the source is named in problems, before the path of a member. */
  readonly shownAs: string;
  /** What a site at the root of the source is called. */
  readonly rootName: string;
  readonly members: readonly SiteMember[];
  readonly close: () => Promise<void>;
};

/** Something wrong with a table, where from 1. */
export type TableProblem = { readonly line: number; readonly problem: string };

export type TableRow = {
  /** Where the row begins, from 1. */
  readonly line: number;
  /** Texts as written, by column. */
  readonly cells: ReadonlyMap<string, string>;
};

export type Table = {
  /** Without those that have a problem. */
  readonly rows: readonly TableRow[];
  /** Of single rows: the others are good. */
  readonly rowProblems: readonly TableProblem[];
  /** Of the whole table: no row can be used. */
  readonly tableProblems: readonly TableProblem[];
  /** Where the columns are named once for all rows. */
  readonly headerLine?: number;
};

/** A site's inputs are some ten kilobytes; these keep hostile archives from filling memory or disk. */
export const MAX_FILE = 1 << 20;
export const MAX_SITE = 16 << 20;
const MAX_TOTAL = 4 * 2 ** 30;
export const MAX_TABLE = 64 << 20;
/** A site takes a few dozen values. */
export const MAX_COLUMNS = 10_000;
/** Ten thousand sites are what the program is made for. */
const MAX_ROWS = 50_000;
/** Ten thousand sites of two hundred columns each. */
const MAX_CELLS = 2_000_000;
const MAX_QUOTED = 4;
const QUOTED_FLOOR = 16 << 20;
/** Ten thousand sites of fifty files each. */
const MAX_MEMBERS = 500_000;
/**
 * How far a .tar.gz may unfold: sites made of one template reach some 60 times, a run of zeros 1,000
 * times. Not asked of what unfolds to little.
 */
const MAX_RATIO = 300;
const RATIO_FLOOR = 64 << 20;

/** @throws ConfigError `sites.too-large` */
export function refuseManyMembers(count: number, shownAs: string): void {
  if (count <= MAX_MEMBERS) return;
  throw new ConfigError('sites.too-large', `${shownAs} has more than ${MAX_MEMBERS} members`, {
    hint: 'split the sites over several sources',
  });
}

/** @throws ConfigError `sites.too-large` */
export function refuseManyRows(count: number): void {
  if (count <= MAX_ROWS) return;
  throw new ConfigError('sites.too-large', `the table has more than ${MAX_ROWS} rows`, {
    hint: 'split the table',
  });
}

/** @throws ConfigError `sites.too-large` */
export function refuseManyCells(count: number): void {
  if (count <= MAX_CELLS) return;
  throw new ConfigError(
    'sites.too-large',
    `the table has ${count} cells or more, and a table may have ${MAX_CELLS}`,
    { hint: 'split the table, or remove columns that are empty' },
  );
}

/**
 * The parser copies a cell for each quote that is wrong in it, so that a line of quotes costs the
 * square of its size.
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

/** @throws ConfigError `sites.too-large` when so many bytes came out of so few. */
export function refuseBomb(packed: number, unpacked: number, shownAs: string): void {
  if (unpacked > RATIO_FLOOR && unpacked > packed * MAX_RATIO) {
    throw new ConfigError(
      'sites.too-large',
      `${shownAs} unfolds to more than ${MAX_RATIO} times its size`,
      { hint: 'do not use this archive: no folder of sites packs so well' },
    );
  }
  refuseTotal(unpacked, shownAs);
}

/** @throws ConfigError `sites.too-large` */
export function refuseTotal(size: number, shownAs: string): void {
  if (size <= MAX_TOTAL) return;
  throw new ConfigError(
    'sites.too-large',
    `${shownAs} has more than ${formatSize(MAX_TOTAL)} of files`,
    { hint: 'split the sites over several sources' },
  );
}

/** PATH_MAX of Linux. */
const MAX_PATH = 4096;

/**
 * A member's name taken apart, or what is wrong with it. Leading `../`, doubled and trailing slashes
 * mean nothing.
 */
export type MemberPath = {
  readonly components: readonly string[];
  /** Why it is refused: it leads out of its folder, or no file system could hold it. */
  readonly refusal?: string;
};

export function parseMemberPath(path: string): MemberPath {
  const components = path.split('/').filter((component) => component !== '' && component !== '.');
  const refusal = findRefusal(path, components);
  return refusal === undefined ? { components } : { components, refusal };
}

function findRefusal(path: string, components: readonly string[]): string | undefined {
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'has an absolute path';
  if (components.includes('..')) return 'leads out of its folder with ".."';
  if (path.includes('\\')) return 'has a backslash in its name';
  // eslint-disable-next-line no-control-regex -- they are what is looked for
  if (/[\0-\x1f\x7f-\x9f]/.test(path)) return 'has control characters in its name';
  if (path.includes('\u{fffd}') || /\p{Surrogate}/u.test(path))
    return 'has a name that is not UTF-8';
  if (path.length > MAX_PATH) return `has a name of ${path.length} characters`;
  return undefined;
}

/**
 * What lies beside inputs and means nothing: hidden files (`.git`, `.DS_Store`, the installer's own
 * state), read-me files, and the folder that macOS adds to a zip.
 */
export const isIgnored = (name: string): boolean =>
  name === '__MACOSX' || /^README/i.test(name) || (name.startsWith('.') && !/^\.\.?$/.test(name));

/** Names that are one name on a file system that does not tell case or Unicode forms apart. */
export const foldName = (name: string): string =>
  name.normalize('NFC').toLowerCase().normalize('NFC');

/** A name for messages: short, on one line, nothing that moves a terminal's cursor. */
export const printable = (name: string): string =>
  toPrintable(
    JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}...` : name).slice(1, -1),
  ).replaceAll('\\\\', '\\');

/** RFC 1123 2.1 as Kubernetes has it: what is wrong with it as a label, or undefined. */
export function findLabelFault(name: string): string | undefined {
  if (name === '') return 'is empty';
  if (name.length > 63) return `has ${name.length} characters, and a DNS label has at most 63`;
  if (/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name)) return undefined;
  return 'is not a DNS label: it may have a-z, 0-9 and "-", and "-" neither first nor last';
}

/** Those that would be one name after folding, together; in their order. */
export function groupByFold<Item>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
): ReadonlyMap<string, readonly Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = foldName(nameOf(item));
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
