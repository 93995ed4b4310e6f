import { randomBytes } from 'node:crypto';
import { readdir, rename, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf, type Digest } from '../../base/digest.ts';
import { isErrno } from '../../base/errors.ts';
import { makeDirectory, sizeOf } from '../../base/disk/files.ts';
import { openOwnFile } from '../../base/disk/open-file.ts';

/** A blob that is not whole yet, and that no other process writes to. */
export type Partial = { readonly path: string; readonly file: FileHandle; readonly size: number };

/** This process, even where another run had the same id (as in containers, where ids repeat). */
const RUN = randomBytes(6).toString('hex');

/** Readers of one process never ask for one blob together, yet a name is never used twice. */
let count = 0;

/**
 * Opens a partial file: one that an ended process left, else a new one.
 *
 * `<directory>/partial/<hex>.<pid>.<run>.<n>`: a process takes over what a dead one left by
 * renaming it, which only one can. So two builds never write one file.
 */
export async function claimPartial(directory: string, digest: Digest): Promise<Partial> {
  const folder = join(directory, 'partial');
  await makeDirectory(folder, 0o700);
  count += 1;
  const path = join(folder, `${hexOf(digest)}.${process.pid}.${RUN}.${count}`);
  for (const left of await listLeftOvers(folder, digest)) await hasMoved(left, path);
  const file = await openOwnFile(path);
  return { path, file, size: (await file.stat()).size };
}

/** The smallest first: each replaces the one before it, so that the largest stays and no other does. */
async function listLeftOvers(folder: string, digest: Digest): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => isLeftOver(name, digest));
  const sized = await Promise.all(
    names.map(async (name) => ({
      path: join(folder, name),
      size: await sizeOf(join(folder, name)),
    })),
  );
  return sized.sort((a, b) => a.size - b.size).map(({ path }) => path);
}

function isLeftOver(name: string, digest: Digest): boolean {
  const [hex, pid, run] = name.split('.');
  if (hex !== hexOf(digest) || pid === undefined) return false;
  return Number(pid) === process.pid ? run !== RUN || isReleased(name) : !isAlive(Number(pid));
}

const isReleased = (name: string): boolean => name.endsWith('.free');

/** After a failure: the next one, of this process or another, may continue it at once. */
export async function releasePartial({ path }: Partial): Promise<void> {
  await hasMoved(path, `${path}.free`);
}

function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !isErrno(error, 'ESRCH');
  }
}

async function hasMoved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}
