import { randomBytes } from 'node:crypto';
import { link, readdir, readFile, rename, rm, readlink, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { digestOf, hexOf, type Digest } from '../digest.ts';
import { DiskError, isErrno } from '../errors.ts';
import { startTimer, type Timer } from '../wait.ts';
import { readStartTime } from './aside.ts';
import { explainOutputError } from './disk-errors.ts';
import { makeDirectory, sizeOf } from './files.ts';
import { readRegularFile, writeNewFile, openListed, openOwnFile } from './open-file.ts';

/*
 * Owns exclusive rights on disk: the lock of an output, claims in a shared folder, and partial
 * files of blobs.
 */

const ATTEMPTS = 200;
const PAUSE_MS = 10;
/** Number of looks at an incomplete lock before its writer counts as dead. */
const PATIENCE = 100;

/**
 * Takes the right to write an output: a file that names us. A process id alone is reused by the
 * system, so the process's start time is next to it; a lock whose process is gone is taken over.
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

/**
 * Does work with the right to write an output, and gives the right back in any case. @throws errors
 * of `lockOutput`
 */
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
  throw new DiskError('output.locked', `other builds keep taking the lock "${path}"`);
}

type Attempt = {
  readonly path: string;
  readonly aside: string;
  /** True if the writer of an incomplete lock may still be at work. */
  readonly isPatient: boolean;
};

/**
 * Takes a lock, or a stale one by succession. A stale lock has one heir: the file `<lock>.<digest
 * of its text>`, which only one process can create, and which only its maker removes. If the heir
 * died too, its own heir counts, and so on. The living heir puts itself in the lock's place in one
 * step, and only then removes the line of heirs it came by. No text is used twice: a slow process
 * finds another text in the lock than it began with.
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

/**
 * Removes files that killed processes left next to the lock. Only the holder of the lock may call
 * it.
 */
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
 * Links a file unless the name exists. A link appears with its content: no process reads an empty
 * lock. FAT and some network file systems have no links; there the content follows, and readers
 * wait for its end.
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
    return (await readRegularFile(path))?.equals(content) === true; // another process may have removed it meanwhile
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

/** The process that the text of a lock names, unless it has ended. */
async function findHolder(text: string): Promise<number | undefined> {
  const [pid = '', started = ''] = text.trim().split(' ');
  const isAlive = /^\d+$/.test(pid) && (await readStartTime(Number(pid))) === started;
  return isAlive ? Number(pid) : undefined;
}

/** The right to do a piece of work that no other process does meanwhile. */
export type Claim = { readonly release: () => Promise<void> };

export type ClaimsOptions = {
  /** An existing folder. */
  readonly folder: string;
  /**
   * Milliseconds without a sign of life after which a claim of another machine or container ends.
   */
  readonly lease?: number;
  /** Milliseconds, of this machine alone. */
  readonly now?: () => number;
};

/** NFS shows the current state of a file that is opened, but a machine may pause for a while. */
const LEASE_MS = 90_000;

type Seen = { readonly sign: string; readonly since: number };

/**
 * Claims as files, for any number of processes, containers and machines on one folder. A claim
 * names its owner's process and the space in which that runs: an owner of this machine that ended
 * is known at once. Any other owner shows that it lives by the times of the file, which it renews.
 * Times are compared with those of the same file only, and the time for which they stayed the same
 * is measured here: no two clocks need to agree.
 *
 * Two processes may have one claim, if one was paused for longer than the lease. Their work must
 * tolerate it.
 *
 * @returns a function that takes a claim, or returns undefined while another process has it
 */
