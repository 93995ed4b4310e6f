import { fstatSync, lstatSync, renameSync, type BigIntStats } from 'node:fs';
import { lstat, rename, rm, type FileHandle } from 'node:fs/promises';
import { DiskError, isErrno } from '../errors.ts';
import { nameAside } from './aside.ts';
import { createFile } from './open-file.ts';

/*
 * Publishes by identity: a file gets its final name only if it is the file that this process wrote
 * and still has open. A lease may be lost, and a name may be taken by another process; an open file
 * is the same file to its end, and no other one has its inode number meanwhile.
 */

/**
 * Gives an open file its final name, in place of any file that has it. Of several processes that
 * publish one name, the last one wins, with its whole file.
 *
 * @throws DiskError `output.lost` if another file has the interim name; the system's errors
 */
export async function publishFile(file: FileHandle, from: string, to: string): Promise<void> {
  await requireNamed(file, from);
  await rename(from, to);
}

/** The synchronous {@link publishFile}. */
export function publishFileSync(file: number, from: string, to: string): void {
  refuseOther(fstatSync(file, { bigint: true }), lstatSync(from, GENTLY), from);
  renameSync(from, to);
}

const GENTLY = { bigint: true, throwIfNoEntry: false } as const;

/**
 * Requires that a path names an open file, and no other one.
 *
 * @throws DiskError `output.lost`; the system's errors
 */
export async function requireNamed(file: FileHandle, path: string): Promise<void> {
  const own = await file.stat({ bigint: true });
  const found = await lstat(path, { bigint: true }).catch((error: unknown) => {
    throw isErrno(error, 'ENOENT')
      ? createLoss(own, path, { found: 'no file', cause: error })
      : error;
  });
  refuseOther(own, found, path);
}

/**
 * Writes a file aside, syncs it, and gives it its name: a reader sees the old file or the whole new
 * one. If it fails, nothing stays. The caller syncs the directory.
 *
 * @param mode permission bits; by default the owner's alone
 * @param fill writes the content; the second argument is the name of the file meanwhile
 * @throws DiskError `output.lost`; the errors of `fill`; the system's errors
 */
export async function publishNew<Result>(
  path: string,
  { mode }: { readonly mode?: number },
  fill: (file: FileHandle, aside: string) => Promise<Result>,
): Promise<Result> {
  const { file, result } = await writeNamed(path, mode, fill);
  await file.close();
  return result;
}

/** A whole file that has an interim name, and stays open until it has its final one. */
export type PreparedFile = {
  /** @throws DiskError `output.lost`; the system's errors */
  readonly publish: (to: string) => Promise<void>;
  /** Also removes the file if it still has its interim name. */
  readonly close: () => Promise<void>;
};

/** Writes a file under an interim name at which the next run looks for it. */
export async function prepareFile(path: string, data: string, mode: number): Promise<PreparedFile> {
  const { file } = await writeNamed(path, mode, (file) => file.writeFile(data));
  let isPublished = false;
  return {
    async publish(to) {
      await publishFile(file, path, to);
      isPublished = true;
    },
    async close() {
      try {
        if (!isPublished && (await isNamed(file, path))) await rm(path, { force: true });
      } finally {
        await file.close();
      }
    },
  };
}

/** The caller closes the file. */
async function writeNamed<Result>(
  path: string,
  mode: number | undefined,
  fill: (file: FileHandle, aside: string) => Promise<Result>,
): Promise<{ readonly file: FileHandle; readonly result: Result }> {
  const aside = await nameAside(path);
  const file = await createFile(aside, mode);
  try {
    const result = await fill(file, aside);
    await file.sync();
    await publishFile(file, aside, path);
    return { file, result };
  } catch (error) {
    await file.close();
    await rm(aside, { force: true });
    throw error;
  }
}

async function isNamed(file: FileHandle, path: string): Promise<boolean> {
  const own = await file.stat({ bigint: true });
  const found = await lstatUnlessAbsent(path);
  return isSame(own, found);
}

async function lstatUnlessAbsent(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

const isSame = (own: BigIntStats, found: BigIntStats | undefined): boolean =>
  found?.ino === own.ino && found.dev === own.dev;

function refuseOther(own: BigIntStats, found: BigIntStats | undefined, path: string): void {
  if (isSame(own, found)) return;
  throw createLoss(own, path, { found: found ? `inode ${found.ino}` : 'no file' });
}

const createLoss = (
  { ino }: BigIntStats,
  path: string,
  { found, cause }: { readonly found: string; readonly cause?: unknown },
): DiskError =>
  new DiskError('output.lost', `"${path}" is not the file that this run wrote`, {
    expected: `inode ${ino}`,
    found,
    hint: 'run the same command again when no other process writes to this place',
    cause,
  });
