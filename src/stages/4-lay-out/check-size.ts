import type { Digest } from '../../base/digest.ts';
import type { BlockDevice } from '../../base/disk/block-device.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { BlobSource, Content } from '../../base/store/blob-source.ts';
import type { BlobCache } from '../../base/store/blob-cache.ts';
import type { Stage } from '../../engine/index.ts';
import type { Layout } from '../../iso/index.ts';
import { checkMaxSize, findMissing, requireSpace } from '../../openshift/mirror/costs.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { surveyPartial } from '../../pour/index.ts';

export type CheckSizeInput = {
  readonly layout: Layout;
  /** Bytes that the output takes on the disk, if it has holes; default: its size. */
  readonly written?: number;
  readonly plan: MirrorPlan;
  readonly output: string;
  readonly device?: BlockDevice;
  /** Bytes. */
  readonly maxSize?: number;
  /** True if every blob is on this machine. */
  readonly isLocal?: boolean;
  /** True if the output already exists, whole, or goes elsewhere: it needs no room here. */
  readonly isThere?: boolean;
};

/** Bytes of the payload's blobs, by their location, and of the disk. */
export type Space = {
  readonly bytesToFetch: number;
  /** Bytes in the cache, in a seed, in an interrupted output, or in a mirror on this machine. */
  readonly bytesReused: number;
  readonly freeBytes: number;
  /** Bytes that the output still has to take. */
  readonly neededBytes: number;
};

/** Computes what must be fetched for a layout, and checks that it fits: exact, to the byte. */
export const checkIsoSize: Stage<CheckSizeInput, Space, Tools> = {
  name: 'check size',
  async run(
    { layout, plan, output, device, maxSize, isLocal = false, isThere = false, ...known },
    { cache, seeds },
  ) {
    const isoSize = device ? layout.size : (known.written ?? layout.size);
    checkMaxSize(isoSize, maxSize, plan);
    const standing = await surveyPartial(layout, output);
    const poured = new Set(layout.extents.map(({ digest }) => digest));
    const blobs = isLocal ? [] : plan.blobs.filter(({ digest }) => poured.has(digest));
    const wanted = { blobs, payloadSize: plan.blobSize, isoSize, standing, output, isThere };
    return measureSpace({ ...wanted, ...withoutUndefined({ device }) }, { cache, seeds });
  },
};

type Tools = { readonly cache: Pick<BlobCache, 'list'>; readonly seeds: readonly BlobSource[] };

type SpaceWanted = Pick<CheckSizeInput, 'output' | 'device' | 'isThere'> & {
  /** The blobs on the medium, unless all are on this machine. */
  readonly blobs: readonly Content[];
  readonly payloadSize: number;
  readonly isoSize: number;
};

/** The interrupted output, as far as it is there. */
type Standing = {
  /** Bytes of each blob that it has. */
  readonly blobs: ReadonlyMap<Digest, number>;
  readonly allocated: number;
};

/** Measures the same for an ISO that was laid out before, and that has no interrupted output. */
export const checkKnownSize: Stage<SpaceWanted, Space, Tools> = {
  name: 'check size',
  run: (wanted, tools) =>
    measureSpace({ ...wanted, standing: { blobs: new Map(), allocated: 0 } }, tools),
};

/** Measures what must be fetched now, and the room for it. */
async function measureSpace(
  {
    blobs,
    payloadSize,
    isoSize,
    standing,
    output,
    device,
    isThere = false,
  }: SpaceWanted & { readonly standing: Standing },
  tools: Tools,
): Promise<Space> {
  const missing = await findMissing(blobs, tools);
  const bytesToFetch = missing.reduce(
    (total, { digest, size }) => total + size - (standing.blobs.get(digest) ?? 0),
    0,
  );
  const { allocated } = standing;
  const onDisk = isThere ? 0 : isoSize;
  return {
    bytesToFetch,
    bytesReused: payloadSize - bytesToFetch,
    freeBytes: await requireSpace({
      output,
      allocated,
      isoSize: onDisk,
      cacheSize: 0,
      ...withoutUndefined({ device }),
    }),
    neededBytes: Math.max(0, onDisk - allocated),
  };
}
