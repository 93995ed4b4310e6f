import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isErrno } from '../errors.ts';
import { judge, readSelf, type Holder } from './holder.ts';

/**
 * A name next to a path for a file that is not whole yet; no other process uses it. The name identifies its
 * owner, so that a file left by a killed process can be told from one that is being written.
 */
export async function nameAside(path: string): Promise<string> {
  const { pid, start, space } = await readSelf();
  return `${path}.${pid}-${start}-${space}-${randomBytes(6).toString('hex')}.tmp`;
}

/** The names of commit 277b08f have no space: their process was looked for in every container. */
const ASIDE = /^(.+)\.(\d+)-(\d+)-(?:([0-9a-f]{16})-)?[0-9a-f]{12}\.tmp$/;

/** Removes files that killed processes left next to a path that only this process may write. */
export async function sweepAside(path: string): Promise<void> {
  await sweep(dirname(path), { name: basename(path), isAlone: true });
}

/**
 * Removes files that killed processes left in a directory that others may be writing to, too; with
 * `alone`, only this process writes there. A file that disappears meanwhile is ignored.
 */
export async function sweepDirectory(
  directory: string,
  { alone = false }: { readonly alone?: boolean } = {},
): Promise<void> {
  await sweep(directory, { isAlone: alone });
}

/** Milliseconds for which a file that names no space stays after it was written. */
const REST_MS = 60_000;

/**
 * Milliseconds for which a file of a process elsewhere stays after it was written: nothing renews
 * it while its owner waits for a network.
 */
const REST_ELSEWHERE_MS = 3_600_000;

type Sweep = { readonly name?: string; readonly isAlone: boolean };

async function sweep(directory: string, { name, isAlone }: Sweep): Promise<void> {
  for (const entry of await listNames(directory)) {
    const owned = parseAside(entry);
    if (!owned || (name !== undefined && name !== owned.of)) continue;
    const path = join(directory, entry);
    if (await isLeft(path, owned.owner, isAlone)) await rm(path, { recursive: true, force: true });
  }
}

function parseAside(entry: string): { readonly of: string; readonly owner: Holder } | undefined {
  const [, of, pid, start = '', space] = ASIDE.exec(entry) ?? [];
  if (of === undefined) return undefined;
  return { of, owner: { pid: Number(pid), start, ...(space !== undefined && { space }) } };
}

async function isLeft(path: string, owner: Holder, isAlone: boolean): Promise<boolean> {
  const judgement = await judge(owner);
  if (judgement === 'alive') return false;
  if (judgement === 'dead' && (isAlone || owner.space !== undefined)) return true;
  return hasRested(path, judgement === 'dead' || isAlone ? REST_MS : REST_ELSEWHERE_MS);
}

/**
 * True if the owner of an incomplete file has ended, or is elsewhere and has not written to it for an hour.
 */
export async function isAbandoned(path: string, owner: Holder): Promise<boolean> {
  const judgement = await judge(owner);
  return judgement === 'elsewhere' ? hasRested(path, REST_ELSEWHERE_MS) : judgement === 'dead';
}

/** Compares two times of one file system: no clock of another machine is read. */
async function hasRested(path: string, restMs: number): Promise<boolean> {
  const clock = await nameAside(join(dirname(path), 'clock'));
  try {
    await mkdir(clock);
    const now = (await lstat(clock)).mtimeMs;
    await rmdir(clock);
    return (await lstat(path)).mtimeMs + restMs < now;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM')) return false;
    throw error;
  }
}

async function listNames(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}
