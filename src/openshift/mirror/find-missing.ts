import type { BlobCache } from '../../registry/cache/blob-cache.ts';
import type { MirrorPlan, PlannedBlob } from './mirror-plan.ts';

/** The blobs of a plan that the cache does not have. */
export async function findMissing(
  { blobs }: MirrorPlan,
  cache: Pick<BlobCache, 'has'>,
): Promise<PlannedBlob[]> {
  const known = await Promise.all(blobs.map(({ digest }) => cache.has(digest)));
  return blobs.filter((_blob, index) => known[index] !== true);
}
