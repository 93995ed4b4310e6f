import { randomBytes } from 'node:crypto';
import { lstat, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isErrno } from '../errors.ts';

/**
 * A name next to a path for a file that is not whole yet; no other process uses it. The name
 * identifies its owner, so that a file left by a killed process can be told from one that is being
 * written.
 */
export async function nameAside(path: string): Promise<string> {
  own ??= readStartTime(process.pid);
  return `${path}.${process.pid}-${(await own) ?? '0'}-${randomBytes(6).toString('hex')}.tmp`;
}

let own: Promise<string | undefined> | undefined;

const ASIDE = /^(.+)\.(\d+)-(\d+)-[0-9a-f]{12}\.tmp$/;

/**
 * Removes files that killed processes left next to one path. Only the process that alone may write
 * the path may call it.
 */
export async function sweepAside(path: string): Promise<void> {
  await sweep(dirname(path), { name: basename(path), restMs: 0 });
}

/**
 * Milliseconds for which recently written files stay: a process of another container or machine
 * seems dead from here.
 */
const REST_MS = 60_000;

/**
 * Removes files that killed processes left in a directory that others may be writing to, too; with
 * `alone`, only this process writes there. A file that disappears meanwhile is ignored.
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

/**
 * The time at which a process began, which together with its id identifies it for good: ids are
 * used again. Clock ticks after boot, proc(5), /proc/pid/stat field 22; undefined if the process
 * does not exist.
 */
export async function readStartTime(pid: number): Promise<string | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    // Field 2 may hold spaces and brackets.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return undefined;
    throw error;
  }
}
