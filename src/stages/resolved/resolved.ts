import { digestOf, type Digest } from '../../base/digest.ts';
import { claimOutput } from '../../base/disk/claim-output.ts';
import type { FileInput } from '../../base/disk/file-digests.ts';
import { writeFileAtomic } from '../../base/disk/files.ts';
import { withLease, type LeaseOptions } from '../../base/disk/lease.ts';
import { SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import type { EventListener, StageStore } from '../../engine/index.ts';
import type { Layout, Places } from '../../iso/index.ts';
import { placesOf } from '../../media/media-index.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { describeRelease, type Release } from '../../openshift/release/release.ts';
import { type UpgradePath } from '../../openshift/release/upgrade-path.ts';
import type { IsoPlace } from '../../outputs/place.ts';
import { formatReference, type RegistryClient } from '../../registry/index.ts';
import {
  digestContents,
  requireLocked,
  requireMembers,
  requirePlanned,
  type LockMembers,
} from './compare.ts';
import { createDrawnLedger, digestOfDrawn, readSealKey, type DrawnLedger } from './drawn.ts';
import type { Held, SavedPlan } from './held.ts';
import {
  formatLock,
  formatLockSecrets,
  readLock,
  readLockSecrets,
  secretsPathOf,
  type Lock,
} from './record.ts';
import { createTagLedger, reportMovedTags, type TagDigests, type TagLedger } from './tags.ts';

/*
 * The one record of the meaning of names in a run. Records of earlier runs come in, as `held`; the
 * client and the store of the run answer from them, or note what is found. The record of this run
 * leaves: as the lock, as the tags of the configuration, and in reports, which are saved plans. No
 * product compares or writes a record itself.
 */

export type FoundContents = {
  readonly product: string;
  readonly channel?: string;
  /** All releases that it carries; the last is the one that the medium is for. */
  readonly releases: readonly Release[];
  readonly path?: UpgradePath;
  readonly seed?: NonNullable<Lock['seed']>;
  readonly base?: { readonly digest: Digest; readonly url?: string };
  readonly installer?: FileInput;
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  readonly layout: Layout;
};

export type Settled = {
  readonly tags: TagDigests;
  /** Digest of everything that is carried. */
  readonly contents: Digest;
  readonly lock: Lock;
};

export type ResolvedRequest = IsoPlace & {
  /** The configuration: the digests of its tags are stored under it. */
  readonly configuration: string;
  readonly held: Held;
};

export type Resolved = {
  /** Answers tags out of what is held, or asks for them and notes the answers. */
  readonly client: RegistryClient;
  /** Key for fingerprints of secrets: that of the lock, which its drawn values were drawn under. */
  readonly sealKey: Uint8Array;
  /** Takes drawn values out of what is held, or notes them. */
  readonly store: StageStore;
  /** The lock, if nothing else may be taken. */
  readonly locked: Lock | undefined;
  /** The plan that decides the digest of each name, if there is one. */
  readonly saved: SavedPlan | undefined;
  /** The places of bytes in the lock: they come before those of the ISO that is replaced. */
  readonly places: Places | undefined;
  /** Records the digest of a name that is not a tag: a version in an update graph. */
  readonly note: TagLedger['note'];
  /** Checks members of the lock that are known at once, and the program, before anything is fetched. */
  readonly require: (given: LockMembers) => void;
  /** Compares everything that was found with everything that is held, and warns of tags that moved. */
  readonly settle: (found: FoundContents) => Promise<Settled>;
  /** True if a value was drawn that an earlier run may have drawn with another result. */
  readonly drewAgain: () => boolean;
  /** Refuses a file in the place of the lock that is not a lock. */
  readonly claim: () => Promise<void>;
  /** Does work with the right to write the lock, if it is written at all. */
  readonly hold: <Result>(lease: LeaseOptions, work: () => Promise<Result>) => Promise<Result>;
  /** Writes the lock, and drawn values first: a lock without them cannot be built elsewhere. */
  readonly write: (lock: Lock) => Promise<void>;
};

type ResolvedTools = {
  readonly client: RegistryClient;
  readonly store: StageStore;
  readonly workDir: string;
  readonly program: Digest;
  readonly emit: EventListener;
};

/** `request` is absent for tools without an ISO: nothing is held, and no record is written. */
export async function openResolved(
  request: ResolvedRequest | undefined,
  { client, store, program, ...tools }: ResolvedTools,
): Promise<Resolved> {
  const { held = {} } = request ?? {};
  const { saved, locked, lock: use } = held;
  const sealKey = await readSealKey(tools.workDir, use?.secrets);
  const drawn = createDrawnLedger(store, held);
  const tags = createTagLedger(client, held);
  const written = request && use && !use.isLocked ? { ...request, path: use.path } : undefined;
  return {
    client: tags.client,
    sealKey,
    store: drawn.store,
    locked,
    saved,
    places: use?.held?.places,
    note: tags.note,
    require(given) {
      if (locked) requireMembers(locked, { program, ...given });
    },
    async settle(found) {
      const noted = tags.list();
      if (request && !saved) {
        await reportMovedTags(noted, { ...tools, configuration: request.configuration });
      }
      const contents = digestContents(found);
      const lock = makeLock({ ...found, program, contents, tags: noted, drawn });
      if (locked) requireLocked(locked, lock, use?.drawsAgain === true);
      if (saved) requirePlanned(saved, { ...found, contents });
      return { tags: noted, contents, lock };
    },
    drewAgain: () =>
      (use?.isLocked !== true || use.drawsAgain === true) && Object.keys(drawn.list()).length > 0,
    claim: () => (written ? claimLock(written) : Promise.resolve()),
    hold: (lease, work) => (written ? withLease(`${written.path}.lock`, lease, work) : work()),
    write: (lock) => (written ? writeLock(written, lock, { sealKey, drawn }) : Promise.resolve()),
  };
}

function makeLock({
  releases,
  installer,
  plan,
  layout,
  drawn,
  ...made
}: FoundContents &
  Omit<Settled, 'lock'> &
  Pick<ResolvedTools, 'program'> & { readonly drawn: DrawnLedger }): Lock {
  const { product, program, channel, path, seed, base, tags, contents } = made;
  const release = releases.at(-1);
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
    ...withoutUndefined({ places: placesOf(layout) }),
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

type WrittenLock = Pick<IsoPlace, 'inputs' | 'workDir'> & { readonly path: string };

async function claimLock({ path, inputs, workDir }: WrittenLock): Promise<void> {
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

function canRead(read: () => unknown): boolean {
  try {
    return read() !== undefined;
  } catch (error) {
    if (error instanceof SealiftError) return false;
    throw error;
  }
}

async function writeLock(
  written: WrittenLock,
  lock: Lock,
  { drawn, sealKey }: Pick<Resolved, 'sealKey'> & { readonly drawn: DrawnLedger },
): Promise<void> {
  await claimLock(written);
  const { path } = written;
  const values = drawn.list();
  if (Object.keys(values).length > 0) {
    const key = Buffer.from(sealKey).toString('base64');
    const secrets = { kind: 'SealiftLockSecrets', format: 1, key, drawn: values } as const;
    await writeFileAtomic(secretsPathOf(path), formatLockSecrets(secrets), 0o600);
  }
  await writeFileAtomic(path, formatLock(lock), 0o644);
}
