import pLimit from 'p-limit';
import { createBudget } from '../base/decode/limits.ts';
import { isDigest, type Digest } from '../base/digest.ts';
import { isBroken } from '../base/disk/disk-errors.ts';
import { IntegrityError } from '../base/errors.ts';
import type { IsoImage } from '../iso/index.ts';
import { findOverlaps } from './index-rules.ts';
import { type IndexExtent, type IndexImage, type MediaIndex } from './media-index.ts';

/** Far larger than the manifests that registries accept. */
const MANIFEST_LIMIT = 8 * 1024 * 1024;

/** An image of a medium with the extents of its manifests, configs and layers, without duplicates. */
type ImageContents = {
  readonly image: IndexImage;
  readonly extents: readonly IndexExtent[];
};

/** Enough for 4,000 images of five platforms and 20 layers each. */
const LIMITS = { 'bytes of manifests': 256 << 20, 'blobs for its images': 1_000_000 };

/** Number of manifests read in parallel: a remote server takes some 20 ms for each. */
const LANES = 16;

/** Number of images whose manifests are requested in advance. */
const AHEAD = 64;

/**
 * Lists the extents that each image needs, in the order of the index. A damaged manifest contributes the
 * digests that are still readable. Blobs that the medium does not carry are left out.
 */
export async function* readImageContents(
  iso: Pick<IsoImage, 'readBytes'>,
  index: MediaIndex,
): AsyncGenerator<ImageContents> {
  const byDigest = new Map(index.extents.map((extent) => [extent.digest, extent] as const));
  const budget = createBudget(
    LIMITS,
    (what, limit) =>
      new IntegrityError('index.too-much-content', `the index names more than ${limit} ${what}`),
  );
  const overlaps = findOverlaps(index.extents);
  const lanes = pLimit(LANES);
  const known = new Map<IndexExtent, Promise<readonly IndexExtent[]>>();
  const begin = (manifest: IndexExtent): Promise<readonly IndexExtent[]> => {
    if (overlaps.has(manifest) || manifest.size > MANIFEST_LIMIT) return Promise.resolve([]);
    budget.take('bytes of manifests', manifest.size);
    return lanes(async () => {
      const named = await readNamedDigests(iso, manifest);
      return [...new Set(named.flatMap((digest) => byDigest.get(digest) ?? []))];
    });
  };
  const readNamed = (manifest: IndexExtent): Promise<readonly IndexExtent[]> => {
    const reading = known.get(manifest) ?? begin(manifest);
    known.set(manifest, reading);
    reading.catch(() => undefined); // reported when its turn comes
    return reading;
  };
  const all = index.images.map((image) => listManifests(image, byDigest));
  for (const [at, image] of index.images.entries()) {
    for (const manifest of all.slice(at, at + AHEAD).flat()) void readNamed(manifest);
    const found = new Set<IndexExtent>();
    for (const manifest of all[at] ?? []) {
      const named = await readNamed(manifest);
      budget.take('blobs for its images', 1 + named.length);
      for (const extent of [manifest, ...named]) found.add(extent);
    }
    yield { image, extents: [...found] };
  }
}

const listManifests = (
  { manifests }: IndexImage,
  byDigest: ReadonlyMap<Digest | undefined, IndexExtent>,
): readonly IndexExtent[] =>
  [...new Set(manifests)].flatMap((digest) => byDigest.get(digest as Digest) ?? []);

/** Digests of the descriptors in a manifest (OCI image-spec, descriptor.md "Properties"). */
async function readNamedDigests(
  iso: Pick<IsoImage, 'readBytes'>,
  { offset, size }: IndexExtent,
): Promise<readonly Digest[]> {
  try {
    const text = Buffer.from(await iso.readBytes(offset, size)).toString('latin1');
    const digests = [...text.matchAll(/"digest"\s*:\s*"(sha256:[0-9a-f]{64})"/g)];
    return digests.map(([, digest = '']) => digest).filter(isDigest);
  } catch (error) {
    // The damage is reported for this extent; only the blobs that it names are missing.
    if (error instanceof IntegrityError || isBroken(error)) return [];
    throw error;
  }
}
