import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DiskError } from '../../base/errors.ts';
import { isErrno, readFileIfPresent } from '../../base/files.ts';

/**
 * Takes the right to write an output: a file that names us. A process id alone is reused by the
 * system, so the process's start time stands beside it; a lock whose process is gone is taken over.
 *
 * @returns a function that gives the right back
 * @throws DiskError `output.locked` names the other's process id; `output.unwritable`
 */
export async function lockOutput(path: string): Promise<() => Promise<void>> {
  const aside = `${path}.${process.pid}`;
  const text = `${process.pid} ${(await readStartTime(process.pid)) ?? '0'}\n`;
  await explainUnwritable(dirname(path), async () => {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(aside, text, { mode: 0o600 });
  });
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      if (await linkUnlessPresent(aside, path)) return () => rm(path, { force: true });
      await removeIfStale(path);
    }
  } finally {
    await rm(aside, { force: true });
  }
  throw new DiskError('output.locked', `other builds keep taking "${path}"`);
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

async function removeIfStale(path: string): Promise<void> {
  const text = (await readFileIfPresent(path))?.toString('utf8');
  if (text === undefined) return;
  const [pid = '', started = ''] = text.trim().split(' ');
  if (/^\d+$/.test(pid) && (await readStartTime(Number(pid))) === started) {
    throw new DiskError('output.locked', `process ${pid} is already building this output`, {
      hint: `wait for process ${pid} to end, or name another --output`,
    });
  }
  await removeExactly(path, text);
}

/** Two builds may find the same stale lock: who comes second must not remove the first's new one. */
async function removeExactly(path: string, text: string): Promise<void> {
  const aside = `${path}.${process.pid}.stale`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  if ((await readFile(aside, 'utf8')) !== text) await linkUnlessPresent(aside, path);
  await rm(aside, { force: true });
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
