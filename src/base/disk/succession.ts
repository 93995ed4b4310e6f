import { randomBytes } from 'node:crypto';
import { link, lstat, readFile, rename, rm } from 'node:fs/promises';
import { digestOf, hexOf } from '../digest.ts';
import { DiskError, isErrno } from '../errors.ts';
import { startTimer, type Timer } from '../wait.ts';
import { nameAside } from './aside.ts';
import {
  describeHolder,
  formatHolder,
  judge,
  noteOver,
  parseHolder,
  readSelf,
  type Holder,
} from './holder.ts';
import { openListed, readRegularFile, writeNewFile } from './open-file.ts';

/*
 * The steps in which a lease comes to its holder: linked to its name, renewed, inherited from a dead
 * holder, given back. Nothing here waits.
 */

/** The exclusive right to write a path. */
export type Lease = {
  /**
   * Requires that no other process has taken the lease over, as one may after a stop of this process.
   *
   * @throws DiskError `output.lost`; the system's errors
   */
  readonly requireHeld: () => Promise<void>;
  readonly release: () => Promise<void>;
};

/** NFS shows the current state of a file that is opened, but a machine may pause for a while. */
export const LEASE_MS = 90_000;
/** Signs of life within the limit. */
const SIGNS = 18;
/** Milliseconds after which the writer of an incomplete lease counts as dead. */
const PATIENCE_MS = 1000;
/** Most milliseconds between two looks at a lease. */
const LOOK_MS = 200;

export const pauseOf = (limit: number): number => Math.min(LOOK_MS, limit / SIGNS);

/** The signs of life that were seen so far. */
export type Watch = {
  readonly limit: number;
  /** `silent`: no sign of life yet, but the limit has not passed. */
  readonly look: (path: string, sign: string) => 'silent' | 'renewed' | 'over';
  /** Milliseconds since this content of the file was first seen. */
  readonly age: (path: string, sign: string) => number;
};

type Seen = { readonly head: string; readonly sign: string; readonly since: number; signs: number };

/** The line of a sign that names the holder. A journal has more, and grows while its writer lives. */
const headOf = (sign: string): string => /\n.*\n?/.exec(sign)?.[0] ?? '';

/** @param now milliseconds, of this machine alone */
export function createWatch({
  limit = LEASE_MS,
  now = () => performance.now(),
}: { readonly limit?: number; readonly now?: () => number } = {}): Watch {
  const seen = new Map<string, Seen>();
  const note = (path: string, sign: string): Seen => {
    const head = headOf(sign);
    const known = seen.get(path);
    if (known?.sign === sign) return known;
    const signs = known?.head === head ? known.signs + 1 : 0;
    const noted = { head, sign, since: now(), signs };
    seen.set(path, noted);
    return noted;
  };
  return {
    limit,
    look(path, sign) {
      const { since, signs } = note(path, sign);
      if (now() - since >= limit) return 'over';
      return signs > 0 ? 'renewed' : 'silent';
    },
    age: (path, sign) => now() - note(path, sign).since,
  };
}

/** Another process holds a lease: it lives, or has not shown yet whether it lives. */
export type Taken = { readonly kind: 'alive' | 'silent'; readonly holder: Holder };

/** The lease went from one process to another meanwhile, or is about to: try again at once. */
type PassedOn = { readonly kind: 'passed-on' };

const PASSED_ON: PassedOn = { kind: 'passed-on' };

/** Takes a lease if no other process holds it. @param watch the same for all calls for one path */
export async function tryLease(path: string, watch: Watch): Promise<Lease | Taken | PassedOn> {
  const found = await readSigned(path);
  const holder = found && (await weigh(path, found, watch));
  if (found && holder !== 'dead') return holder ?? PASSED_ON;
  const nonce = randomBytes(8).toString('hex');
  const text = formatHolder(await readSelf(), { nonce, since: Date.now() });
  const aside = await nameAside(path);
  try {
    await writeNewFile(aside, text, 0o644); // other users of a shared cache read it
    const taken = await succeed({ path, aside, watch });
    return taken === 'taken' ? hold(path, text, watch.limit) : taken;
  } finally {
    await rm(aside, { force: true });
  }
}

type Attempt = { readonly path: string; readonly aside: string; readonly watch: Watch };

/**
 * Takes a lease, or a stale one by succession. A stale lease has one heir: the file `<lease>.<digest
 * of its text>`, which only one process can create, and which only its maker removes. If the heir
 * died too, its own heir counts, and so on. The living heir puts itself in the lease's place in one
 * step, and only then removes the line of heirs it came by. No text is used twice: a slow process
 * finds another text in the lease than it began with.
 */
