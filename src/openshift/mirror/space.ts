import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDirectory } from '../../base/disk/files.ts';
import type { BlockDevice } from '../../base/disk/block-device.ts';
import { ConfigError, DiskError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/words.ts';
import type { MirrorPlan, PlannedBlob } from './mirror-plan.ts';
import { findOmissions, type Omission } from './plan-costs.ts';
import { hasLocal, type BlobSource } from '../../base/store/blob-source.ts';
import type { BlobCache } from '../../base/store/store.ts';

/**
 * Fails as soon as the images alone are too large, before the base ISO or a layer is fetched.
 *
 * @throws ConfigError `iso.over-max-size`
 */
export function checkPayloadSize(plan: MirrorPlan, maxSize: number | undefined): void {
  checkMaxSize(plan.blobSize + plan.manifestSize, maxSize, plan);
}

/**
 * @param isoSize bytes of the ISO, or of what is known of it so far
 * @throws ConfigError `iso.over-max-size`, with what could be left out
 */
export function checkMaxSize(isoSize: number, maxSize: number | undefined, plan: MirrorPlan): void {
  if (maxSize === undefined || isoSize <= maxSize) return;
  const omissions = findOmissions(plan, isoSize - maxSize);
  throw new ConfigError(
    'iso.over-max-size',
    `the ISO would have ${formatSize(isoSize)}, more than build.maxSize of ${formatSize(maxSize)}`,
    {
      expected: `at most ${maxSize}`,
      found: String(isoSize),
      hint:
        omissions.length === 0
          ? 'raise build.maxSize: all operators and additional images together save too little'
          : `leave out ${omissions.map(formatOmission).join(', or ')}, or raise build.maxSize`,
    },
  );
}

const formatOmission = ({ parts, size }: Omission): string =>
  `${parts.join(' and ')} (${formatSize(size)})`;

/** The blobs of a plan that neither the cache nor a seed has. */
export async function findMissing(
  { blobs }: MirrorPlan,
  {
    cache,
    seeds,
  }: { readonly cache: Pick<BlobCache, 'has'>; readonly seeds: readonly BlobSource[] },
): Promise<PlannedBlob[]> {
  const known = await Promise.all(
    blobs.map(async (blob) => (await cache.has(blob.digest)) || (await hasLocal(seeds, blob))),
  );
  return blobs.filter((_blob, index) => known[index] !== true);
}

/** statfs(2): file systems whose files end before 4 GiB. */
const FAT_TYPES = new Set([0x4d44]);
const FAT_LIMIT = 2 ** 32 - 1;

type SpaceNeeds = {
  /** Path of the output. */
  readonly output: string;
  /** Bytes of the ISO, or of what is known of it so far. */
  readonly isoSize: number;
  /** Bytes that an interrupted build has taken there already. */
  readonly allocated: number;
  /** What takes the ISO in place of a file. */
  readonly device?: BlockDevice;
  /** Further bytes for the cache, when it is on the same file system; else 0. */
  readonly cacheSize: number;
};

/**
 * Fails before anything is downloaded that would not fit.
 *
 * @returns free bytes of the output's file system
 * @throws DiskError `disk.too-small`, `disk.file-too-large`, `device.too-small`
 */
export async function requireSpace(needs: SpaceNeeds): Promise<number> {
  const directory = dirname(needs.output);
  await makeDirectory(directory);
  const { bavail, bsize, type } = await statfs(directory);
  if (needs.device) requireLarge(needs.device, needs.isoSize);
  if (!needs.device && FAT_TYPES.has(type) && needs.isoSize > FAT_LIMIT) {
    throw new DiskError(
      'disk.file-too-large',
      `"${directory}" is on FAT, which cannot store a file of ${formatSize(needs.isoSize)}`,
      {
        expected: `at most ${FAT_LIMIT}`,
        found: String(needs.isoSize),
        hint: 'write to another file system',
      },
    );
  }
  const free = bavail * bsize;
  const isoSize = needs.device ? 0 : Math.max(0, needs.isoSize - needs.allocated);
  const needed = isoSize + needs.cacheSize;
  if (needed <= free) return needs.device?.size ?? free;
  throw new DiskError(
    'disk.too-small',
    `the build needs at least ${formatSize(needed)} in "${directory}", but only ${formatSize(free)} are free: ` +
      `${formatSize(needed - free)} are missing`,
    {
      expected: String(needed),
      found: String(free),
      hint: 'free some space, or name a larger disk with --output and --work-dir',
    },
  );
}

function requireLarge({ path, serial, size }: BlockDevice, isoSize: number): void {
  if (isoSize <= size) return;
  throw new DiskError(
    'device.too-small',
    `the ISO needs at least ${formatSize(isoSize)}, and ${path} (${serial}) has ${formatSize(size)}`,
    { expected: String(isoSize), found: String(size), hint: 'take a larger device' },
  );
}
