import { closeSync, fstatSync, lstatSync, readdirSync, readSync, type Stats } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { openListedSync } from '../../base/disk/open-file.ts';
import { ConfigError } from '../../base/errors.ts';
import { isText } from '../../base/text/utf8.ts';
import { formatSize, printable } from '../../base/text/words.ts';
import {
  type MemberSource,
  type SiteMember,
  refuseManyMembers,
  isIgnoredFile,
  MAX_FILE,
  REFUSED,
  UNUSED,
  type SiteProblem,
} from './list.ts';
import { explainMissing, isInput } from './site-files.ts';
import { parseTemplate, placeHoles, type Template } from './template.ts';

/* Owns the reading of folders, of sites and of templates. */

type Walk = {
  readonly root: string;
  readonly signal: AbortSignal;
  readonly members: SiteMember[];
};

/** A file of a template folder: its path and its text, both with holes. */
export type TemplateFile = {
  readonly shownAs: string;
  readonly name: Template;
  readonly content: Template;
  /** Bytes before any value is put in. */
  readonly size: number;
  /** Base of `file:` references in the filled file. */
  readonly directory: string;
};

export type TemplateFolder = {
  readonly files: readonly TemplateFile[];
  /** If there is an error among them, no site can be made. */
  readonly problems: readonly SiteProblem[];
};

/** Reads the folder that a table fills: the files of one site, UTF-8, with holes in texts and names. */
export async function readTemplateFolder(
  path: string,
  signal: AbortSignal,
): Promise<TemplateFolder> {
  const { members } = await readFolder(path, signal);
  const files: TemplateFile[] = [];
  const problems: SiteProblem[] = [];
  for (const member of members.filter(({ kind }) => kind !== 'folder')) {
    const shownAs = `${path}/${printable(member.path)}`;
    const file = await readTemplateFile(member, shownAs);
    if ('severity' in file) problems.push(file);
    else files.push(file);
  }
  for (const { shownAs, name, content } of files) {
    for (const fault of [...name.faults, ...content.faults]) {
      problems.push({ ...REFUSED, name: '', file: shownAs, ...fault });
    }
  }
  const missing = explainMissing(new Set(members.map((member) => member.path)));
  if (missing !== undefined) problems.push(toError(path, missing));
  return { files, problems };
}

/**
 * Lists the content of a folder. Links are not followed, but the folder itself may be a link.
 *
 * @throws ConfigError `sites.unreadable`, `sites.too-large`
 */
export async function readFolder(path: string, signal: AbortSignal): Promise<MemberSource> {
  const walk: Walk = { root: path, signal, members: [] };
  await walkFolder(walk, '', 1);
  return {
    shownAs: path,
    rootName: basename(resolve(path)),
    members: walk.members,
    close: () => Promise.resolve(),
  };
}

/** Below `sites/alpha/extra-manifests/`, folders are named but not read. */
const MAX_DEPTH = 3;

/** Synchronous calls: ten thousand sites need forty thousand of them, and they are three times as fast. */
async function walkFolder(walk: Walk, folder: string, depth: number): Promise<void> {
  await new Promise(setImmediate);
  walk.signal.throwIfAborted();
  const inner: string[] = [];
  for (const entry of readNames(join(walk.root, folder))) {
    if (isIgnoredFile(entry)) continue;
    const path = folder === '' ? entry : `${folder}/${entry}`;
    const member = readMember(walk.root, path);
    walk.members.push(member);
    if (member.kind === 'folder' && depth < MAX_DEPTH) inner.push(path);
  }
  refuseManyMembers(walk.members.length, walk.root);
  for (const path of inner) await walkInner(walk, path, depth + 1);
}

/** A folder within a source that cannot be read concerns only one site. */
async function walkInner(walk: Walk, folder: string, depth: number): Promise<void> {
  try {
    await walkFolder(walk, folder, depth);
  } catch (error) {
    if (!(error instanceof ConfigError) || error.code !== 'sites.unreadable') throw error;
    const read = (): Promise<never> => Promise.reject(error);
    walk.members.push({ path: folder, kind: { other: 'cannot be read' }, size: 0, read });
  }
}

function readNames(path: string): string[] {
  try {
    return readdirSync(path).sort();
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('sites.unreadable', `folder ${path} cannot be read`, {
      cause,
      hint: 'check the name and permissions of the folder',
    });
  }
}

function readMember(root: string, path: string): SiteMember {
  const full = join(root, path);
  try {
    const stat = lstatSync(full);
    return {
      path,
      kind: kindOf(stat),
      size: stat.size,
      read: () => readWhole(full, stat.size),
      directory: dirname(resolve(full)),
    };
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    const other = 'was removed, or its name is not UTF-8';
    return { path, kind: { other }, size: 0, read: () => readWhole(full, 0) };
  }
}

function kindOf(stat: Stats): SiteMember['kind'] {
  if (stat.isFile()) return 'file';
  if (stat.isDirectory()) return 'folder';
  if (stat.isSymbolicLink()) return { other: 'is a symbolic link' };
  return { other: 'is a device, a pipe or a socket' };
}

/**
 * Anything that replaced the file since it was listed is refused, not followed. The calls are synchronous, as in
 * `walkFolder`: the others take a tenth of a millisecond for each file.
 */
async function readWhole(path: string, size: number): Promise<Uint8Array> {
  await new Promise(setImmediate);
  const file = openWhole(path);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.size !== size) throw changedError(path);
    const bytes = new Uint8Array(size);
    if (readSync(file, bytes, 0, size, 0) !== size) throw changedError(path);
    return bytes;
  } finally {
    closeSync(file);
  }
}

function openWhole(path: string): number {
  try {
    return openListedSync(path);
  } catch (cause) {
    throw new ConfigError('sites.unreadable', `file ${path} cannot be read`, { cause });
  }
}

const changedError = (path: string): ConfigError =>
  new ConfigError('sites.changed', `file ${path} changed while the sites were read`, {
    hint: 'run the same command again',
  });

async function readTemplateFile(
  { path, kind, size, read, directory = '' }: SiteMember,
  shownAs: string,
): Promise<TemplateFile | SiteProblem> {
  if (typeof kind === 'object') return toError(shownAs, kind.other);
  if (!isInput(path)) return { ...toError(shownAs, 'is not used'), ...UNUSED };
  if (size > MAX_FILE) {
    return toError(
      shownAs,
      `has ${formatSize(size)}, but a file may have at most ${formatSize(MAX_FILE)}`,
    );
  }
  const bytes = await read();
  if (!isText(bytes)) return toError(shownAs, 'is not UTF-8 text');
  const content = placeHoles(parseTemplate(new TextDecoder().decode(bytes)));
  return { shownAs, name: parseTemplate(path), content, size, directory };
}

const toError = (shownAs: string, problem: string): SiteProblem => ({
  ...REFUSED,
  name: '',
  file: shownAs,
  problem,
});
