import type { Stats } from 'node:fs';
import { lstat, readlink, realpath, rm, stat, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { isErrno, DiskError, UsageError } from '../errors.ts';
import { nameAside, sweepDirectory } from './aside.ts';
import { isObstacle } from './disk-errors.ts';
import { digestFile, digestOpenFile, makeDirectory, syncDirectory } from './files.ts';
import { createFile, isOwnUser } from './open-file.ts';
import { publishNew } from './publish.ts';

/* Owns the decision whether a path may become an output; nothing stays changed on the disk. */

/** A file to be written, and the files that must survive it. Absolute paths. */
export type OutputPlace = {
  readonly path: string;
  /** Files and directories that are read; absent ones are ignored. */
  readonly inputs?: readonly string[];
  /** Work directories, which have room only for the files that the program keeps. */
  readonly workDirs?: readonly string[];
};

export type OutputRule = {
  /** Replaces any regular file. A path that `checkOutputPlace` refuses stays refused. */
  readonly force: boolean;
  /** True if the existing regular file may be replaced, for instance because an earlier run made it. */
  readonly isReplaceable: () => Promise<boolean>;
  /** Description of the files that `isReplaceable` accepts; absent if it accepts nothing. */
  readonly expected?: string;
  /** Describes a file that is not accepted, if its content says what it is. */
  readonly describe?: () => Promise<string | undefined>;
};

/**
 * Decides whether a file may be written. The path may be free, or name an empty regular file of
 * ours (as mktemp makes one) or a file that the rule accepts. Nothing is changed.
 *
 * @throws UsageError `output.exists`; errors of `checkOutputPlace`
 */
export async function claimOutput(place: OutputPlace, rule: OutputRule): Promise<void> {
  const found = await checkOutputPlace(place);
  if (found === undefined || rule.force) return;
  const isOwn = found.size > 0 || (await isOwnUser(found.uid, place.path));
  if (found.size === 0 && isOwn) return;
  if (await rule.isReplaceable()) return;
  throw new UsageError('output.exists', `"${place.path}" exists and would be overwritten`, {
    expected: listMay(rule.expected),
    found: isOwn
      ? ((await rule.describe?.()) ?? `a file of ${found.size} bytes`)
      : `an empty file of user ${found.uid}`,
    hint: 'name another file, or overwrite this one with --force',
  });
}

const listMay = (expected: string | undefined): string =>
  expected === undefined
    ? 'nothing, or an empty file of yours'
    : `nothing, an empty file of yours, or ${expected}`;

/**
 * Writes a file aside and gives it its name. The name may be free, or that of a file with the same
 * bytes, as an interrupted run left it; with `force`, of any regular file.
 *
 * @param fill writes the content; the second argument is the name of the file meanwhile
 * @throws errors of `claimOutput` and `publishNew`
 */
export async function publishOnce<Result>(
  place: OutputPlace,
  { force, mode }: { readonly force: boolean; readonly mode: number },
  fill: (file: FileHandle, aside: string) => Promise<Result>,
): Promise<Result> {
  await checkOutputPlace(place);
  await makeDirectory(dirname(place.path));
  const result = await publishNew(place.path, { mode }, async (file, aside) => {
    const made = await fill(file, aside);
    const isReplaceable = async (): Promise<boolean> =>
      (await digestFile(place.path)) === (await digestOpenFile(file));
    await claimOutput(place, { force, expected: 'a file of the same content', isReplaceable });
    return made;
  });
  await syncDirectory(dirname(place.path));
  return result;
}

/**
 * Refuses a path that can never be an output, even with force: anything but a regular file (a
 * symbolic link too: it is not followed, and not replaced), an input under any of its names, a
 * place in the work directory or in a directory that is read, and a folder that cannot be written.
 * Missing folders are made later. Nothing stays changed.
 *
 * @returns the existing regular file, undefined if there is no file
 * @throws UsageError `output.not-a-file`, `output.link`, `output.special-place`,
 * `output.is-input`, `output.reserved`, `output.name-too-long`; DiskError `output.unwritable`
 */
export async function checkOutputPlace(place: OutputPlace): Promise<Stats | undefined> {
  checkLength(place.path);
  const found = await lookAt(place.path);
  if (found && !found.isFile()) throw await notAFile(place.path, found);
  const folder = await findFolder(place.path);
  refuseSpecial(folder);
  await refuseReserved(folder, place);
  if (found) await refuseInput(found, place);
  await checkWritable(folder);
  return found;
}

/** NAME_MAX of Linux, less the characters that the names of files next to an output add. */
const MAX_NAME = 255 - 64;

function checkLength(path: string): void {
  const length = Buffer.byteLength(basename(path));
  if (length <= MAX_NAME) return;
  throw new UsageError('output.name-too-long', `the name of the output has ${length} bytes`, {
    expected: `at most ${MAX_NAME} bytes`,
    found: `${length} bytes`,
    hint: 'use a shorter name',
  });
}

async function lookAt(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw unwritable(path, error);
  }
}

