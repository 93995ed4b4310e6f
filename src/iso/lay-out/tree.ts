import { ConfigError, IntegrityError } from '../../base/errors.ts';
import {
  assignIdentifiers,
  type NewName,
  entrySourceOf,
  newAttributes,
  withLinks,
  type EntryAttributes,
  type EntrySource,
} from '../directory/names.ts';
import { compareIdentifiers } from '../directory/record.ts';
import type { TreeFile } from '../extent.ts';
import type { BaseDirectory, BaseFile, FileSection } from '../read/base-tree.ts';

type TreeEntry = EntryAttributes & {
  /** Rock Ridge path; the root's is empty. */
  readonly path: string;
  /** ISO 9660 identifier, bytes as latin1. */
  readonly identifier: string;
};

/** The data of a file: already in the base, or to be placed. */
type FileData =
  | { readonly kind: 'base'; readonly sections: readonly FileSection[] }
  | { readonly kind: 'new'; readonly content: TreeFile['content'] };

export type TreeLeaf = TreeEntry & { readonly kind: 'file'; readonly data: FileData };

export type TreeDirectory = TreeEntry & {
  readonly kind: 'directory';
  /** In the order of directory records. */
  readonly children: readonly TreeNode[];
};

export type TreeNode = TreeLeaf | TreeDirectory;

export type Graft = {
  readonly files: readonly TreeFile[];
  /** Paths of files and directories; paths that the base does not have are ignored. */
  readonly remove: readonly string[];
  /** Seconds since 1970: the times of everything new. */
  readonly epoch: number;
};

type Draft = {
  readonly base: BaseDirectory | undefined;
  readonly directories: Map<string, Draft>;
  readonly files: Map<string, FileDraft>;
};

type FileDraft =
  | { readonly kind: 'base'; readonly base: BaseFile }
  /** `base` is the file it replaces. */
  | { readonly kind: 'new'; readonly base: BaseFile | undefined; readonly file: TreeFile };

/** Linux leaves out entries whose Rock Ridge name is longer. */
const MAX_NAME_SIZE = 253;
const DIRECTORY_MODE = 0o040755;
const FILE_MODE = 0o100000;
const DEFAULT_PERMISSIONS = 0o644;

/**
 * The tree of the base with the new files in it. Entries of the base keep their attributes and their ISO 9660
 * identifiers; a new file at the path of an old one takes over its identifier.
 */
export function mergeTree(base: BaseDirectory, graft: Graft): TreeDirectory {
  const root = draftOf(base);
  for (const path of graft.remove) removePath(root, path);
  const sorted = [...graft.files].sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const file of sorted) addFile(root, file);
  const source = entrySourceOf(base, graft.epoch);
  return finishDirectory(root, { path: '', identifier: '\0' }, source);
}

function draftOf(base: BaseDirectory): Draft {
  const draft: Draft = { base, directories: new Map(), files: new Map() };
  for (const child of base.children) {
    if (child.kind === 'directory') draft.directories.set(child.name, draftOf(child));
    else draft.files.set(child.name, { kind: 'base', base: child });
  }
  return draft;
}

function removePath(root: Draft, path: string): void {
  const names = path.split('/').slice(1);
  const last = names.pop() ?? '';
  let directory: Draft | undefined = root;
  for (const name of names) directory = directory?.directories.get(name);
  directory?.files.delete(last);
  directory?.directories.delete(last);
}

function addFile(root: Draft, file: TreeFile): void {
  const names = file.path.split('/').slice(1);
  if (!file.path.startsWith('/') || names.some((name) => ['', '.', '..'].includes(name))) {
    throw new Error(`path "${file.path}" of a new file is not absolute and plain`);
  }
  const last = names.pop() ?? '';
  let directory = root;
  for (const name of names) directory = enterDirectory(directory, name, file.path);
  requireNameFits(last, file.path);
  if (directory.directories.has(last)) throw conflict(file.path, last, 'directory');
  const old = directory.files.get(last);
  if (old?.kind === 'new') throw new Error(`path "${file.path}" is added twice`);
  directory.files.set(last, { kind: 'new', base: old?.base, file });
}

