import { readdir, rename, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf, type Digest } from '../digest.ts';
import { isAbandoned } from '../disk/aside.ts';
import { makeDirectory, sizeOf } from '../disk/files.ts';
import { isRunning, isSelf, readSelf } from '../disk/holder.ts';
import { openOwnFile } from '../disk/open-file.ts';
import { isErrno } from '../errors.ts';
import { withoutUndefined } from '../lists.ts';

/** A blob that is not whole yet, and that no other process writes to. */
export type Partial = { readonly path: string; readonly file: FileHandle; readonly size: number };

/** Readers of one process never ask for one blob together, yet a name is never used twice. */
let count = 0;

/**
 * Opens a partial file: one that an ended process left, else a new one.
 *
 * `<directory>/partial/<hex>.<pid>-<start>-<space>.<n>`: a process takes over a dead one's file by
 * renaming it, which only one can. So two builds never write one file.
 */
export async function claimPartial(directory: string, digest: Digest): Promise<Partial> {
  const folder = join(directory, 'partial');
  await makeDirectory(folder, 0o700);
  const { pid, start, space } = await readSelf();
  count += 1;
  const path = join(folder, `${hexOf(digest)}.${pid}-${start}-${space}.${count}`);
  for (const left of await listLeftOvers(folder, digest)) await hasMoved(left, path);
  const file = await openOwnFile(path);
  return { path, file, size: (await file.stat()).size };
}

/** Lists the smallest first: each replaces the one before it, so that only the largest stays. */
async function listLeftOvers(folder: string, digest: Digest): Promise<string[]> {
  const sized: { readonly path: string; readonly size: number }[] = [];
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (await isLeftOver(path, name, digest)) sized.push({ path, size: await sizeOf(path) });
  }
  return sized.sort((a, b) => a.size - b.size).map(({ path }) => path);
}

/** The names of commit 277b08f have a process id alone: `<hex>.<pid>.<run>.<n>`. */
const OWNER = /^(\d+)(?:-(\d+)-([0-9a-f]{16}))?$/;

async function isLeftOver(path: string, name: string, digest: Digest): Promise<boolean> {
  const [hex, owner = ''] = name.split('.');
  const [, id, start, space] = OWNER.exec(owner) ?? [];
  if (hex !== hexOf(digest) || id === undefined) return false;
  if (name.endsWith('.free')) return true;
  const pid = Number(id);
  if (start === undefined) return pid === process.pid || !(await isRunning(pid));
  const holder = { pid, start, ...withoutUndefined({ space }) };
  return !(await isSelf(holder)) && (await isAbandoned(path, holder));
}

/** Releases the file after a failure: the next process, or this one, may continue it at once. */
export async function releasePartial({ path }: Partial): Promise<void> {
  await hasMoved(path, `${path}.free`);
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
