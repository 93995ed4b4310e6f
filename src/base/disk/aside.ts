import { randomBytes } from 'node:crypto';
import { lstat, readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isErrno } from '../errors.ts';
import { readStartTime } from './lock.ts';

/**
 * A name beside a path for what is not whole yet, which no one else uses. It tells whose it is, so
 * that what a killed process left can be told from what is being written.
 */
export async function nameAside(path: string): Promise<string> {
  own ??= readStartTime(process.pid);
  return `${path}.${process.pid}-${(await own) ?? '0'}-${randomBytes(6).toString('hex')}.tmp`;
}

let own: Promise<string | undefined> | undefined;

const ASIDE = /^(.+)\.(\d+)-(\d+)-[0-9a-f]{12}\.tmp$/;

/** Removes what killed processes left beside one path. Only who alone may write the path may call it. */
export async function sweepAside(path: string): Promise<void> {
  await sweep(dirname(path), { name: basename(path), restMs: 0 });
}

/** A process of another container or machine seems dead from here: what is written lately stays. */
const REST_MS = 60_000;

/**
 * Removes what killed processes left in a directory that others may be writing to, too; with `alone`,
 * only this process writes there. What is gone when its turn comes is nobody's loss.
 */
export async function sweepDirectory(
  directory: string,
  { alone = false }: { readonly alone?: boolean } = {},
): Promise<void> {
  await sweep(directory, { restMs: alone ? 0 : REST_MS });
}

type Sweep = { readonly name?: string; readonly restMs: number };

async function sweep(directory: string, { name, restMs }: Sweep): Promise<void> {
  for (const entry of await listNames(directory)) {
    const [, of, pid, started] = ASIDE.exec(entry) ?? [];
    if (of === undefined || (name !== undefined && name !== of)) continue;
    if ((await readStartTime(Number(pid))) === started) continue;
    const path = join(directory, entry);
    if (await hasRested(path, restMs)) await rm(path, { recursive: true, force: true });
  }
}

async function hasRested(path: string, restMs: number): Promise<boolean> {
  try {
    return restMs === 0 || (await lstat(path)).mtimeMs + restMs < Date.now();
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
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
