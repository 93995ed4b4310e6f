import { rm } from 'node:fs/promises';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { writeFileAtomic } from '../../base/disk/files.ts';
import type { Digest } from '../../base/digest.ts';
import { ConfigError, SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Places } from '../../iso/extent.ts';
import type { IsoPlace } from '../../outputs/file.ts';
import type { Secret } from '../../base/secret.ts';
import type { Pinned } from '../../registry/tag-ledger.ts';
import type { BuildTools } from '../build-tools.ts';
import type { SavedPlan } from '../saved-plan.ts';
import type { DrawnSource } from './drawn-ledger.ts';
import { formatLock, readLock, type Lock } from './lock-file.ts';
import {
  formatLockSecrets,
  readLockSecrets,
  secretsPathOf,
  type LockSecrets,
} from './lock-secrets.ts';
import { flatten, listFields, requireSame } from './make-lock.ts';
import { nameField } from './mismatch.ts';
import { sealSecrets } from './sealed-secrets.ts';

/** The lock of a run. */
export type LockUse = {
  readonly path: string;
  /** What is there. */
  readonly held?: Lock;
  readonly secrets?: LockSecrets;
  /** Whether nothing else is taken than what it has; else it is written. */
  readonly isLocked: boolean;
  /** Whether what was drawn at random for the lock is drawn again, where its secrets are not there. */
  readonly drawsAgain?: boolean;
  /** What the secrets in the lock are encrypted with; absent: they are in a file beside it. */
  readonly key?: Secret;
};

/** What a lock says as a saved plan does. */
export const toSavedPlan = ({ release, registryImage, base, tags, contents }: Lock): SavedPlan => ({
  tags,
  contents,
  isLock: true,
  ...withoutUndefined({ release, registryImage, base }),
});

/** The lock of a build that takes nothing else. */
export const heldBy = (use: LockUse | undefined): Lock | undefined =>
  use?.isLocked === true ? use.held : undefined;

/** What is resolved already, for the tools of a run. */
export function pinsOf(saved: SavedPlan, use: LockUse | undefined): Pinned {
  const held = heldBy(use);
  if (!held) return { tags: saved.tags };
  const findField = (digest: Digest): string | undefined =>
    [...listFields(held), ...flatten(held.tags, 'tags')].find(([, value]) =>
      value.endsWith(digest),
    )?.[0];
  return { tags: held.tags, findField };
}

/** What was drawn already, for the tools of a run. */
export const drawnFor = ({ held, secrets, isLocked, drawsAgain }: LockUse): DrawnSource => ({
  ...(secrets && { secrets }),
  ...(isLocked && drawsAgain !== true && held && { locked: held.drawn }),
});

type LockedRequest = IsoPlace & { readonly lock?: LockUse };

/** Where the lock has its bytes, or else the ISO that is replaced; a locked build asks the lock alone. */
export async function findPlaces(
  { lock, reuses }: LockedRequest,
  { takeOver }: BuildTools,
): Promise<Places | undefined> {
  const places = await takeOver();
  return reuses?.keepsPlaces === true ? (lock?.held?.places ?? places) : undefined;
}

/**
 * What is known at once, before anything is fetched.
 *
 * @param given fields of the lock, and what the request says of them
 * @throws ConfigError `lock.mismatch`
 */
export function requireLockedInputs(
  { lock }: LockedRequest,
  { program }: BuildTools,
  given: Readonly<Record<string, string | undefined>>,
): void {
  const locked = heldBy(lock);
  if (!locked) return;
  requireSame('program', locked.program, program);
  const held = new Map(listFields(locked));
  for (const [field, found = 'none'] of Object.entries(given)) {
    requireSame(field, held.get(field) ?? 'none', found);
  }
}

/**
 * Nothing is poured that the lock does not have.
 *
 * @throws ConfigError `lock.mismatch`
 */
