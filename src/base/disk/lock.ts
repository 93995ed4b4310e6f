import { randomBytes } from 'node:crypto';
import { link, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { digestOf, hexOf } from '../digest.ts';
import { DiskError, isErrno } from '../errors.ts';
import { readStartTime } from './aside.ts';
import { makeDirectory } from './files.ts';
import { readRegularFile, writeNewFile } from './open-file.ts';
import { explainOutputError } from './write-errors.ts';

const ATTEMPTS = 200;
const PAUSE_MS = 10;
/** How often a lock without an end is looked at before whoever wrote it counts as dead. */
const PATIENCE = 100;

/**
 * Takes the right to write an output: a file that names us. A process id alone is reused by the
 * system, so the process's start time stands beside it; a lock whose process is gone is taken over.
 *
 * @returns a function that gives the right back
 * @throws DiskError `output.locked` names the other's process id; `output.unwritable`,
 * `output.full`, `output.broken`
 */
export async function lockOutput(path: string): Promise<() => Promise<void>> {
  const nonce = randomBytes(8).toString('hex');
  const aside = `${path}.${process.pid}.${nonce}`;
  const text = `${process.pid} ${(await readStartTime(process.pid)) ?? '0'} ${nonce}\n`;
  try {
    await makeDirectory(dirname(path));
    await writeNewFile(aside, text);
    const unlock = await claim(path, aside);
    await removeLitter(path);
    return unlock;
  } catch (error) {
    throw explainOutputError(error, path);
  } finally {
    await rm(aside, { force: true });
  }
}

/** Does something with the right to write an output, and gives it back in any case. @throws what `lockOutput` throws */
export async function withLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  const unlock = await lockOutput(path);
  try {
    return await work();
  } finally {
    await unlock();
  }
}

async function claim(path: string, aside: string): Promise<() => Promise<void>> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (await tryToTake({ path, aside, isPatient: attempt < PATIENCE })) {
      return () => rm(path, { force: true });
    }
    await sleep(PAUSE_MS);
  }
  throw new DiskError('output.locked', `other builds keep taking "${path}"`);
}

type Attempt = {
  readonly path: string;
  readonly aside: string;
  /** Whether a lock without an end may still be in writing. */
  readonly isPatient: boolean;
};

/**
 * A stale lock has one heir: the file `<lock>.<digest of its text>`, which only one can create, and
 * which nobody removes but its maker. Where the heir died too, its own heir counts, and so on. The
 * living heir puts itself in the lock's place in one step, and only then removes the line it came by.
 * No text is used twice: who was slow finds another text in the lock than it began with.
 */
async function tryToTake({ path, aside, isPatient }: Attempt): Promise<boolean> {
  if (await linkUnlessPresent(aside, path)) return true;
  const root = await readText(path);
  const line: string[] = [];
  for (let text = root; text !== undefined; text = await readText(line.at(-1) ?? path)) {
    if (isPatient && !text.endsWith('\n')) return false;
    const holder = await findHolder(text);
    const isCurrent = async (): Promise<boolean> => (await readText(path)) === root;
    if (holder !== undefined) {
      if (await isCurrent()) throw lockedBy(holder);
      return false;
    }
    const heir = `${path}.${hexOf(digestOf(text)).slice(0, 16)}`;
    line.push(heir);
    if (!(await linkUnlessPresent(aside, heir))) continue;
    const isHeir = await isCurrent();
    await settle({ path, aside, settled: isHeir ? line : [heir] }, isHeir);
    return isHeir;
  }
  return false;
}

type Line = { readonly path: string; readonly aside: string; readonly settled: readonly string[] };

async function settle({ path, aside, settled }: Line, isHeir: boolean): Promise<void> {
  if (isHeir) await rename(aside, path);
  for (const name of settled) await rm(name, { force: true });
}

/** What killed processes left beside the lock. Only who has the lock may call it. */
async function removeLitter(path: string): Promise<void> {
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(`${basename(path)}.`)) continue;
    const rest = name.slice(basename(path).length);
    const match = /^(?:\.\d+)?\.[0-9a-f]{16}$/.exec(rest);
    const pid = /^\.(\d+)\./.exec(rest)?.[1];
    const isLitter =
      match && (pid === undefined || (await readStartTime(Number(pid))) === undefined);
    if (isLitter) await rm(join(dirname(path), name), { force: true });
  }
}

/**
 * A link appears with its content: nobody reads a lock that names no one yet. FAT and some network
 * file systems have no links; there the content follows, and readers wait for its end.
 */
async function linkUnlessPresent(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    if (!isErrno(error, 'EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS', 'EMLINK')) throw error;
    return createUnlessPresent(to, await readFile(from));
  }
}

async function createUnlessPresent(path: string, content: Buffer): Promise<boolean> {
  try {
    await writeNewFile(path, content);
    return (await readRegularFile(path))?.equals(content) === true; // it took too long for the others
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
}

const lockedBy = (holder: number): DiskError =>
  new DiskError('output.locked', `process ${holder} is already building this output`, {
    hint: `wait for process ${holder} to end, or name another output`,
  });

const readText = async (path: string): Promise<string | undefined> =>
  (await readRegularFile(path))?.toString('utf8');

/** The process that a lock's text names, unless it ended. */
async function findHolder(text: string): Promise<number | undefined> {
  const [pid = '', started = ''] = text.trim().split(' ');
  const isAlive = /^\d+$/.test(pid) && (await readStartTime(Number(pid))) === started;
  return isAlive ? Number(pid) : undefined;
}
