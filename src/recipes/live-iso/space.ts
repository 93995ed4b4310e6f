import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import type { Layout } from '../../iso/extent.ts';
import { surveyPartial } from '../../iso/pour/survey.ts';
import type { MirrorPlan, PlannedBlob } from '../../openshift/mirror/mirror-plan.ts';
import type { BlobCache } from '../../registry/blob-cache.ts';
import { checkSpace } from '../../stages/check-space.ts';

/** Bytes of the payload's blobs, by where they are, and of the disk. */
export type Space = {
  readonly bytesToFetch: number;
  /** In the cache, or in an interrupted output. */
  readonly bytesReused: number;
  readonly freeBytes: number;
  /** Bytes that the output still has to take. */
  readonly neededBytes: number;
};

type Places = { readonly output: string; readonly workDir: string };

/** Components whose files are taken out of their layers: the cache holds the layers and the files. */
const UNPACKED = ['machine-os-images', 'installer', 'baremetal-installer'];

/**
 * Fails before the first large download when not even the payload and what is unpacked of it fit. The
 * exact check comes with the layout.
 */
export async function reserveSpace(
  plan: MirrorPlan,
  places: Places,
  cache: BlobCache,
): Promise<number> {
  const missing = await findMissing(plan, cache);
  const unpacked = missing.filter(({ users }) => users.some((user) => UNPACKED.includes(user)));
  const { allocated } = await readAllocation(places.output);
  return checkSpace({
    output: places.output,
    isoSize: plan.blobSize,
    allocated,
    cacheSize: (await isSameDisk(places)) ? 2 * sum(unpacked) : 0,
  });
}

/** What is to fetch for a layout, and whether it fits: exact, to the byte. */
export async function surveySpace(
  prepared: { readonly plan: MirrorPlan; readonly layout: Layout },
  places: Places,
  cache: BlobCache,
): Promise<Space> {
  const { plan, layout } = prepared;
  const standing = await surveyPartial(layout, places.output);
  const poured = new Set(layout.extents.map(({ digest }) => digest));
  const missing = (await findMissing(plan, cache)).filter(({ digest }) => poured.has(digest));
  const bytesToFetch = missing.reduce(
    (total, { digest, size }) => total + size - (standing.blobs.get(digest) ?? 0),
    0,
  );
  const { allocated } = standing;
  const needs = { output: places.output, isoSize: layout.size, allocated, cacheSize: 0 };
  return {
    bytesToFetch,
    bytesReused: plan.blobSize - bytesToFetch,
    freeBytes: await checkSpace(needs),
    neededBytes: Math.max(0, layout.size - allocated),
  };
}

async function findMissing(plan: MirrorPlan, cache: BlobCache): Promise<PlannedBlob[]> {
  const known = await Promise.all(plan.blobs.map(({ digest }) => cache.has(digest)));
  return plan.blobs.filter((_blob, index) => known[index] !== true);
}

const readAllocation = async (output: string): Promise<{ allocated: number }> =>
  surveyPartial({ size: 0, extents: [] }, output);

async function isSameDisk({ output, workDir }: Places): Promise<boolean> {
  await mkdir(workDir, { recursive: true });
  await mkdir(dirname(output), { recursive: true });
  return (await stat(workDir)).dev === (await stat(dirname(output))).dev;
}

const sum = (blobs: readonly { readonly digest: Digest; readonly size: number }[]): number =>
  blobs.reduce((total, { size }) => total + size, 0);
