import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import type { BlockDevice } from '../../base/disk/block-device.ts';
import { makeDirectory } from '../../base/disk/files.ts';
import { ConfigError, DiskError } from '../../base/errors.ts';
import { hasLocal, type BlobSource, type Content } from '../../base/store/blob-source.ts';
import type { BlobCache } from '../../base/store/blob-cache.ts';
import { formatSize } from '../../base/text/words.ts';
import type { MirrorPlan, PlannedImage } from './plan.ts';

/** The cost of a part of the configuration. Sizes are bytes of blobs and manifests, each once. */
export type PartCost = {
  /** `release`, `additional images`, the package of an operator, `catalog ...`. */
  readonly part: string;
  readonly images: number;
  /** Everything that the part needs. */
  readonly size: number;
  /** Bytes that leaving it out would save: content that no other part needs. */
  readonly marginalSize: number;
};

type Piece = { readonly size: number; readonly parts: Set<string> };

export const planCosts = (plan: MirrorPlan): readonly PartCost[] => addCosts(plan, partsOf);

/**
 * Bytes of the registry tree on a medium or the disk of a host, and again those of the registry image, which
 * has a separate form. Without some kilobytes for each image: links and the medium's own files.
 */
export const sizeOfRegistry = ({ images, registryImage }: MirrorPlan): number =>
  sizeOf(images) + (registryImage ? sizeOf([registryImage]) : 0);

const sizeOf = (images: readonly PlannedImage[]): number =>
  listPieces(images, partsOf).reduce((total, { size }) => total + size, 0);

/** The saving from leaving a bundle out, shared layers considered. Sizes are bytes. */
export type BundleCost = Omit<PartCost, 'part'>;

/** By {@link bundleKey}. */
export function planBundleCosts(plan: MirrorPlan): ReadonlyMap<string, BundleCost> {
  const bundlesOf: PartsOf = ({ neededBy }) =>
    new Set(
      neededBy.map(({ part, bundle, catalog = '' }) =>
        bundle === undefined ? part : bundleKey(catalog, bundle),
      ),
    );
  return new Map(addCosts(plan, bundlesOf).map(({ part, ...cost }) => [part, cost]));
}

export const bundleKey = (catalog: string, bundle: string): string =>
  JSON.stringify([catalog, bundle]);

type PartsOf = (image: PlannedImage) => ReadonlySet<string>;

function addCosts(plan: MirrorPlan, partsOf: PartsOf): readonly PartCost[] {
  const images = listImages(plan);
  const pieces = listPieces(images, partsOf);
  const costs = new Map<string, { images: number; size: number; marginalSize: number }>();
  for (const image of images) {
    for (const part of partsOf(image)) {
      const cost = costs.get(part) ?? { images: 0, size: 0, marginalSize: 0 };
      cost.images++;
      costs.set(part, cost);
    }
  }
  for (const { size, parts } of pieces) {
    for (const part of parts) {
      const cost = costs.get(part);
      if (!cost) continue;
      cost.size += size;
      if (parts.size === 1) cost.marginalSize += size;
    }
  }
  return [...costs].map(([part, cost]) => ({ part, ...cost }));
}

/** Parts that could be left out together, and the bytes that this would save. */
export type Omission = { readonly parts: readonly string[]; readonly size: number };

const MAX_OMISSIONS = 3;

/**
 * The smallest single parts that suffice; if no part does, the fewest together, chosen by the bytes that each
 * adds. Release, catalogs and the registry image are never offered. Empty if leaving all out does not
 * suffice.
 */
export function findOmissions(plan: MirrorPlan, excess: number): readonly Omission[] {
  const pieces = listPieces(listImages(plan), partsOf);
  const optional = planCosts(plan).filter(({ part }) => isOptional(part));
  const single = optional
    .filter(({ marginalSize }) => marginalSize >= excess)
    .sort((a, b) => a.marginalSize - b.marginalSize || (a.part < b.part ? -1 : 1))
    .slice(0, MAX_OMISSIONS)
    .map(({ part, marginalSize }) => ({ parts: [part], size: marginalSize }));
  if (single.length > 0) return single;
  const together = addUp(
    pieces,
    optional.map(({ part }) => part),
    excess,
  );
  return together ? [together] : [];
}

