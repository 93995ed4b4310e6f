import type { BlockDevice } from '../../base/disk/block-device.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { BlobSource } from '../../base/store/blob-source.ts';
import type { BlobCache } from '../../base/store/blob-cache.ts';
import type { Stage } from '../../engine/index.ts';
import type { Layout } from '../../iso/index.ts';
import { checkMaxSize, findMissing, requireSpace } from '../../openshift/mirror/costs.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { surveyPartial } from '../../pour/index.ts';

export type CheckSizeInput = {
  readonly layout: Layout;
  readonly plan: MirrorPlan;
  readonly output: string;
  /** The block device that takes the ISO, if it is one. */
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

/**
 * Computes what must be fetched for a layout, and checks that it fits: exact, to the byte.
 *
 * @throws ConfigError `iso.over-max-size`; DiskError `disk.too-small`, `disk.file-too-large`
 */
export const checkIsoSize: Stage<
  CheckSizeInput,
  Space,
  { readonly cache: BlobCache; readonly seeds: readonly BlobSource[] }
> = {
  name: 'check size',
  async run(
    { layout, plan, output, device, maxSize, isLocal = false, isThere = false },
    { cache, seeds },
  ) {
    checkMaxSize(layout.size, maxSize, plan);
    const standing = await surveyPartial(layout, output);
    const poured = new Set(layout.extents.map(({ digest }) => digest));
    const absent = isLocal ? [] : await findMissing(plan, { cache, seeds });
    const missing = absent.filter(({ digest }) => poured.has(digest));
    const bytesToFetch = missing.reduce(
      (total, { digest, size }) => total + size - (standing.blobs.get(digest) ?? 0),
      0,
    );
    const { allocated } = standing;
    const onDisk = isThere ? 0 : layout.size;
    return {
      bytesToFetch,
      bytesReused: plan.blobSize - bytesToFetch,
      freeBytes: await requireSpace({
        output,
        allocated,
        isoSize: onDisk,
        cacheSize: 0,
        ...withoutUndefined({ device }),
      }),
      neededBytes: Math.max(0, onDisk - allocated),
    };
  },
};
