import { dirname, join, resolve } from 'node:path';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { readInputFile } from '../../base/disk/files.ts';
import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { requireDecoded, decodeJson } from '../../shape/decode.ts';
import { record, oneOf, optional, TEXT, mapping, DIGEST, type TypeOf } from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';
import { LOCK_NAME, readLock, readLockSecrets, type Lock, type LockSecrets } from './record.ts';

/* Owns the records that a run is held to, a lock and a saved plan, and reads them. */

const KEPT = { others: 'kept' } as const;

const describePlan = (product: string) =>
  record(
    {
      product: oneOf(product),
      release: optional(record({ version: TEXT, reference: TEXT }, KEPT)),
      /** The registry server, by digest. */
      registryImage: optional(TEXT),
      /** Absent on media that do not boot. */
      base: optional(record({ digest: TEXT }, KEPT)),
      tags: mapping(DIGEST),
      /** Digest of every image with its place, every catalog, and the base ISO. */
      contents: TEXT,
    },
    KEPT,
  );

/** The part of a plan, or of a build's report, that another build takes exactly. */
export type SavedPlan = Omit<TypeOf<ReturnType<typeof describePlan>>, 'product'> & {
  /** True if it is from a lock. */
  readonly isLock?: boolean;
};

/** The lock of a run. */
export type LockUse = {
  readonly path: string;
  readonly held?: Lock;
  readonly secrets?: LockSecrets;
  /** True if only the contents of the lock are taken; otherwise the lock is written. */
  readonly isLocked: boolean;
  /** True if randomly drawn values of the lock are drawn again when its secrets are missing. */
  readonly drawsAgain?: boolean;
};

export type Held = {
  /** Plan whose images are taken, even if tags have moved; it may be a view of the lock. */
  readonly saved?: SavedPlan;
  readonly lock?: LockUse;
  /** The lock of a build that takes nothing else. */
  readonly locked?: Lock;
};

/** Options that name a record, or ask for one. */
export type HeldOptions = {
  /** File with a saved plan, or the report of an earlier build. */
  readonly plan?: string;
  readonly lock?: boolean;
  readonly locked?: boolean;
  readonly lockFile?: string;
  /** An ISO is compared: without `locked` no lock is read, and a lock without its secrets is enough. */
  readonly compares?: boolean;
};

/**
 * Reads the saved plan and the lock of a run. The lock is next to the configuration unless an option names it.
 *
 * @throws ConfigError `lock.missing`, `lock.other-product`; errors of `readSavedPlan`, `readLock` and
 * `readLockSecrets`
 */
export function readHeld(
  options: HeldOptions,
  run: { readonly product: string; readonly configuration: string; readonly cwd: string },
): Held {
  const { plan, compares, locked } = options;
  const saved = plan === undefined ? undefined : readSavedPlan(resolve(run.cwd, plan), run.product);
  const isUnlocked = compares === true && locked !== true;
  return { ...withoutUndefined({ saved }), ...(isUnlocked ? {} : readLockUse(options, run)) };
}

function readLockUse(options: HeldOptions, run: Parameters<typeof readHeld>[1]): Held {
  const { lock: isWritten = false, lockFile, compares } = options;
  const isLocked = options.locked === true;
  const path = resolve(run.cwd, lockFile ?? join(dirname(run.configuration), LOCK_NAME));
  const held = readLock(path);
  if (!held && isLocked) throw noLock(path);
  if (!held && !isWritten) return {};
  const secrets = readLockSecrets(path);
  const lock = { path, isLocked, ...withoutUndefined({ held, secrets }) };
  const isAsked = [isWritten, isLocked, lockFile !== undefined].includes(true);
  if (!isFor(run.product, lock, isAsked)) return {};
  return useLock({ ...lock, drawsAgain: compares === true && !secrets });
}

/** False for the lock of another product that no option asks for: it is ignored. */
function isFor(expected: string, { path, held }: LockUse, isAsked: boolean): boolean {
  const found = held?.product ?? expected;
  if (found === expected) return true;
  if (!isAsked) return false;
  throw new ConfigError('lock.other-product', `"${path}" is the lock of another product`, {
    expected,
    found,
    hint: 'name another file with --lock-file',
  });
}

const useLock = (lock: LockUse): Held => ({
  lock,
  ...(lock.isLocked && lock.held && { locked: lock.held, saved: toSavedPlan(lock.held) }),
});

const noLock = (path: string): ConfigError =>
  new ConfigError('lock.missing', `lock "${path}" does not exist`, {
    hint: 'write it with "sealift lock", or name another file with --lock-file',
  });

const toSavedPlan = ({ release, registryImage, base, tags, contents }: Lock): SavedPlan => ({
  tags,
  contents,
  isLock: true,
  ...withoutUndefined({ release, registryImage, base }),
});

/**
 * Reads a saved plan.
 * @param path of the output of `sealift plan -o json`, or of the report next to an ISO
 */
export function readSavedPlan(path: string, product: string): SavedPlan {
  return requireDecoded(decodeJson(describePlan(product), readPlanText(path)), ([first]) => {
    const message = `"${path}" is not a plan of the product ${product}: ${describeFinding(first)}`;
    const hint =
      'name the file that "sealift plan -o json" was saved to, or the report next to an ISO';
    return new ConfigError('plan.malformed', message, { hint });
  });
}

function readPlanText(path: string): Uint8Array {
  try {
    return readInputFile(path, { domain: 'plan' });
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('plan.unreadable', `plan "${path}" cannot be read`, {
      cause,
      hint: 'name the file that "sealift plan -o json" was saved to',
    });
  }
}
