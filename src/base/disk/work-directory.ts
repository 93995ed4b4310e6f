import { randomBytes } from 'node:crypto';
import { mkdirSync, type Stats } from 'node:fs';
import { lstat, mkdir, readdir, realpath, rename, stat, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isDigestHex } from '../digest.ts';
import { isErrno, DiskError } from '../errors.ts';
import { probeDirectory } from './claim-output.ts';
import { isObstacle } from './disk-errors.ts';
import { makeDirectory } from './files.ts';
import { isOwnUser, openDirectory, openOwnDirectory, pathOfOpen } from './open-file.ts';

/** A directory of files that builds reuse; no other user can read or change it. */
export type WorkDirectory = {
  /**
   * Leads to the open directory, even if another file takes its name meanwhile; for child
   * processes too. Messages show the name (`nameHeld`).
   */
  readonly path: string;
  close: () => Promise<void>;
};

const MODE = 0o700; // only its owner may look into it

/** Directories of results. Each is our own directory, and not a link. */
const PLACES = [
  'stages',
  'stages/drawn',
  'tags',
  'finished',
  'uploads',
  'devices',
  'cache',
  'cache/base',
  'cache/catalogs',
  'cache/digests',
  'cache/installer',
  'cache/seed',
  'cache/blobs',
  'cache/blobs/partial',
  'cache/blobs/sha256',
];

/** Names that programs of any version give to files in it. */
const OURS =
  /^(?:stages|cache|tags|finished|uploads|devices|seal\.key|(?:installer|untrusted)-.+|.+\.tmp)$/;

/**
 * Opens the work directory, or makes it, for us alone. It may be a link that we or root made. Results that
 * others could have written are put aside; blobs stay, because their digests are checked when they are read.
 *
 * @param warn called for a directory that was too open, and once for parents that others can write
 * @throws DiskError `work-dir.foreign`, `work-dir.shared`, `work-dir.link`, `work-dir.unwritable`
 */
export async function openWorkDirectory(
  path: string,
  warn: (message: string) => void,
): Promise<WorkDirectory> {
  try {
    await makeDirectory(dirname(path));
    makePrivately(path);
    const follow = await isOwnLink(path);
    await requireOwn(await stat(path), path, path); // it may not let us open it
    const directory = await openDirectory(path, { follow });
    const held = hold(directory, path);
    try {
      await claim(directory, { path, root: held.path, warn });
      return held;
    } catch (error) {
      await held.close();
      throw error;
    }
  } catch (cause) {
    throw explainObstacle(path, cause);
  }
}

/** Names of the directories: errors are shown after they are closed. */
const names = new Map<string, string>();

function hold(directory: FileHandle, name: string): WorkDirectory {
  const path = pathOfOpen(directory);
  names.set(path, name);
  return { path, close: () => directory.close() };
}

/** A text in which work directories have the names that users gave them. */
export function nameHeld(text: string): string {
  if (names.size === 0) return text;
  return text.replaceAll(/\/proc\/\d+\/fd\/\d+/g, (path) => names.get(path) ?? path);
}

/**
 * Explains a file in a work directory that is not there and that no other code missed: it was
 * removed. Anything else is returned as it is.
 *
 * @returns DiskError `work-dir.lost`
 */
export function explainLoss(error: unknown): unknown {
  const said = isErrno(error, 'iso.unreadable', 'output.lost') ? (error as Error).cause : error;
  if (!isErrno(said, 'ENOENT', 'ENOTDIR')) return error;
  const { path: lost = '' } = said as NodeJS.ErrnoException;
  const held = [...names.keys()].find((path) => lost.startsWith(`${path}/`));
  if (held === undefined) return error;
  return new DiskError(
    'work-dir.lost',
    `the work directory "${names.get(held) ?? ''}" or files in it were removed or can no longer be reached`,
    { cause: error, hint: 'run the same command again, and do not touch the directory meanwhile' },
  );
}

function makePrivately(path: string): void {
  const umask = process.umask(0o077);
  try {
    mkdirSync(path, MODE);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  } finally {
    process.umask(umask);
  }
}

/** True if the path is a link of ours or of root; false if it is not a link. */
async function isOwnLink(path: string): Promise<boolean> {
  const stats = await lstat(path);
  if (!stats.isSymbolicLink()) return false;
  if (stats.uid === 0 || (await isOwnUser(stats.uid, path))) return true;
  throw foreign(`the link "${path}"`, stats);
}

async function requireOwn(stats: Stats, path: string, root: string): Promise<void> {
  if (await isOwnUser(stats.uid, join(root, 'probe'))) return;
  throw foreign(`work directory "${path}"`, stats);
}

type Claim = {
  readonly path: string;
  readonly root: string;
  readonly warn: (message: string) => void;
};

async function claim(directory: FileHandle, { path, root, warn }: Claim): Promise<void> {
  const stats = await directory.stat();
  await requireOwn(stats, path, root);
  const wasOpen = (stats.mode & 0o077) !== 0;
  if (wasOpen) await makePrivate(directory, { path, root });
  await probeDirectory(root);
  const isTrusted = (stats.mode & 0o022) === 0 && (await arePlacesPrivate(root, path));
  const aside = isTrusted ? undefined : await putAside(root);
  await makePlaces(root);
  if (aside !== undefined) await takeBlobs(aside, root);
  if (wasOpen || aside !== undefined) warn(describeOpen(path, aside));
  const parent = await findOpenParent(await realpath(root));
  if (parent !== undefined) {
    warn(
      `others can write to "${parent}", so they can remove or replace the work directory "${path}" between builds`,
    );
  }
}