function enterDirectory(parent: Draft, name: string, path: string): Draft {
  const known = parent.directories.get(name);
  if (known) return known;
  requireNameFits(name, path);
  if (parent.files.has(name)) throw conflict(path, name, 'file');
  const added: Draft = { base: undefined, directories: new Map(), files: new Map() };
  parent.directories.set(name, added);
  return added;
}

function requireNameFits(name: string, path: string): void {
  const size = Buffer.byteLength(name);
  if (size <= MAX_NAME_SIZE) return;
  throw new ConfigError(
    'layout.name-too-long',
    `name "${name.slice(0, 40)}..." in ${path} has ${size} bytes, but Linux reads at most ${MAX_NAME_SIZE} from an ISO`,
  );
}

const conflict = (path: string, name: string, kind: string): IntegrityError =>
  new IntegrityError(
    'layout.conflict',
    `file ${path} cannot be added: "${name}" in its path is already a ${kind}`,
  );

type Naming = { readonly path: string; readonly identifier: string };

function finishDirectory(draft: Draft, naming: Naming, source: EntrySource): TreeDirectory {
  const identifiers = identifiersOf(draft);
  const namingOf = (name: string): Naming => ({
    path: `${naming.path}/${name}`,
    identifier: identifiers.get(name) ?? name,
  });
  const own = directoryAttributes(draft, naming, source);
  const children: TreeNode[] = [];
  for (const [name, child] of sortedEntries(draft.directories)) {
    children.push(finishDirectory(child, namingOf(name), source));
  }
  for (const [name, file] of sortedEntries(draft.files)) {
    children.push(finishFile(file, namingOf(name), source));
  }
  children.sort((a, b) => compareIdentifiers(bytesOf(a), bytesOf(b)));
  return { ...naming, ...own, kind: 'directory', children };
}

function directoryAttributes(draft: Draft, naming: Naming, source: EntrySource): EntryAttributes {
  const links = 2 + draft.directories.size;
  if (draft.base) return withLinks(draft.base, links);
  return newAttributes(source, { name: nameOf(naming.path), mode: DIRECTORY_MODE, links });
}

function finishFile(draft: FileDraft, naming: Naming, source: EntrySource): TreeLeaf {
  if (draft.kind === 'base') {
    const { flags, recordedAt, entries, sections } = draft.base;
    const data: FileData = { kind: 'base', sections };
    return { ...naming, flags, recordedAt, entries, kind: 'file', data };
  }
  const { file } = draft;
  const mode = FILE_MODE | (file.mode ?? DEFAULT_PERMISSIONS);
  const own = newAttributes(source, { name: nameOf(naming.path), mode, links: 1 });
  return { ...naming, ...own, kind: 'file', data: { kind: 'new', content: file.content } };
}

const bytesOf = ({ identifier }: TreeNode): Uint8Array => Buffer.from(identifier, 'latin1');

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

const sortedEntries = <T>(map: ReadonlyMap<string, T>): [string, T][] =>
  [...map].sort(([a], [b]) => (a < b ? -1 : 1));

function identifiersOf(draft: Draft): ReadonlyMap<string, string> {
  const known = new Map<string, string>();
  const newNames: NewName[] = [];
  for (const [name, { base }] of draft.directories) {
    if (base) known.set(name, base.identifier);
    else newNames.push({ name, kind: 'directory' });
  }
  for (const [name, file] of draft.files) {
    const given = file.base?.identifier ?? (file.kind === 'new' ? file.file.identifier : undefined);
    if (given === undefined) newNames.push({ name, kind: 'file' });
    else known.set(name, given);
  }
  return new Map([...known, ...assignIdentifiers(known.values(), newNames)]);
}
