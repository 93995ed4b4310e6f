import { SealiftError } from '../base/errors.ts';
import { readCoreosLive } from '../iso/coreos/coreos.ts';
import { BLOCK_SIZE } from '../iso/boot/gpt.ts';
import { readPartitionTables, SYSTEM_AREA_SIZE } from '../iso/boot/hybrid.ts';
import { openIso, type IsoImage } from '../iso/open-iso.ts';
import type { MediaIndex } from '../openshift/media/media-index.ts';
import { readBootstrapIgnition, readEmbeddedIgnition } from '../stages/read-ignition.ts';
import { readIndex } from '../stages/read-index.ts';

/** What there is to say of an ISO without reading its files. Sizes and offsets are bytes. */
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
  /** Absent where the image is no live ISO of CoreOS. */
  readonly coreos?: {
    readonly embedArea: {
      readonly file: string;
      readonly offset: number;
      readonly size: number;
      readonly grown: boolean;
    };
    readonly kargs: string;
    readonly defaultKargs: string;
    readonly kargAreas: number;
    readonly ignition: boolean;
    readonly bootstrapIgnition: boolean;
  };
  /** Absent where sealift did not make it. */
  readonly media?: {
    readonly product: string;
    readonly release: MediaIndex['release'];
    readonly base: MediaIndex['base'];
    readonly images: Readonly<Record<string, number>>;
    readonly extents: number;
  };
};

/** @throws IntegrityError where the image cannot be read at all */
export async function inspectIso(path: string): Promise<Inspection> {
  const iso = await openIso(path);
  try {
    const coreos = await readIfCoreos(iso);
    const index = await readIndex(iso);
    return {
      size: iso.fileSize,
      volume: {
        id: iso.volume.volumeId,
        size: iso.volume.volumeSpaceSize * iso.volume.logicalBlockSize,
        system: iso.volume.systemId,
      },
      extensions: { rockRidge: iso.hasRockRidge, joliet: iso.joliet !== undefined },
      bootEntries: iso.bootEntries.map(({ platform, bootable, loadSectors, sector }) => ({
        ...{ platform, bootable, loadSectors, offset: sector * 2048 },
      })),
      partitions: await readPartitions(iso),
      ...(coreos && { coreos }),
      ...(index && { media: describeMedia(index) }),
    };
  } finally {
    await iso.close();
  }
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

/** undefined where it is none: that is no failure of an inspection. */
async function readIfCoreos(iso: IsoImage): Promise<Inspection['coreos']> {
  try {
    const { embedArea, kargs } = await readCoreosLive(iso);
    return {
      embedArea: { ...embedArea },
      kargs: kargs.text,
      defaultKargs: kargs.default,
      kargAreas: kargs.areas.length,
      ignition: (await readEmbeddedIgnition(iso)) !== undefined,
      bootstrapIgnition: (await readBootstrapIgnition(iso)) !== undefined,
    };
  } catch (error) {
    if (error instanceof SealiftError && error.code === 'base-iso.not-coreos') return undefined;
    throw error;
  }
}

function describeMedia(index: MediaIndex): NonNullable<Inspection['media']> {
  const images: Record<string, number> = {};
  for (const { set } of index.images) images[set] = (images[set] ?? 0) + 1;
  const { product, release, base, extents } = index;
  return { product, release, base, images, extents: extents.length };
}