/** The kinds of files besides regular ones, each with its remedy. */
const KINDS: readonly {
  readonly is: (stats: Stats) => boolean;
  readonly kind: string;
  readonly hint: string;
}[] = [
  { is: (stats) => stats.isDirectory(), kind: 'a directory', hint: 'name a file in it' },
  {
    is: (stats) => stats.isBlockDevice(),
    kind: 'a block device',
    hint: 'name a file, and copy that to the device when it is complete',
  },
  { is: (stats) => stats.isCharacterDevice(), kind: 'a character device', hint: 'name a file' },
  { is: (stats) => stats.isFIFO(), kind: 'a named pipe', hint: 'name a file' },
  { is: (stats) => stats.isSocket(), kind: 'a socket', hint: 'name a file' },
];

async function notAFile(path: string, found: Stats): Promise<UsageError> {
  if (found.isSymbolicLink()) {
    return new UsageError('output.link', `"${path}" is a symbolic link`, {
      expected: 'a regular file, or nothing',
      found: `a link to "${await readlink(path)}"`,
      hint: 'name the file itself, or remove the link',
    });
  }
  const { kind, hint } = KINDS.find(({ is }) => is(found)) ?? {
    kind: 'not a regular file',
    hint: 'name another file',
  };
  const expected = 'a regular file, or nothing';
  return new UsageError('output.not-a-file', `"${path}" is ${kind}`, {
    expected,
    found: kind,
    hint,
  });
}

/** The target of a path: the nearest directory that exists, and the whole path without links. */
type Folder = { readonly existing: string; readonly real: string };

async function findFolder(path: string, missing = basename(path)): Promise<Folder> {
  const parent = dirname(path);
  try {
    const found = await stat(parent);
    const existing = await realpath(parent);
    if (found.isDirectory()) return { existing, real: join(existing, missing) };
    throw new UsageError('output.not-a-file', `"${parent}" is not a directory`, {
      expected: 'a directory',
      found: 'a file',
      hint: 'name a file in a directory',
    });
  } catch (error) {
    if (isErrno(error, 'ENOTDIR')) return findFolder(parent, join(basename(parent), missing));
    if (!isErrno(error, 'ENOENT')) throw unwritable(parent, error);
    // A link that leads nowhere is not replaced by a directory.
    const dangling = await lookAt(parent);
    if (dangling) throw await notAFile(parent, dangling);
    return findFolder(parent, join(basename(parent), missing));
  }
}

/** The kernel's own file systems: nothing written there becomes a file. */
const SPECIAL = ['/proc', '/sys', '/dev'];

function refuseSpecial({ real }: Folder): void {
  const special = SPECIAL.find((directory) => isWithin(real, directory));
  if (special === undefined || isWithin(real, '/dev/shm')) return;
  throw new UsageError(
    'output.special-place',
    `"${real}" is in ${special}, which does not store files`,
    {
      expected: 'a place on a disk',
      found: real,
      hint: 'name a file elsewhere',
    },
  );
}

async function refuseReserved({ real }: Folder, place: OutputPlace): Promise<void> {
  const { workDirs = [], inputs = [] } = place;
  for (const path of workDirs) {
    if (isWithin(real, await findRealPath(path)))
      throw reserved(real, `the work directory "${path}"`);
  }
  for (const path of inputs) {
    const found = await statIfPresent(path);
    if (found?.isDirectory() !== true || !isWithin(real, await realpath(path))) continue;
    throw reserved(real, `"${path}", which is an input`);
  }
}

const reserved = (path: string, where: string): UsageError =>
  new UsageError('output.reserved', `"${path}" is in ${where}`, {
    expected: 'a place outside of it',
    found: path,
    hint: 'name a file elsewhere',
  });

/** Refuses an input. A file has as many names as it has hard links, and symbolic links to each. */
async function refuseInput(found: Stats, { path, inputs = [] }: OutputPlace): Promise<void> {
  for (const input of inputs) {
    const used = await statIfPresent(input);
    if (used?.dev !== found.dev || used.ino !== found.ino) continue;
    throw new UsageError('output.is-input', `the output "${path}" is an input of this run`, {
      expected: 'a file that is not read',
      found: `the same file as "${input}"`,
      hint: 'name another file',
    });
  }
}

async function checkWritable({ existing }: Folder): Promise<void> {
  try {
    await probeDirectory(existing);
  } catch (error) {
    throw unwritable(existing, error);
  }
}

/**
 * Makes a file and removes it: permission bits alone do not show every obstacle. Files that killed
 * processes wrote aside are removed once for each directory.
 */
export async function probeDirectory(path: string): Promise<void> {
  if (!swept.has(path)) await sweepDirectory(path);
  swept.add(path);
  const probe = await nameAside(join(path, 'probe'));
  await (await createFile(probe)).close();
  await rm(probe, { force: true });
}

const swept = new Set<string>();

const unwritable = (path: string, cause: unknown): unknown =>
  isObstacle(cause)
    ? new DiskError('output.unwritable', `nothing can be written to "${path}"`, {
        cause,
        hint: 'name a writable place',
      })
    : cause;

async function statIfPresent(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP', 'ENAMETOOLONG')) return undefined;
    throw error;
  }
}

/** A path without links, as far as it exists. */
export async function findRealPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isErrno(error, 'ENOENT', 'ENOTDIR') || dirname(path) === path)
      throw unwritable(path, error);
    return join(await findRealPath(dirname(path)), basename(path));
  }
}

/** True if a path is a directory or in it, by names alone. */
export function isWithin(path: string, directory: string): boolean {
  const below = relative(directory, path);
  return below === '' || !(below === '..' || below.startsWith('../'));
}