async function succeed(attempt: Attempt): Promise<'taken' | Taken | PassedOn> {
  const { path, aside, watch } = attempt;
  if (await linkUnlessPresent(aside, path)) return 'taken';
  const root = await readSigned(path);
  const isCurrent = async (): Promise<boolean> => (await readSigned(path))?.text === root?.text;
  const line: string[] = [];
  for (let found = root; found; found = await readSigned(line.at(-1) ?? path)) {
    const holder = await weigh(line.at(-1) ?? path, found, watch);
    if (holder !== 'dead') return holder && (await isCurrent()) ? holder : PASSED_ON;
    const heir = `${path}.${hexOf(digestOf(found.text)).slice(0, 16)}`;
    line.push(heir);
    if (await linkUnlessPresent(aside, heir)) return inherit(attempt, line, isCurrent);
  }
  return PASSED_ON;
}

/** Puts the last of a line of heirs in the place of the lease, unless that has changed meanwhile. */
async function inherit(
  { path, aside }: Attempt,
  line: readonly string[],
  isCurrent: () => Promise<boolean>,
): Promise<'taken' | PassedOn> {
  const isHeir = await isCurrent();
  if (isHeir) await rename(aside, path);
  for (const name of isHeir ? line : line.slice(-1)) await rm(name, { force: true });
  return isHeir ? 'taken' : PASSED_ON;
}

type Signed = { readonly text: string; readonly sign: string };

/** Judges the holder of a lease; undefined if its text is being written. */
async function weigh(
  path: string,
  { text, sign }: Signed,
  watch: Watch,
): Promise<'dead' | Taken | undefined> {
  if (!text.endsWith('\n')) return watch.age(path, sign) < PATIENCE_MS ? undefined : 'dead';
  const holder = parseHolder(text);
  const judgement = holder ? await judge(holder) : 'dead';
  if (!holder || judgement === 'dead') return 'dead';
  if (judgement === 'alive') return { kind: 'alive', holder };
  const looked = watch.look(path, sign);
  if (looked !== 'over') return { kind: looked === 'renewed' ? 'alive' : 'silent', holder };
  noteOver(holder);
  return 'dead';
}

/** Bytes that are read of a lease, whose text is much shorter; any user of a shared cache may write it. */
const MOST_READ = 4096;

/** The text of a lease, with everything that changes when its holder shows that it lives. */
export async function readSigned(path: string): Promise<Signed | undefined> {
  try {
    const text = (await readRegularFile(path, MOST_READ))?.toString('latin1');
    if (text === undefined) return undefined;
    const { mtimeMs, ctimeMs } = await lstat(path);
    return { text, sign: `${mtimeMs} ${ctimeMs}\n${text}` };
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESTALE')) return undefined;
    throw error;
  }
}

/** Calls `renew` as often as a sign of life is due. @returns a function that ends it */
export function keepRenewing(renew: () => Promise<boolean>, limit = LEASE_MS): () => void {
  let timer: Timer | undefined;
  let isOn = true;
  const again = (): void => {
    if (!isOn) return;
    timer = startTimer(limit / SIGNS, () => {
      // A disk that answers with an error may answer the next time.
      renew().then((goesOn) => {
        if (goesOn) again();
      }, again);
    });
    timer.unref();
  };
  again();
  return () => {
    isOn = false;
    timer?.stop();
  };
}

function hold(path: string, text: string, limit: number): Lease {
  const isHeld = async (): Promise<boolean> => (await readSigned(path))?.text === text;
  const stop = keepRenewing(async () => (await isHeld()) && touch(path), limit);
  return {
    async requireHeld() {
      const found = await readSigned(path);
      if (found?.text === text) return;
      const holder = found && parseHolder(found.text);
      const who = holder ? describeHolder(holder) : 'another process';
      throw new DiskError('output.lost', `${who} took over "${path}" while this run stood still`, {
        hint: 'run the same command again when no other process writes to this place',
      });
    },
    async release() {
      stop();
      if (await isHeld()) await rm(path, { force: true });
    },
  };
}

/** Sets the times of a file to now. @returns true */
export async function touch(path: string): Promise<boolean> {
  const file = await openListed(path);
  const time = new Date();
  await file.utimes(time, time).finally(() => file.close());
  return true;
}

/**
 * Links a file unless the name exists. A link appears with its content: no process reads an empty lease. FAT
 * and some network file systems have no links; there the content follows, and readers wait for its end.
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
    await writeNewFile(path, content, 0o644);
    return (await readRegularFile(path))?.equals(content) === true; // another process may have removed it meanwhile
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
}
