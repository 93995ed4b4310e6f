import type { FilePlace, Problem } from '../../base/errors.ts';
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
