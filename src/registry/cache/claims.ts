import { randomBytes } from 'node:crypto';
import { link, readlink, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readStartTime } from '../../base/disk/aside.ts';
import { digestOf, hexOf } from '../../base/digest.ts';
import { isErrno } from '../../base/errors.ts';
import { openListed, writeNewFile } from '../../base/disk/open-file.ts';
import { startTimer, type Timer } from '../../base/wait.ts';

/** The right to do a piece of work that no other process does meanwhile. */
export type Claim = { readonly release: () => Promise<void> };

export type ClaimsOptions = {
  /** Exists. */
  readonly folder: string;
  /** Milliseconds without a sign of life after which a claim of another machine or container ends. */
  readonly lease?: number;
  /** Milliseconds, of this machine alone. */
  readonly now?: () => number;
};

/** NFS shows a file that is opened as it is now, but a machine may stand still for a while. */
const LEASE_MS = 90_000;

type Seen = { readonly sign: string; readonly since: number };

/**
 * Claims as files, for any number of processes, containers and machines on one folder. A claim has its owner's process
 * and where that runs: an owner of this machine that ended is known at once. Any other shows that it lives by the
 * times of the file, which it renews. Times are compared with those of the same file only, and how long they stayed is
 * measured here: no two clocks need agree.
 *
 * Two processes may have one claim, where one stood still for longer than the lease. What they do must bear it.
 *
 * @returns takes a claim; undefined while another has it
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
    if (await createUnlessPresent(path, text)) return hold(path, text, lease);
    const found = await readClaim(path);
    if (!found) return undefined; // just released: the caller looks whether the work is done
    const known = seen.get(name);
    const since = known?.sign === found.sign ? known.since : now();
    seen.set(name, { sign: found.sign, since });
    const isOver = now() - since >= lease || (await hasEnded(found.text, await identity));
    if (isOver) await removeStale(path, found.text);
    return undefined;
  };
}

/** Process, its start, and the space that process numbers are of. */
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

/** Gives a file the time of now. */
export async function touch(path: string): Promise<void> {
  const file = await openListed(path);
  const time = new Date();
  await file.utimes(time, time).finally(() => file.close());
}

/** Bytes; what is longer is of somebody else. */
const CLAIM_SIZE = 256;

/** What a claim says, with all that changes when its owner shows that it lives. */
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

/** Of two that remove one stale claim, the slower may catch a new one: it puts that back. */
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

async function createUnlessPresent(path: string, text: string): Promise<boolean> {
  try {
    await writeNewFile(path, text, 0o644);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
}
