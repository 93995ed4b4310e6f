import { isDigest, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { isErrno } from '../../base/errno.ts';
import type { IsoImage } from '../../iso/open-iso.ts';
import type { IndexExtent, IndexImage, MediaIndex } from '../../openshift/media/media-index.ts';

/** Far above what a registry takes for a manifest. */
const MANIFEST_LIMIT = 8 * 1024 * 1024;

/** An image of a medium and the extents that are its manifests, configs and layers, each once. */
type ImageContents = {
  readonly image: IndexImage;
  readonly extents: readonly IndexExtent[];
};

/**
 * Which extents each image needs, as the manifests on the medium say. A damaged manifest counts as far
 * as digests can be made out in it; what an image names and the medium does not carry is not there.
 */
export async function* readImageContents(
  iso: Pick<IsoImage, 'readBytes'>,
  index: MediaIndex,
): AsyncGenerator<ImageContents> {
  const byDigest = new Map(index.extents.map((extent) => [extent.digest, extent] as const));
  for (const image of index.images) {
    const found = new Set<IndexExtent>();
    for (const digest of image.manifests) {
      const manifest = byDigest.get(digest as Digest);
      if (!manifest) continue;
      found.add(manifest);
      for (const named of await readNamedDigests(iso, manifest)) {
        const extent = byDigest.get(named);
        if (extent) found.add(extent);
      }
    }
    yield { image, extents: [...found] };
  }
}

/** Digests of the descriptors in a manifest (OCI image-spec, descriptor.md "Properties"). */
async function readNamedDigests(
  iso: Pick<IsoImage, 'readBytes'>,
  { offset, size }: IndexExtent,
): Promise<readonly Digest[]> {
  if (size > MANIFEST_LIMIT) return [];
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
