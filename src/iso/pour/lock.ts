import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DiskError } from '../../base/errors.ts';
import { isErrno, readFileIfPresent } from '../../base/files.ts';

const ATTEMPTS = 200;
const PAUSE_MS = 10;

/**
 * Takes the right to write an output: a file that names us. A process id alone is reused by the
 * system, so the process's start time stands beside it; a lock whose process is gone is taken over.
 *
 * @returns a function that gives the right back
 * @throws DiskError `output.locked` names the other's process id; `output.unwritable`
 */
export async function lockOutput(path: string): Promise<() => Promise<void>> {
  const aside = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const text = `${process.pid} ${(await readStartTime(process.pid)) ?? '0'}\n`;
  await explainUnwritable(dirname(path), async () => {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(aside, text, { mode: 0o600 });
  });
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (await linkUnlessPresent(aside, path)) return () => rm(path, { force: true });
      await refuseIfHeld(path);
      if (await takeOver(path, aside)) return () => rm(path, { force: true });
      await sleep(PAUSE_MS);
    }
  } finally {
    await rm(aside, { force: true });
  }
  throw new DiskError('output.locked', `other builds keep taking "${path}"`);
}

/**
 * Puts our lock in the place of a stale one. Many may find the same stale lock: only who holds the
 * lock of taking over replaces it, in one step, after looking again.
 */
async function takeOver(path: string, aside: string): Promise<boolean> {
  const guard = `${path}.takeover`;
  if (!(await linkUnlessPresent(aside, guard))) {
    if ((await readHolder(guard)) === 'gone') await rm(guard, { force: true });
    return false;
  }
  try {
    if ((await readHolder(path)) !== 'gone') return false;
    await rename(guard, path);
    return true;
  } finally {
    await rm(guard, { force: true });
  }
}

async function explainUnwritable(directory: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isErrno(error, 'EACCES', 'EROFS', 'EPERM', 'ENOTDIR', 'EEXIST')) throw error;
    throw new DiskError('output.unwritable', `nothing can be written in "${directory}"`, {
      cause: error,
      hint: 'name a writable place with --output',
    });
  }
}

/** A link appears with its content: nobody reads a lock that names no one yet. */
async function linkUnlessPresent(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
}

async function refuseIfHeld(path: string): Promise<void> {
  const holder = await readHolder(path);
  if (typeof holder !== 'number') return;
  throw new DiskError('output.locked', `process ${holder} is already building this output`, {
    hint: `wait for process ${holder} to end, or name another --output`,
  });
}

/** The process that holds a lock, `gone` when it ended, undefined when there is no lock. */
async function readHolder(path: string): Promise<number | 'gone' | undefined> {
  const text = (await readFileIfPresent(path))?.toString('utf8');
  if (text === undefined) return undefined;
  const [pid = '', started = ''] = text.trim().split(' ');
  const isAlive = /^\d+$/.test(pid) && (await readStartTime(Number(pid))) === started;
  return isAlive ? Number(pid) : 'gone';
}

/** proc(5), /proc/pid/stat field 22: clock ticks after boot. Field 2 may hold spaces and brackets. */
async function readStartTime(pid: number): Promise<string | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return undefined;
    throw error;
  }
}
