import type { FileInput } from '../../base/disk/file-digests.ts';
import { digestOf, type Digest } from '../../base/digest.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { formatCanonicalJson, type Json } from '../../base/text/json.ts';
import type { Layout } from '../../iso/extent.ts';
import { placesOf } from '../../media/media-index.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { describeRelease, type Release } from '../../openshift/release/release.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import { formatReference } from '../../registry/reference.ts';
import type { TagDigests } from '../../registry/tag-ledger.ts';
import type { BuildTools } from '../build-tools.ts';
import { digestOfDrawn } from './drawn-ledger.ts';
import type { Lock, LockedBase, LockedSeed } from './lock-file.ts';
import { mismatch, nameField } from './mismatch.ts';

/** What a product resolved, as far as it has it. */
export type LockedContents = {
  readonly product: string;
  readonly channel?: string;
  /** All that it carries; the last is the one that it is for. */
  readonly releases: readonly Release[];
  readonly path?: UpgradePath;
  readonly seed?: LockedSeed;
  readonly base?: LockedBase;
  readonly installer?: FileInput;
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  readonly tags: TagDigests;
  readonly contents: Digest;
  readonly layout: Layout;
};

/** The lock of what was prepared. */
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

/** @throws ConfigError `lock.mismatch` */
export function requireSame(field: string, expected: string, found: string): void {
  if (expected !== found) throw mismatch(field, { expected, found });
}

/** What must fit, in the order in which it explains the rest. Tags are asked of the lock itself. */
export function listFields(lock: Lock): readonly (readonly [string, string])[] {
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

/** Each text of a value, by the name of its place. */
export function flatten(
  value: Json | undefined,
  path: string,
): readonly (readonly [string, string])[] {
  if (value === undefined) return [];
  if (typeof value === 'string') return [[path, value]];
  const members = Object.entries((value ?? {}) as Readonly<Record<string, Json | undefined>>);
  return members.flatMap(([name, member]) => flatten(member, nameField(path, name)));
}
