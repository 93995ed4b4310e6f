import { toPrintable } from '../../base/text/words.ts';

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
