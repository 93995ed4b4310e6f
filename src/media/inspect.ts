import { SealiftError } from '../base/errors.ts';
import { withoutUndefined, sumSizes } from '../base/lists.ts';
import { BLOCK_SIZE } from '../iso/boot/gpt.ts';
import { readPartitionTables, SYSTEM_AREA_SIZE } from '../iso/boot/hybrid.ts';
import { readCoreosLive } from '../iso/coreos/live.ts';
import type { IsoImage } from '../iso/read/open.ts';
import { formatCauses } from '../iso/read/source.ts';
import { readImageContents } from './contents.ts';
import { readBundleFile } from './describe.ts';
import { type IndexExtent, type MediaIndex, readIndex } from './media-index.ts';
import {
  attempt,
  useMedium,
  type Medium,
  readBootstrapIgnition,
  readEmbeddedIgnition,
} from './open.ts';

/**
 * What there is to say of an ISO without reading its large files. Sizes and offsets are bytes. What is
 * damaged says so in its own place, and leaves the rest as it is.
 */
export type Inspection = {
  readonly size: number;
  readonly volume: { readonly id: string; readonly size: number; readonly system: string };
  readonly extensions: { readonly rockRidge: boolean; readonly joliet: boolean };
  readonly bootEntries: readonly {
    readonly platform: string;
    readonly bootable: boolean;
    readonly loadSectors: number;
    readonly offset: number;
  }[];
  readonly partitions: readonly {
    readonly table: 'mbr' | 'gpt';
    readonly type: string;
    readonly offset: number;
    readonly size: number;
  }[];
  readonly partitionsProblem?: string;
  /** Absent where the image is not a live ISO of CoreOS; `notCoreos` then says what it lacks. */
  readonly coreos?: {
    readonly embedArea: {
      readonly file: string;
      readonly offset: number;
      readonly size: number;
      readonly grown: boolean;
      /** Up to the last byte that is not zero. */
      readonly used: number;
      /** Why what is in it cannot be read. */
      readonly problem?: string;
    };
    readonly kargs: string;
    readonly defaultKargs: string;
    readonly kargAreas: number;
    readonly ignition: boolean;
    readonly bootstrapIgnition: boolean;
    readonly bootstrapProblem?: string;
  };
  readonly notCoreos?: string;
  /** Absent where sealift did not make it, or `mediaProblem` says why its index cannot be read. */
  readonly media?: {
    readonly product: string;
    readonly release: MediaIndex['release'];
    readonly base?: MediaIndex['base'];
    /** Versions of its releases whose signature was not verified. */
    readonly unsigned?: readonly string[];
    /** How many, by set. */
    readonly images: Readonly<Record<string, number>>;
    /** Manifests, configs and layers by set; what several sets need counts in each of them. */
    readonly sizes: Readonly<Record<string, number>>;
    /** Of all sets, each blob once. */
    readonly payloadSize: number;
    readonly extents: number;
    /** The list of images by digest; media of the first versions and other products have none. */
    readonly bundle?: { readonly name: string; readonly images: number };
    /** Why it cannot be read. */
    readonly bundleProblem?: string;
    /** Of the index; media of the first versions have none. */
    readonly indexDigest?: string;
  };
  readonly mediaProblem?: string;
};

/** @throws UsageError `iso.unreadable`; IntegrityError where not even the directories can be read */
export async function inspectIso(medium: Medium): Promise<Inspection> {
  return useMedium(medium, async (iso) => {
    const { value: partitions, problem } = await attempt(() => readPartitions(iso));
    return {
      size: iso.fileSize,
      volume: {
        id: iso.volume.volumeId,
        size: iso.volume.volumeSpaceSize * iso.volume.logicalBlockSize,
        system: iso.volume.systemId,
      },
      extensions: { rockRidge: iso.hasRockRidge, joliet: iso.joliet !== undefined },
      bootEntries: iso.bootEntries.map(({ platform, bootable, loadSectors, sector }) => ({
        platform,
        bootable,
        loadSectors,
        offset: sector * 2048,
      })),
      partitions: partitions ?? [],
      ...withoutUndefined({ partitionsProblem: problem }),
      ...(await inspectCoreos(iso)),
      ...(await inspectMedia(iso)),
    };
  });
}