export function requireLocked(lock: LockUse | undefined, found: Lock): void {
  const held = heldBy(lock);
  if (!held) return;
  const fieldsOf = ({ drawn, ...others }: Lock): ReturnType<typeof listFields> =>
    listFields({ ...others, drawn: lock?.drawsAgain === true ? {} : drawn });
  const now = new Map(fieldsOf(found));
  for (const [field, expected] of fieldsOf(held)) {
    requireSame(field, expected, now.get(field) ?? 'none');
    now.delete(field);
  }
  for (const [field, value] of now) requireSame(field, 'none', value);
  if (lock?.drawsAgain !== true) requirePlaces(held.places, found.places);
}

const listOffsets = ({ areas, offsets }: Places): readonly (readonly [string, number])[] => [
  ...Object.entries(areas).map(([name, at]) => [`places.areas.${name}`, at] as const),
  ...offsets.map(([digest, at]) => [nameField('places.offsets', digest), at] as const),
];

/** A layout has the places of the lock and no other, unless somebody edited the lock. */
function requirePlaces(held: Places | undefined, found: Places | undefined): void {
  const now = new Map(found && listOffsets(found));
  for (const [field, offset] of held ? listOffsets(held) : []) {
    requireSame(field, String(offset), String(now.get(field) ?? 'none'));
    now.delete(field);
  }
  for (const [field, offset] of now) requireSame(field, 'none', String(offset));
}

/**
 * Refuses, before anything is fetched, what is in the place of the lock and is not one, and to put plain text in
 * the place of what is encrypted.
 *
 * @throws ConfigError `lock.key-missing`; what `claimOutput` throws
 */
export async function claimLock({ lock, inputs, workDir }: LockedRequest): Promise<void> {
  if (!lock || lock.isLocked) return;
  const { path, held, key } = lock;
  if (held?.secrets !== undefined && !key) throw noKey(path);
  const files = [
    { path, expected: 'a lock', read: () => readLock(path) },
    {
      path: secretsPathOf(path),
      expected: 'the secrets of one',
      read: () => readLockSecrets(path),
    },
  ];
  for (const { path, expected, read } of files) {
    await claimOutput(
      { path, inputs, workDirs: [workDir] },
      { force: false, expected, isReplaceable: () => Promise.resolve(canRead(read)) },
    );
  }
}

const noKey = (path: string): ConfigError =>
  new ConfigError(
    'lock.key-missing',
    `"${path}" has encrypted secrets, and would be written without`,
    {
      expected: '--lock-key',
      found: 'no key',
      hint: 'give the key with --lock-key, or name another lock with --lock-file',
    },
  );

function canRead(read: () => unknown): boolean {
  try {
    return read() !== undefined;
  } catch (error) {
    if (error instanceof SealiftError) return false;
    throw error;
  }
}

/** What was drawn goes first: a lock without it cannot be built elsewhere. @throws what `claimLock` throws */
export async function writeLock(
  request: LockedRequest,
  lock: Lock,
  { drawn, sealKey }: BuildTools,
): Promise<void> {
  if (!request.lock || request.lock.isLocked) return;
  await claimLock(request);
  const { path, key, held } = request.lock;
  const values = drawn.list();
  if (Object.keys(values).length === 0) {
    await writeFileAtomic(path, formatLock(lock), 0o644);
    return;
  }
  const secrets: LockSecrets = {
    kind: 'SealiftLockSecrets',
    format: 1,
    key: Buffer.from(sealKey).toString('base64'),
    drawn: values,
  };
  if (key) {
    const sealed = sealSecrets(secrets, key, held?.secrets);
    await writeFileAtomic(path, formatLock({ ...lock, secrets: sealed }), 0o644);
    await rm(secretsPathOf(path), { force: true }); // they were there in plain text before
    return;
  }
  await writeFileAtomic(secretsPathOf(path), formatLockSecrets(secrets), 0o600);
  await writeFileAtomic(path, formatLock(lock), 0o644);
}
