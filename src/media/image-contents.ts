import { createBudget } from '../base/budget.ts';
import { isDigest, type Digest } from '../base/digest.ts';
import { IntegrityError, isErrno } from '../base/errors.ts';
import type { IsoImage } from '../iso/open-iso.ts';
import {
  findOverlaps,
  type IndexExtent,
  type IndexImage,
  type MediaIndex,
} from './index/media-index.ts';

/** Far above what a registry takes for a manifest. */
const MANIFEST_LIMIT = 8 * 1024 * 1024;

/** An image of a medium and the extents that are its manifests, configs and layers, each once. */
type ImageContents = {
  readonly image: IndexImage;
  readonly extents: readonly IndexExtent[];
};

/** 4,000 images of five platforms and 20 layers each. */
const LIMITS = { 'bytes of manifests': 256 << 20, 'blobs for its images': 1_000_000 };

/**
 * Which extents each image needs, as the manifests on the medium say. A damaged manifest counts as far
 * as digests can be made out in it; what an image names and the medium does not carry is not there.
 *
 * @throws IntegrityError `index.too-much-content`
 */
export async function* readImageContents(
  iso: Pick<IsoImage, 'readBytes'>,
  index: MediaIndex,
): AsyncGenerator<ImageContents> {
  const byDigest = new Map(index.extents.map((extent) => [extent.digest, extent] as const));
  const overlaps = findOverlaps(index.extents);
  const budget = createBudget(
    LIMITS,
    (what, limit) =>
      new IntegrityError('index.too-much-content', `index names more than ${limit} ${what}`),
  );
  const known = new Map<IndexExtent, readonly IndexExtent[]>();
  const readNamed = async (manifest: IndexExtent): Promise<readonly IndexExtent[]> => {
    if (overlaps.has(manifest) || manifest.size > MANIFEST_LIMIT) return [];
    budget.take('bytes of manifests', manifest.size);
    const named = await readNamedDigests(iso, manifest);
    return [...new Set(named.flatMap((digest) => byDigest.get(digest) ?? []))];
  };
  for (const image of index.images) {
    const found = new Set<IndexExtent>();
    for (const digest of new Set(image.manifests)) {
      const manifest = byDigest.get(digest as Digest);
      if (!manifest) continue;
      const named = known.get(manifest) ?? (await readNamed(manifest));
      known.set(manifest, named);
      budget.take('blobs for its images', 1 + named.length);
      for (const extent of [manifest, ...named]) found.add(extent);
    }
    yield { image, extents: [...found] };
  }
}

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
    // Cut off or worn: its own extent is reported, only what it names is missing.
    if (error instanceof IntegrityError || isErrno(error, 'EIO')) return [];
    throw error;
  }
}
