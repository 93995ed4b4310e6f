import { rm } from 'node:fs/promises';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { writeFileAtomic } from '../../base/disk/files.ts';
import { digestOf, type Digest } from '../../base/digest.ts';
import { ConfigError, SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/members.ts';
import type { FileInput } from '../../base/disk/file-input.ts';
import { formatCanonicalJson, type Json } from '../../base/text/canonical-json.ts';
import type { ApplianceConfig } from '../../config/appliance-config.ts';
import type { Layout } from '../../iso/extent.ts';
import type { Places } from '../../iso/places/places.ts';
import { placesOf } from '../../media/index/media-index.ts';
import type { IsoPlace } from '../../media/output/claim-iso.ts';
import type { Secret } from '../../config/secret/secret.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected-catalog.ts';
import type { MirrorPlan } from '../../openshift/mirror/mirror-plan.ts';
import { describeRelease, type Release } from '../../openshift/release/release-payload.ts';
import { formatReference } from '../../registry/reference.ts';
import type { Pinned, TagDigests } from '../../registry/tag-ledger.ts';
import type { BuildTools } from '../build-tools.ts';
import type { SavedPlan } from '../saved-plan.ts';
import { digestOfDrawn, type DrawnSource } from './drawn-ledger.ts';
import { formatLock, readLock, type Lock } from './lock-file.ts';
import {
  formatLockSecrets,
  readLockSecrets,
  secretsPathOf,
  type LockSecrets,
} from './lock-secrets.ts';
import { mismatch, nameField } from './mismatch.ts';
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
  release,
  base,
  tags,
  contents,
  isLock: true,
  ...withoutUndefined({ registryImage }),
});

/** What is resolved already, for the tools of a run. */
export function pinsOf(saved: SavedPlan, use: LockUse | undefined): Pinned {
  const { held } = use?.isLocked === true ? use : {};
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
 * @throws ConfigError `lock.mismatch`
 */
export function requireLockedConfig(
  { lock, config }: { readonly lock?: LockUse; readonly config: ApplianceConfig },
  { program }: BuildTools,
): void {
  if (lock?.isLocked !== true || !lock.held) return;
  const { held } = lock;
  requireSame('program', held.program, program);
  requireSame(nameField('release', 'channel'), held.release.channel, config.ocpRelease.channel);
}

function requireSame(field: string, expected: string, found: string): void {
  if (expected !== found) throw mismatch(field, { expected, found });
}

export type LockedContents = {
  readonly product: string;
  readonly channel: string;
  readonly release: Release;
  readonly base: { readonly digest: Digest };
  readonly installer?: FileInput;
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  readonly tags: TagDigests;
  readonly contents: Digest;
  readonly layout: Layout;
};

/** The lock of what was prepared. */
export function makeLock(made: LockedContents, { program, drawn }: BuildTools): Lock {
  const { product, channel, release, installer, plan, tags, contents, layout } = made;
  const places = placesOf(layout);
  if (!places) throw new Error('a medium with an index has places');
  const { registryImage } = plan;
  return {
    kind: 'SealiftLock',
    format: 1,
    product,
    program,
    release: { ...describeRelease(release), channel },
    signatures: describeSignature(release),
    base: { digest: made.base.digest },
    ...(installer && { installer: { digest: installer.digest } }),
    ...(registryImage && { registryImage: formatReference(registryImage.source) }),
    catalogs: Object.fromEntries(made.catalogs.map(({ name, digest }) => [name, digest])),
    images: [...new Set(plan.images.map(({ source }) => formatReference(source)))].sort(),
    tags,
    drawn: Object.fromEntries(
      Object.entries(drawn.list()).map(([stage, { value }]) => [stage, digestOfDrawn(value)]),
    ),
    contents,
    places,
  };
}

function describeSignature({ version, signature }: Release): Lock['signatures'] {
  if (signature?.status !== 'verified') return {};
  const { key, messages } = signature;
  return { [version]: { key, digest: digestOf(formatCanonicalJson(messages)) } };
}

/**
 * Nothing is poured that the lock does not have.
 *
 * @throws ConfigError `lock.mismatch`
 */
export function requireLocked(lock: LockUse | undefined, found: Lock): void {
  if (lock?.isLocked !== true || !lock.held) return;
  const fieldsOf = ({ drawn, ...others }: Lock): ReturnType<typeof listFields> =>
    listFields({ ...others, drawn: lock.drawsAgain === true ? {} : drawn });
  const now = new Map(fieldsOf(found));
  for (const [field, expected] of fieldsOf(lock.held)) {
    requireSame(field, expected, now.get(field) ?? 'none');
    now.delete(field);
  }
  for (const [field, value] of now) requireSame(field, 'none', value);
}

/** What must fit, in the order in which it explains the rest. Tags are asked of the lock itself. */
function listFields(lock: Lock): readonly (readonly [string, string])[] {
  const { product, release, signatures, base, installer, registryImage } = lock;
  const { catalogs, images, drawn, contents } = lock;
  const fields = {
    product,
    release,
    signatures,
    base,
    installer,
    registryImage,
    catalogs,
    images: Object.fromEntries(images.map((image) => [image, image])),
    drawn,
    contents,
  };
  return Object.entries(fields).flatMap(([name, value]) => flatten(value, name));
}

function flatten(value: Json | undefined, path: string): readonly (readonly [string, string])[] {
  if (value === undefined) return [];
  if (typeof value === 'string') return [[path, value]];
  const members = Object.entries((value ?? {}) as Readonly<Record<string, Json | undefined>>);
  return members.flatMap(([name, member]) => flatten(member, nameField(path, name)));
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
    await writeFileAtomic(path, formatLock(lock));
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
    await writeFileAtomic(path, formatLock({ ...lock, secrets: sealed }));
    await rm(secretsPathOf(path), { force: true }); // they were there in plain text before
    return;
  }
  await writeFileAtomic(secretsPathOf(path), formatLockSecrets(secrets), 0o600);
  await writeFileAtomic(path, formatLock(lock));
}
