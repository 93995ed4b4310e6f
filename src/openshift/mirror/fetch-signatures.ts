import { hexOf, type Digest } from '../../base/digest.ts';
import { formatReference, type Reference } from '../../registry/reference.ts';
import { fetchImages, type FetchTools } from './fetch-images.ts';
import type { FetchedImage } from './mirror-plan.ts';

/**
 * The signatures that cosign attaches to images: the tag `sha256-<hex>.sig` of the repository of
 * what is signed, be it an index or one of its children. No such tag means no signature; any other
 * answer than 404 is a failure, because media that lack a signature do not install.
 */
export async function fetchSignatures(
  images: readonly FetchedImage[],
  tools: FetchTools,
): Promise<FetchedImage[]> {
  const candidates = new Map<string, { image: FetchedImage; digest: Digest }>();
  for (const image of images) {
    if (image.wanted.isMadeHere) continue;
    for (const { descriptor } of image.manifests) {
      const key = `${formatReference(signatureOf(image, descriptor.digest))} ${placeOf(image)}`;
      if (!candidates.has(key)) candidates.set(key, { image, digest: descriptor.digest });
    }
  }
  const found = await Promise.all(
    [...candidates.values()].map(({ image, digest }) => fetchSignature(image, digest, tools)),
  );
  return found.flat();
}

/** Beside the image, where nodes find it. */
const placeOf = ({ wanted }: FetchedImage): string =>
  (wanted.signedCopy ?? wanted.destination).repository;

async function fetchSignature(
  image: FetchedImage,
  digest: Digest,
  { client, cache, signal, limit }: FetchTools,
): Promise<FetchedImage[]> {
  const source = signatureOf(image, digest);
  const found = await limit(() => client.resolveTag(source, { signal }));
  if (found === undefined) return [];
  const { registry, repository, tag } = source;
  const wanted = {
    name: `${image.wanted.name} (signature)`,
    source: { registry, repository, digest: found.digest },
    destination: { repository: placeOf(image), tags: [tag] },
    neededBy: image.wanted.neededBy,
    kind: 'signature' as const,
  };
  const set = { name: image.set, images: [wanted] };
  return fetchImages([set], 'all', { client, cache, signal, limit });
}

function signatureOf(
  { wanted: { source } }: FetchedImage,
  digest: Digest,
): Reference & { readonly tag: string } {
  const { registry, repository } = source;
  return { registry, repository, tag: `sha256-${hexOf(digest)}.sig` };
}
