import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { DiskError } from '../errors.ts';
import { sleep } from '../wait.ts';
import { sweepAside } from './aside.ts';
import { explainOutputError } from './disk-errors.ts';
import { makeDirectory } from './files.ts';
import { describeHolder, isRunning, noteOver, type Holder } from './holder.ts';
import {
  createWatch,
  LEASE_MS,
  pauseOf,
  readSigned,
  tryLease,
  type Lease,
  type Taken,
} from './succession.ts';

/*
 * Owns exclusive rights on disk, for any number of processes, containers and machines on one folder. A lease
 * is a file that names its holder. A holder of this machine and container that has ended is known at once.
 * Any other one shows that it lives by renewing the times of its file: these are compared with those of the
 * same file only, and the time for which they stayed the same is measured here. No two clocks need to agree.
 *
 * A holder that was stopped for longer than the limit may find its lease taken over. So a lease
 * saves work; `publishFile` proves what is published.
 */

export type LeaseOptions = {
  readonly signal: AbortSignal;
  /** Called once for each holder that is waited for. */
  readonly warn: (message: string) => void;
  /** True if a holder that lives is waited for; it is refused otherwise. */
  readonly wait?: boolean;
  /** Milliseconds without a sign of life after which a holder elsewhere has ended. */
  readonly limit?: number;
};

/** Number of looks at locks that other processes pass on meanwhile. */
const ATTEMPTS = 200;
const PAUSE_MS = 10;

/**
 * Takes the right to write an output. A holder that is gone is replaced; one elsewhere that does
 * not show whether it lives is waited for, up to the limit.
 *
 * @throws DiskError `output.locked` names the other's process, host and container;
 * `output.unwritable`, `output.full`, `output.broken`; the signal's reason
 */
export async function takeLease(path: string, options: LeaseOptions): Promise<Lease> {
  const { signal, limit = LEASE_MS } = options;
  const watch = createWatch({ limit });
  const report = createReporter(path, options, limit);
  try {
    await makeDirectory(dirname(path));
    for (let passed = 0; passed < ATTEMPTS;) {
      signal.throwIfAborted();
      const found = await tryLease(path, watch);
      if ('release' in found) return await settleIn(path, found);
      if (found.kind === 'passed-on') passed += 1;
      else report(found);
      await sleep(found.kind === 'passed-on' ? PAUSE_MS : pauseOf(limit), signal);
    }
  } catch (error) {
    throw explainOutputError(error, path);
  }
  throw new DiskError('output.locked', `other builds keep taking the lock "${path}"`, {
    hint: 'run the same command again when they have ended',
  });
}

/**
 * Does work with the right to write an output, and gives the right back in any case.
 *
 * @throws errors of `takeLease`; DiskError `output.lost` if the work fails after another process took
 * over, because what that one does explains any failure
 */
export async function withLease<Result>(
  path: string,
  options: LeaseOptions,
  work: (lease: Lease) => Promise<Result>,
): Promise<Result> {
  const lease = await takeLease(path, options);
  try {
    return await work(lease);
  } catch (error) {
    if (!options.signal.aborted) await lease.requireHeld();
    throw error;
  } finally {
    await lease.release();
  }
}

/** Refuses a holder that lives, or reports once that it is waited for. */
function createReporter(path: string, { wait, warn }: LeaseOptions, limit: number) {
  const told = new Set<string>();
  return ({ kind, holder }: Taken): void => {
    const who = describeHolder(holder);
    if (kind === 'alive' && wait !== true) {
      throw new DiskError('output.locked', `${who} is already building this output`, {
        expected: `no other process that writes "${path.replace(/\.lock$/, '')}"`,
        found: who,
        hint: `wait for process ${holder.pid} to end (--wait does), or name another output`,
      });
    }
    if (told.has(`${kind} ${who}`)) return;
    told.add(`${kind} ${who}`);
    warn(
      kind === 'alive'
        ? `waiting for ${who}, which holds "${path}"`
        : `${who} holds "${path}": this run takes over if that process gives no sign of life for ${Math.ceil(limit / 1000)} s`,
    );
  };
}

async function settleIn(path: string, lease: Lease): Promise<Lease> {
  try {
    await removeLitter(path);
    return lease;
  } catch (error) {
    await lease.release();
    throw error;
  }
}

/**
 * Watches a file that a process elsewhere renews as long as it lives.
 *
 * @returns true if it stayed the same for the limit: the process counts as dead from now on
 * @throws the signal's reason
 */
export async function awaitSilence(
  path: string,
  holder: Holder,
  { signal, limit = LEASE_MS }: Pick<LeaseOptions, 'signal' | 'limit'>,
): Promise<boolean> {
  const watch = createWatch({ limit });
  for (;;) {
    const found = await readSigned(path);
    const looked = found && watch.look(path, found.sign);
    if (looked === 'over') noteOver(holder);
    if (looked !== 'silent') return looked === 'over';
    await sleep(pauseOf(limit), signal);
  }
}

/** Removes files that killed processes left next to the lease. Only the holder of the lease may call it. */
async function removeLitter(path: string): Promise<void> {
  await sweepAside(path);
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(`${basename(path)}.`)) continue;
    const match = /^(?:\.(\d+))?\.[0-9a-f]{16}$/.exec(name.slice(basename(path).length));
    const pid = match?.[1]; // a contender of commit 277b08f; the name of an heir has only a digest
    const isLitter = match && (pid === undefined || !(await isRunning(Number(pid))));
    if (isLitter) await rm(join(dirname(path), name), { force: true });
  }
}
