import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { BlockDevice } from '../../base/disk/block-device.ts';
import { makeDirectory } from '../../base/disk/files.ts';
import { withoutUndefined, sumSizes } from '../../base/lists.ts';
import type { BlobSource } from '../../base/store/blob-source.ts';
import type { BlobCache } from '../../base/store/blob-cache.ts';
import type { Stage } from '../../engine/index.ts';
import { checkPayloadSize, findMissing, requireSpace } from '../../openshift/mirror/costs.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { surveyPartial } from '../../pour/index.ts';

export type CheckSpaceInput = {
  readonly plan: MirrorPlan;
  readonly output: string;
  readonly device?: BlockDevice;
  /** True if the output already exists, whole, or goes elsewhere: it needs no room here. */
  readonly isThere?: boolean;
  /** Bytes. */
  readonly maxSize?: number;
};

export type CheckSpaceTools = {
  readonly cache: BlobCache;
  readonly seeds: readonly BlobSource[];
  readonly workDir: string;
};

/**
 * Fails before the first large download if not even the payload and its unpacked files fit. The
 * exact check comes with the layout. Returns the free bytes of the output's file system.
 */
export const checkSpace: Stage<CheckSpaceInput, number, CheckSpaceTools> = {
  name: 'check space',
  async run({ plan, output, device, maxSize, isThere = false }, { cache, seeds, workDir }) {
    checkPayloadSize(plan, maxSize);
    const missing = await findMissing(plan.blobs, { cache, seeds });
    const unpacked = missing.filter(({ users }) => users.some((user) => UNPACKED.includes(user)));
    const { allocated } = await surveyPartial({ size: 0, extents: [] }, output);
    return requireSpace({
      output,
      allocated,
      isoSize: isThere ? 0 : plan.blobSize,
      ...withoutUndefined({ device }),
      cacheSize: (await isSameDisk(output, workDir)) ? 2 * sumSizes(unpacked) : 0,
    });
  },
};

/** Components whose files are taken out of their layers: the cache holds the layers and the files. */
const UNPACKED = ['machine-os-images', 'installer', 'baremetal-installer'];

async function isSameDisk(output: string, workDir: string): Promise<boolean> {
  await makeDirectory(workDir);
  await makeDirectory(dirname(output));
  return (await stat(workDir)).dev === (await stat(dirname(output))).dev;
}