/** Adds the part with the most bytes first, until the sum suffices. */
function addUp(
  pieces: readonly Piece[],
  optional: readonly string[],
  excess: number,
): Omission | undefined {
  const chosen = new Set<string>();
  let size = 0;
  while (size < excess) {
    const [best] = optional
      .filter((part) => !chosen.has(part))
      .map((part) => ({ part, size: sizeOnlyNeededBy(pieces, new Set([...chosen, part])) }))
      .sort((a, b) => b.size - a.size || (a.part < b.part ? -1 : 1));
    if (best === undefined) return undefined;
    chosen.add(best.part);
    size = best.size;
  }
  return { parts: [...chosen], size };
}

const sizeOnlyNeededBy = (pieces: readonly Piece[], chosen: ReadonlySet<string>): number =>
  pieces
    .filter(({ parts }) => [...parts].every((part) => chosen.has(part)))
    .reduce((total, { size }) => total + size, 0);

const isOptional = (part: string): boolean =>
  part !== 'release' && part !== 'registry image' && !part.startsWith('catalog ');

const listImages = ({ images, registryImage }: MirrorPlan): readonly PlannedImage[] =>
  registryImage ? [...images, registryImage] : images;

const partsOf = ({ neededBy }: PlannedImage): ReadonlySet<string> =>
  new Set(neededBy.map(({ part }) => part));

function listPieces(images: readonly PlannedImage[], partsOf: PartsOf): readonly Piece[] {
  const pieces = new Map<Digest, Piece>();
  for (const image of images) {
    const parts = partsOf(image);
    for (const { digest, size } of [...image.manifests, ...image.blobs]) {
      const piece = pieces.get(digest) ?? { size, parts: new Set<string>() };
      pieces.set(digest, piece);
      for (const part of parts) piece.parts.add(part);
    }
  }
  return [...pieces.values()];
}

/**
 * Fails before the base ISO or a layer is fetched.
 *
 * @throws ConfigError `iso.over-max-size`
 */
export function checkPayloadSize(plan: MirrorPlan, maxSize: number | undefined): void {
  checkMaxSize(plan.blobSize + plan.manifestSize, maxSize, plan);
}

/**
 * @param isoSize bytes of the ISO, or of its part that is known so far
 * @throws ConfigError `iso.over-max-size`, with the parts that could be left out
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

export async function findMissing<Blob extends Content>(
  blobs: readonly Blob[],
  {
    cache,
    seeds,
  }: { readonly cache: Pick<BlobCache, 'list'>; readonly seeds: readonly BlobSource[] },
): Promise<readonly Blob[]> {
  const cached = await cache.list();
  const known = await Promise.all(
    blobs.map(async (blob) => cached.has(blob.digest) || (await hasLocal(seeds, blob))),
  );
  return blobs.filter((_blob, index) => known[index] !== true);
}

/** statfs(2): file systems that cannot store a file of 4 GiB. */
const FAT_TYPES = new Set([0x4d44]);
const FAT_LIMIT = 2 ** 32 - 1;

type SpaceNeeds = {
  readonly output: string;
  /** Bytes of the ISO, or of its part that is known so far. */
  readonly isoSize: number;
  /** Bytes that an interrupted build already occupies there. */
  readonly allocated: number;
  /** The device that takes the ISO instead of a file. */
  readonly device?: BlockDevice;
  /** Further bytes for the cache, if it is on the same file system; else 0. */
  readonly cacheSize: number;
};

/**
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
    `the ISO needs at least ${formatSize(isoSize)}, but ${path} (${serial}) has ${formatSize(size)}`,
    { expected: String(isoSize), found: String(size), hint: 'use a larger device' },
  );
}