const describeOpen = (path: string, aside: string | undefined): string =>
  aside === undefined
    ? `work directory "${path}" could be read by others: its mode is 0700 now`
    : `work directory "${path}" could be written by others: its mode is 0700 now, and results in it are not used; ` +
      `they are in "${join(path, basename(aside))}"`;

type ClaimedPlace = Pick<Claim, 'path' | 'root'>;

/** Makes a directory private if it holds only files of builds: no other becomes private by accident. */
async function makePrivate(directory: FileHandle, place: ClaimedPlace): Promise<void> {
  const { path, root } = place;
  const other = (await readdir(root)).find((name) => !OURS.test(name));
  const { mode } = await directory.stat();
  if (other !== undefined || (mode & 0o1000) !== 0) throw shared(path, mode, other);
  await directory.chmod(MODE);
  const now = (await directory.stat()).mode;
  if ((now & 0o022) !== 0) throw shared(path, now, undefined);
}

/** True if no other user could write to the directories of results since they were made. */
async function arePlacesPrivate(root: string, path: string): Promise<boolean> {
  for (const place of PLACES) {
    const stats = await lstatIfPresent(join(root, place));
    if (stats === undefined) continue;
    if (stats.isSymbolicLink()) throw linked(join(path, place));
    const isOwn = await isOwnUser(stats.uid, join(root, 'probe'));
    if (!stats.isDirectory() || !isOwn || (stats.mode & 0o022) !== 0) return false;
  }
  return true;
}

async function lstatIfPresent(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** Puts the results aside for good: a process that holds a directory open can still write to it. */
async function putAside(root: string): Promise<string> {
  const aside = join(root, `untrusted-${randomBytes(8).toString('hex')}`);
  await mkdir(aside, MODE);
  for (const name of await readdir(root)) {
    if (!name.startsWith('untrusted-')) await rename(join(root, name), join(aside, name));
  }
  return aside;
}

/** Makes the directories of results; their modes show the next build that only we could write to them. */
async function makePlaces(root: string): Promise<void> {
  for (const place of PLACES) {
    const path = join(root, place);
    makePrivately(path);
    await (await openOwnDirectory(path, MODE)).close();
  }
}

/** Brings back blobs that only we could write to. */
async function takeBlobs(aside: string, root: string): Promise<void> {
  const opened: FileHandle[] = [];
  try {
    for (const name of ['cache', 'blobs', 'sha256']) {
      opened.push(await openDirectory(join(pathOfLast(opened, aside), name)));
    }
    const from = pathOfLast(opened, aside);
    for (const name of await readdir(from)) {
      const path = join(from, name);
      const isTaken = isDigestHex(name) && isOwnAlone(await lstatIfPresent(path));
      if (isTaken) await rename(path, join(root, 'cache/blobs/sha256', name));
    }
  } catch (error) {
    // There are no blobs, or another user put something else in their place.
    if (!isErrno(error, 'ENOENT') && !(error instanceof DiskError)) throw error;
  } finally {
    for (const directory of opened) await directory.close();
  }
}

function pathOfLast(opened: readonly FileHandle[], otherwise: string): string {
  const last = opened.at(-1);
  return last === undefined ? otherwise : pathOfOpen(last);
}

const isOwnAlone = (stats: Stats | undefined): boolean =>
  stats?.isFile() === true &&
  stats.uid === process.geteuid?.() &&
  stats.nlink === 1 &&
  (stats.mode & 0o022) === 0;

/** The nearest directory above in which others can rename our files. */
async function findOpenParent(path: string): Promise<string | undefined> {
  const parent = dirname(path);
  if (parent === path) return undefined;
  const { uid, mode } = await stat(parent);
  const isSafeOwner = uid === 0 || uid === process.geteuid?.();
  const isSticky = (mode & 0o1000) !== 0;
  if (!isSafeOwner || ((mode & 0o022) !== 0 && !isSticky)) return parent;
  return findOpenParent(parent);
}

const foreign = (what: string, { uid }: Stats): DiskError =>
  new DiskError('work-dir.foreign', `${what} belongs to another user`, {
    expected: `user ${process.geteuid?.() ?? ''}`,
    found: `user ${uid}`,
    hint: 'name another one with --work-dir, or a new directory inside it',
  });

const shared = (path: string, mode: number, other: string | undefined): DiskError =>
  new DiskError('work-dir.shared', `others can use "${path}", which is not only a work directory`, {
    expected: 'mode 0700, or only files that builds made',
    found: `mode 0${(mode & 0o7777).toString(8)}${other === undefined ? '' : `, and "${other}"`}`,
    hint: 'name a new directory inside it with --work-dir',
  });

const linked = (path: string): DiskError =>
  new DiskError('work-dir.link', `"${path}" is a symbolic link`, {
    expected: 'a directory',
    found: 'a link',
    hint: 'make the work directory itself the link',
  });

function explainObstacle(path: string, cause: unknown): unknown {
  const isFile = cause instanceof DiskError && cause.code === 'file.not-directory';
  if (!isFile && !isObstacle(cause)) return cause;
  return new DiskError('work-dir.unwritable', `cannot write to the work directory "${path}"`, {
    cause,
    hint: 'name a directory on a writable disk with --work-dir',
  });
}
