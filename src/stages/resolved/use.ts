import { digestOf, type Digest } from '../../base/digest.ts';
import { claimOutput } from '../../base/disk/claim-output.ts';
import type { FileInput } from '../../base/disk/file-digests.ts';
import { writeFileAtomic } from '../../base/disk/files.ts';
import { withLease, type LeaseOptions } from '../../base/disk/lease.ts';
import { SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import type { Layout, Places } from '../../iso/index.ts';
import { placesOf } from '../../media/media-index.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { describeRelease, type Release } from '../../openshift/release/release.ts';
import { type UpgradePath } from '../../openshift/release/upgrade-path.ts';
import type { IsoPlace } from '../../outputs/place.ts';
import { formatReference } from '../../registry/index.ts';
import type { BuildTools } from '../tools.ts';
import {
  type Lock,
  nameField,
  formatLock,
  readLock,
  formatLockSecrets,
  readLockSecrets,
  secretsPathOf,
  type LockSecrets,
} from './record.ts';
import { flatten, listFields, requireSame } from './fields.ts';
import { digestOfDrawn, type DrawnSource } from './drawn.ts';
import type { TagDigests, Pinned } from './tags.ts';
import type { SavedPlan } from './saved-plan.ts';

/* Owns the use of locks in a run: they are claimed, compared with what the build finds, and written. */

/** Results that a product resolved, as far as it has them. */
export type LockedContents = {
  readonly product: string;
  readonly channel?: string;
  /** All releases that it carries; the last is the one that the medium is for. */
  readonly releases: readonly Release[];
  readonly path?: UpgradePath;
  readonly seed?: NonNullable<Lock['seed']>;
  readonly base?: NonNullable<Lock['base']>;
  readonly installer?: FileInput;
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  readonly tags: TagDigests;
  readonly contents: Digest;
  readonly layout: Layout;
};

/** Makes the lock of prepared contents. */
export function makeLock(made: LockedContents, { program, drawn }: BuildTools): Lock {
  const { product, channel, releases, installer, plan, tags, contents, layout } = made;
  const release = releases.at(-1);
  const { path, seed, base } = made;
  const places = placesOf(layout);
  const { registryImage } = plan;
  return {
    kind: 'SealiftLock',
    format: 1,
    product,
    program,
    ...(release && { release: { ...describeRelease(release), ...withoutUndefined({ channel }) } }),
    ...withoutUndefined({ path, seed }),
    signatures: Object.fromEntries(releases.flatMap(describeSignature)),
    ...(base && { base: { digest: base.digest, ...withoutUndefined({ url: base.url }) } }),
    ...(installer && { installer: { digest: installer.digest } }),
    ...(registryImage && { registryImage: formatReference(registryImage.source) }),
    catalogs: Object.fromEntries(made.catalogs.map(({ name, digest }) => [name, digest])),
    images: [...new Set(plan.images.map(({ source }) => formatReference(source)))].sort(),
    tags,
    drawn: Object.fromEntries(
      Object.entries(drawn.list()).map(([stage, { value }]) => [stage, digestOfDrawn(value)]),
    ),
    contents,
    ...withoutUndefined({ places }),
  };
}

function describeSignature({
  version,
  signature,
}: Release): readonly (readonly [string, Lock['signatures'][string]])[] {
  if (signature?.status !== 'verified') return [];
  const { key, messages } = signature;
  return [[version, { key, digest: digestOf(formatCanonicalJson(messages)) }]];
}

/** The lock of a run. */
export type LockUse = {
  readonly path: string;
  /** The existing lock. */
  readonly held?: Lock;
  readonly secrets?: LockSecrets;
  /** True if only the contents of the lock are taken; otherwise the lock is written. */
  readonly isLocked: boolean;
  /** True if randomly drawn values of the lock are drawn again when its secrets are missing. */
  readonly drawsAgain?: boolean;
};

/** Converts a lock to a saved plan. */
export const toSavedPlan = ({ release, registryImage, base, tags, contents }: Lock): SavedPlan => ({
  tags,
  contents,
  isLock: true,
  ...withoutUndefined({ release, registryImage, base }),
});

/** The lock of a build that takes nothing else. */
export const heldBy = (use: LockUse | undefined): Lock | undefined =>
  use?.isLocked === true ? use.held : undefined;

/** Pins of a run: digests that are resolved already, for its tools. */
export function pinsOf(saved: SavedPlan, use: LockUse | undefined): Pinned {
  const held = heldBy(use);
  if (!held) return { tags: saved.tags };
  const findField = (digest: Digest): string | undefined =>
    [...listFields(held), ...flatten(held.tags, 'tags')].find(([, value]) =>
      value.endsWith(digest),
    )?.[0];
  return { tags: held.tags, findField };
}

/** Values that were drawn already, for the tools of a run. */
export const drawnFor = ({ held, secrets, isLocked, drawsAgain }: LockUse): DrawnSource => ({
  ...(secrets && { secrets }),
  ...(isLocked && drawsAgain !== true && held && { locked: held.drawn }),
});

type LockedRequest = IsoPlace & { readonly lock?: LockUse };

/**
 * Finds the places of bytes in the lock, or else in the ISO that is replaced; a locked build uses
 * the lock only.
 */
export async function findPlaces(
  { lock, reuses }: LockedRequest,
  { takeOver }: BuildTools,
): Promise<Places | undefined> {
  const places = await takeOver();
  return reuses?.keepsPlaces === true ? (lock?.held?.places ?? places) : undefined;
}

/**
 * Checks the inputs that are known at once, before anything is fetched.
 *
 * @param given fields of the lock, and their values in the request
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
 * Makes sure that everything that is poured is in the lock.
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

/**
 * Requires the places of the lock. A layout has these places and no other, unless the lock was
 * edited.
 */
function requirePlaces(held: Places | undefined, found: Places | undefined): void {
  const now = new Map(found && listOffsets(found));
  for (const [field, offset] of held ? listOffsets(held) : []) {
    requireSame(field, String(offset), String(now.get(field) ?? 'none'));
    now.delete(field);
  }
  for (const [field, offset] of now) requireSame(field, 'none', String(offset));
}

/**
 * Refuses, before anything is fetched, a file in the place of the lock that is not a lock.
 *
 * @throws what `claimOutput` throws
 */
export async function claimLock({ lock, inputs, workDir }: LockedRequest): Promise<void> {
  if (!lock || lock.isLocked) return;
  const { path } = lock;
  const files = [
    { path, expected: 'a lock', read: () => readLock(path) },
    {
      path: secretsPathOf(path),
      expected: 'the secrets of a lock',
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

/** Does work with the right to write the lock, if it is written at all. */
export const holdLock = <Result>(
  { lock }: Pick<LockedRequest, 'lock'>,
  lease: LeaseOptions,
  work: () => Promise<Result>,
): Promise<Result> =>
  lock && !lock.isLocked ? withLease(`${lock.path}.lock`, lease, work) : work();

function canRead(read: () => unknown): boolean {
  try {
    return read() !== undefined;
  } catch (error) {
    if (error instanceof SealiftError) return false;
    throw error;
  }
}

/**
 * Writes the lock, and drawn values first: a lock without them cannot be built elsewhere.
 * @throws what `claimLock` throws
 */
export async function writeLock(
  request: LockedRequest,
  lock: Lock,
  { drawn, sealKey }: BuildTools,
): Promise<void> {
  if (!request.lock || request.lock.isLocked) return;
  await claimLock(request);
  const { path } = request.lock;
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
  await writeFileAtomic(secretsPathOf(path), formatLockSecrets(secrets), 0o600);
  await writeFileAtomic(path, formatLock(lock), 0o644);
}
