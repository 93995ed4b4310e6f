import { join } from 'node:path';
import { digestOf, type Digest, hexOf } from '../../base/digest.ts';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import type { FileInput } from '../../base/disk/file-digests.ts';
import { readInputFile, writeFileAtomic, readFileIfPresent } from '../../base/disk/files.ts';
import { withLease, type LeaseOptions } from '../../base/disk/lease.ts';
import { ConfigError, SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { formatCanonicalJson, type Json, formatReadableJson } from '../../base/text/json.ts';
import type { ApplianceConfig } from '../../config/appliance-config.ts';
import type { EventListener } from '../../engine/index.ts';
import type { Layout, Places } from '../../iso/index.ts';
import { placesOf } from '../../media/media-index.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { describeRelease, type Release, digestOfRelease } from '../../openshift/release/release.ts';
import { type UpgradePath, noteOfRelease } from '../../openshift/release/upgrade-path.ts';
import type { IsoPlace } from '../../outputs/place.ts';
import { formatReference } from '../../registry/index.ts';
import { decodeJson, ifFaultless, requireDecoded } from '../../shape/decode.ts';
import { DIGEST, mapping, oneOf, optional, record, TEXT, type TypeOf } from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';
import type { BuildTools } from '../tools.ts';
import {
  digestOfDrawn,
  type Lock,
  mismatch,
  nameField,
  type DrawnSource,
  formatLock,
  readLock,
  formatLockSecrets,
  readLockSecrets,
  secretsPathOf,
  type LockSecrets,
} from './record.ts';
import type { TagDigests, Pinned } from './tags.ts';

/*
 * The use of locks and saved plans in a run: they are claimed, compared with what the build finds,
 * and written. Tags that moved are reported here, too.
 */

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

/** A digest of all that is carried, by digest. */
export const digestContents = (carried: {
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  readonly base?: { readonly digest: Digest };
}): Digest => {
  const { images, registryImage } = carried.plan;
  const all = registryImage ? [...images, registryImage] : images;
  return digestOf(
    formatCanonicalJson({
      ...(carried.base && { base: carried.base.digest }),
      images: all.map(({ source, destination, manifests }) => ({ source, destination, manifests })),
      catalogs: carried.catalogs.map(({ name, digest, bundles }) => ({ name, digest, bundles })),
    }),
  );
};

/**
 * Reads a saved plan.
 * @param path of the output of `sealift plan -o json`, or of the report next to an ISO
 * @throws ConfigError `plan.unreadable`, `plan.too-large`, `plan.malformed`
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

/**
 * Makes sure that everything that is poured is in the plan.
 *
 * @throws ConfigError `plan.differs`
 */
export function requirePlanned(
  { base, contents }: SavedPlan,
  found: { readonly base?: { readonly digest: string }; readonly contents: string },
): void {
  if (contents === found.contents) return;
  if (base?.digest !== found.base?.digest) {
    throw new ConfigError('plan.differs', 'the base ISO is not the planned one', {
      expected: base?.digest ?? 'none',
      found: found.base?.digest ?? 'none',
      hint: 'restore the base ISO, or plan again',
    });
  }
  throw new ConfigError(
    'plan.differs',
    'configuration and options ask for images that differ from the plan',
    {
      expected: contents,
      found: found.contents,
      hint: 'give the configuration and options (such as --from) of the plan, or plan again',
    },
  );
}

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

/**
 * Requires the value of the lock.
 * @throws ConfigError `lock.mismatch`
 */
export function requireSame(field: string, expected: string, found: string): void {
  if (expected !== found) throw mismatch(field, { expected, found });
}

/**
 * Lists the fields that must fit; earlier fields explain differences in later ones. Tags are
 * checked by the lock itself.
 */
function listFields(lock: Lock): readonly (readonly [string, string])[] {
  const { product, release, path, seed, signatures, base, installer, registryImage } = lock;
  const { catalogs, images, drawn, contents } = lock;
  const fields = {
    product,
    release,
    path,
    seed,
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

/** Flattens a value into its texts, each by the name of its place. */
export function flatten(
  value: Json | undefined,
  path: string,
): readonly (readonly [string, string])[] {
  if (value === undefined) return [];
  if (typeof value === 'string') return [[path, value]];
  const members = Object.entries((value ?? {}) as Readonly<Record<string, Json | undefined>>);
  return members.flatMap(([name, member]) => flatten(member, nameField(path, name)));
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

/**
 * Collects the digests that tags named, including the release of the update graph; warns about
 * tags that moved.
 */
export async function settleTags(
  request: {
    readonly config: Pick<ApplianceConfig, 'ocpRelease'>;
    readonly configuration: string;
    readonly saved?: SavedPlan;
  },
  { tags, workDir, emit }: BuildTools,
  release: Promise<Release>,
): Promise<TagDigests> {
  const { config, ...place } = request;
  const { url = '', version, channel } = config.ocpRelease;
  if (url === '') tags.note(noteOfRelease(version, channel), digestOfRelease(await release));
  await reportMovedTags(tags.list(), { ...place, workDir, emit });
  return tags.list();
}

const NOTED_TAGS = record({ tags: mapping(TEXT) }, { others: 'left-out' });

/**
 * Warns about tags that name another image than when this configuration was last planned or built
 * in this work directory, and stores what they name now. A build of a saved plan takes the digests
 * of the plan: tags are not asked for, so nothing is reported and nothing stored.
 */
export async function reportMovedTags(
  tags: TagDigests,
  {
    workDir,
    configuration,
    saved,
    emit,
  }: {
    readonly workDir: string;
    readonly configuration: string;
    readonly saved?: SavedPlan | undefined;
    readonly emit: EventListener;
  },
): Promise<void> {
  if (saved) return;
  const name = hexOf(digestOf(configuration)).slice(0, 32);
  const path = join(workDir, 'tags', `${name}.json`);
  const bytes = await readFileIfPresent(path);
  const before = (bytes && ifFaultless(decodeJson(NOTED_TAGS, bytes)))?.tags ?? {};
  for (const [tag, digest] of Object.entries(tags)) {
    const earlier = before[tag];
    if (earlier === undefined || earlier === digest) continue;
    const message = `${tag} has moved since the last plan or build: it was ${earlier} and is ${digest}`;
    emit({ type: 'warning', message });
  }
  await writeFileAtomic(path, formatReadableJson({ configuration, tags }));
}