export function createClaims({
  folder,
  lease = LEASE_MS,
  now = () => performance.now(),
}: ClaimsOptions) {
  const seen = new Map<string, Seen>();
  const identity = identify();
  return async (name: string): Promise<Claim | undefined> => {
    const path = join(folder, name);
    const text = `${await identity} ${randomBytes(8).toString('hex')}\n`;
    if (await createClaimFile(path, text)) return hold(path, text, lease);
    const found = await readClaim(path);
    if (!found) return undefined; // just released: the caller checks whether the work is done
    const known = seen.get(name);
    const since = known?.sign === found.sign ? known.since : now();
    seen.set(name, { sign: found.sign, since });
    const isOver = now() - since >= lease || (await hasEnded(found.text, await identity));
    if (isOver) await removeStale(path, found.text);
    return undefined;
  };
}

/** Process, its start, and the namespace of its process number. */
async function identify(): Promise<string> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => '');
  const space = await readlink('/proc/self/ns/pid').catch(() => randomBytes(8).toString('hex'));
  const start = (await readStartTime(process.pid)) ?? '0';
  return `${process.pid} ${start} ${hexOf(digestOf(boot + space)).slice(0, 16)}`;
}

async function hasEnded(text: string, own: string): Promise<boolean> {
  const [pid = '', start = '', space = ''] = text.split(' ');
  if (space !== own.split(' ')[2] || !text.endsWith('\n')) return false;
  return (await readStartTime(Number(pid))) !== start;
}

function hold(path: string, text: string, lease: number): Claim {
  let timer: Timer | undefined;
  let isHeld = true;
  const renew = (): void => {
    if (!isHeld) return;
    timer = startTimer(lease / 6, () => {
      touch(path).then(renew, () => undefined); // taken over: the work goes on, and is done twice
    });
    timer.unref();
  };
  renew();
  return {
    async release() {
      isHeld = false;
      timer?.stop();
      if ((await readClaim(path))?.text === text) await rm(path, { force: true });
    },
  };
}

/** Sets the times of a file to now. */
export async function touch(path: string): Promise<void> {
  const file = await openListed(path);
  const time = new Date();
  await file.utimes(time, time).finally(() => file.close());
}

/** Bytes; a longer file is not one of our claims. */
const CLAIM_SIZE = 256;

/** The text of a claim, with everything that changes when its owner shows that it lives. */
async function readClaim(
  path: string,
): Promise<{ readonly text: string; readonly sign: string } | undefined> {
  try {
    const file = await openListed(path);
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(CLAIM_SIZE), 0, CLAIM_SIZE, 0);
      const text = buffer.toString('latin1', 0, bytesRead);
      const { mtimeMs, ctimeMs } = await file.stat();
      return { text, sign: `${text} ${mtimeMs} ${ctimeMs}` };
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESTALE')) return undefined;
    throw error;
  }
}

/**
 * Removes a stale claim. If two processes remove the same one, the slower may catch a new one: it
 * puts that back.
 */
async function removeStale(path: string, text: string): Promise<void> {
  const aside = `${path}.${randomBytes(8).toString('hex')}`;
  try {
    await rename(path, aside);
    if ((await readClaim(aside))?.text !== text) await link(aside, path);
  } catch (error) {
    if (!isErrno(error, 'ENOENT', 'EEXIST', 'EPERM', 'ENOTSUP')) throw error;
  } finally {
    await rm(aside, { force: true });
  }
}

async function createClaimFile(path: string, text: string): Promise<boolean> {
  try {
    await writeNewFile(path, text, 0o644);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
}

/** A blob that is not whole yet, and that no other process writes to. */
export type Partial = { readonly path: string; readonly file: FileHandle; readonly size: number };

/** This process, even if another run had the same id (as in containers, where ids repeat). */
const RUN = randomBytes(6).toString('hex');

/** Readers of one process never ask for one blob together, yet a name is never used twice. */
let count = 0;

/**
 * Opens a partial file: one that an ended process left, else a new one.
 *
 * `<directory>/partial/<hex>.<pid>.<run>.<n>`: a process takes over a dead one's file by renaming
 * it, which only one can. So two builds never write one file.
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

/** Lists the smallest first: each replaces the one before it, so that only the largest stays. */
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

/** Releases the file after a failure: the next process, or this one, may continue it at once. */
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
