import { type FilePlace, type FileProblem, type Problem, ConfigError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/words.ts';
import type { SiteInput } from '../site.ts';

/* Owns the types of a list of sites, the limits of sources, and the checks of names. */

/**
 * A problem of the inputs before any of them is read. An error keeps its site, or without a site its
 * member, out of the list; a warning or a note does not.
 */
export type SiteProblem = Problem<FilePlace> & {
  /** Name of the site as it was found, or '' if the problem belongs to no site. */
  readonly name: string;
};

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
  /** Names the cell or template line that caused a finding; absent if the files are as they were written. */
  readonly trace?: (name: string, findings: readonly FileProblem[]) => readonly FileProblem[];
  readonly close: () => Promise<void>;
};

/** An entry in a folder or an archive, before its site is known. */
export type SiteMember = {
  /** Path as written, including any tricks of an archive; `/` between names. */
  readonly path: string;
  /** `other` describes an entry that is neither a file nor a folder, or cannot be read: it is refused. */
  readonly kind: 'file' | 'folder' | { readonly other: string };
  /** Bytes, as the source declares it. */
  readonly size: number;
  /** Never gives more than `size` bytes; errors are those of {@link SiteList.open}. */
  readonly read: () => Promise<Uint8Array>;
  /** Absolute folder of the file on this machine; absent inside an archive. */
  readonly directory?: string;
};

export type MemberSource = {
  /** Name of the source in problems, before the path of a member. */
  readonly shownAs: string;
  /** Name of a site at the root of the source. */
  readonly rootName: string;
  readonly members: readonly SiteMember[];
  readonly close: () => Promise<void>;
};

/** A member's name in parts, or its fault. Leading `./`, doubled and trailing slashes have no meaning. */
export type MemberPath = {
  readonly components: readonly string[];
  /** Reason for refusal: it leads out of its folder, or no file system could hold it. */
  readonly refusal?: string;
};

export const REFUSED = { severity: 'error', code: 'sites.input' } as const;
export const UNUSED = { severity: 'warning', code: 'sites.input' } as const;
export const HARMLESS = { severity: 'note', code: 'sites.input' } as const;

/** Gives a list that names files below a folder by their path relative to it, as users do. */
export function nameBelow(list: SiteList, cwd: string): SiteList {
  const shortenName = (name: string): string =>
    name.startsWith(`${cwd}/`) ? name.slice(cwd.length + 1) : name;
  /** By the files of a folder that has several sites; they may be thousands. */
  const known = new WeakMap<SiteInput['files'], SiteInput['files']>();
  return {
    ...list,
    problems: list.problems.map((each) => ({ ...each, file: shortenName(each.file) })),
    ...(list.trace && {
      trace: (name: string, findings: readonly FileProblem[]) =>
        list.trace?.(name, findings).map((each) => ({ ...each, file: shortenName(each.file) })) ??
        [],
    }),
    open: async (name) => {
      const { files, ...input } = await list.open(name);
      const named =
        known.get(files) ?? files.map((file) => ({ ...file, shownAs: shortenName(file.shownAs) }));
      if (input.root !== undefined) known.set(files, named);
      return { ...input, files: named };
    },
  };
}

/** A site's inputs are about 10 kB; these limits keep hostile archives from filling memory or disk. */
export const MAX_FILE = 1 << 20;
export const MAX_SITE = 16 << 20;
export const MAX_TABLE = 64 << 20;

/** Ten thousand sites of fifty files each. */
const MAX_MEMBERS = 500_000;

export function refuseManyMembers(count: number, shownAs: string): void {
  if (count <= MAX_MEMBERS) return;
  throw new ConfigError('sites.too-large', `${shownAs} has more than ${MAX_MEMBERS} members`, {
    hint: 'split the sites over several sources',
  });
}

/**
 * Limit on how far a .tar.gz may unpack: sites made from one template reach about 60 times, a run
 * of zeros 1,000 times. Not checked if the unpacked size is small.
 */
const MAX_RATIO = 300;
const RATIO_FLOOR = 64 << 20;

export function refuseBomb(packed: number, unpacked: number, shownAs: string): void {
  if (unpacked > RATIO_FLOOR && unpacked > packed * MAX_RATIO) {
    throw new ConfigError(
      'sites.too-large',
      `${shownAs} unpacks to more than ${MAX_RATIO} times its size`,
      { hint: 'do not use this archive: no folder of sites compresses so well' },
    );
  }
  refuseTotal(unpacked, shownAs);
}

const MAX_TOTAL = 4 * 2 ** 30;

export function refuseTotal(size: number, shownAs: string): void {
  if (size <= MAX_TOTAL) return;
  throw new ConfigError(
    'sites.too-large',
    `${shownAs} has more than ${formatSize(MAX_TOTAL)} of files`,
    { hint: 'split the sites over several sources' },
  );
}

/** Splits the name of a member; a fault is returned, not thrown. */
export function parseMemberPath(path: string): MemberPath {
  const components = path.split('/').filter((component) => component !== '' && component !== '.');
  const refusal = findRefusal(path, components);
  return refusal === undefined ? { components } : { components, refusal };
}

export const NOT_AN_INPUT =
  'is not used: inputs are install-config.yaml, image-based-config.yaml or agent-config.yaml, resources in their ' +
  'place, and manifests in extra-manifests or openshift';

/**
 * Names next to inputs that have no meaning: hidden files (`.git`, `.DS_Store`, the installer's
 * own state), read-me files, and the folder that macOS adds to a zip.
 */
export const isIgnoredFile = (name: string): boolean =>
  name === '__MACOSX' || /^README/i.test(name) || (name.startsWith('.') && !/^\.\.?$/.test(name));

/** Maps names to one form if a file system that ignores case and Unicode forms treats them as one. */
export const foldName = (name: string): string =>
  name.normalize('NFC').toLowerCase().normalize('NFC');

/** RFC 1123 2.1 in Kubernetes' version: the fault of a name as a label, or undefined. */
export function findLabelFault(name: string): string | undefined {
  if (name === '') return 'is empty';
  if (name.length > 63) return `has ${name.length} characters, but a DNS label has at most 63`;
  if (/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name)) return undefined;
  return 'is not a DNS label: it may have a-z, 0-9 and "-", but not begin or end with "-"';
}

/** Groups items whose names become one name after folding; in their order. */
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

/** PATH_MAX of Linux. */
const MAX_PATH = 4096;

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