async function readPartitions(iso: IsoImage): Promise<Inspection['partitions']> {
  const { mbr = [], gpt } = readPartitionTables(await iso.readBytes(0, SYSTEM_AREA_SIZE));
  return [
    ...mbr
      .filter(({ blocks }) => blocks > 0)
      .map(({ type, start, blocks }) => ({
        table: 'mbr' as const,
        type: `0x${type.toString(16).padStart(2, '0')}`,
        offset: start * BLOCK_SIZE,
        size: blocks * BLOCK_SIZE,
      })),
    ...(gpt?.partitions ?? []).map(({ type, firstBlock, lastBlock }) => ({
      table: 'gpt' as const,
      type,
      offset: firstBlock * BLOCK_SIZE,
      size: (lastBlock - firstBlock + 1) * BLOCK_SIZE,
    })),
  ];
}

async function inspectCoreos(iso: IsoImage): Promise<Pick<Inspection, 'coreos' | 'notCoreos'>> {
  try {
    const { embedArea, kargs } = await readCoreosLive(iso);
    const embedded = await attempt(() => readEmbeddedIgnition(iso));
    const bootstrap = await attempt(() => readBootstrapIgnition(iso));
    return {
      coreos: {
        embedArea: {
          ...embedArea,
          used: await measureUsed(iso, embedArea),
          ...withoutUndefined({ problem: embedded.problem }),
        },
        kargs: kargs.text,
        defaultKargs: kargs.default,
        kargAreas: kargs.areas.length,
        ignition: embedded.value !== undefined,
        bootstrapIgnition: bootstrap.value !== undefined,
        ...withoutUndefined({ bootstrapProblem: bootstrap.problem }),
      },
    };
  } catch (error) {
    if (!(error instanceof SealiftError) || error.code !== 'base-iso.not-coreos') throw error;
    return { notCoreos: error.cause instanceof Error ? formatCauses(error.cause) : error.message };
  }
}

/** `findEmbedArea` made sure that the area is inside its file; the file may still be cut off. */
async function measureUsed(
  iso: IsoImage,
  { offset, size }: { readonly offset: number; readonly size: number },
): Promise<number> {
  const { value: bytes } = await attempt(() => iso.readBytes(offset, size));
  return (bytes?.findLastIndex((byte) => byte !== 0) ?? -1) + 1;
}

async function inspectMedia(iso: IsoImage): Promise<Pick<Inspection, 'media' | 'mediaProblem'>> {
  const { value: index, problem } = await attempt(() => readIndex(iso));
  if (problem !== undefined) return { mediaProblem: problem };
  return index ? { media: await describeMedia(iso, index) } : {};
}

async function describeMedia(
  iso: IsoImage,
  index: MediaIndex,
): Promise<NonNullable<Inspection['media']>> {
  const sets = new Map<string, { count: number; readonly extents: Set<IndexExtent> }>();
  for await (const { image, extents } of readImageContents(iso, index)) {
    const own = sets.get(image.set) ?? { count: 0, extents: new Set() };
    sets.set(image.set, own);
    own.count++;
    for (const extent of extents) own.extents.add(extent);
  }
  const { product, release, base, extents, unsigned } = index;
  const all = [...sets];
  return {
    product,
    release,
    ...withoutUndefined({ base, unsigned }),
    images: Object.fromEntries(all.map(([set, { count }]) => [set, count])),
    sizes: Object.fromEntries(all.map(([set, own]) => [set, sumSizes(own.extents)])),
    payloadSize: sumSizes(new Set(all.flatMap(([, own]) => [...own.extents]))),
    extents: extents.length,
    ...(await describeBundle(iso)),
    ...withoutUndefined({ indexDigest: index.digest }),
  };
}

async function describeBundle(
  iso: IsoImage,
): Promise<Pick<NonNullable<Inspection['media']>, 'bundle' | 'bundleProblem'>> {
  const { value: file, problem } = await attempt(() => readBundleFile(iso));
  if (problem !== undefined) return { bundleProblem: problem };
  return file ? { bundle: { name: file.name, images: file.images.length } } : {};
}
