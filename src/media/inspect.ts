import { SealiftError } from '../base/errors.ts';
import { withoutUndefined, sumSizes } from '../base/lists.ts';
import {
  BLOCK_SIZE,
  formatCauses,
  type IsoImage,
  readCoreosLive,
  readPartitionTables,
  SYSTEM_AREA_SIZE,
} from '../iso/index.ts';
import { osStreamOf } from '../openshift/release/os-stream.ts';
import { readImageContents } from './contents.ts';
import { readBundleFile } from './describe.ts';
import { type HeldImage, readHeldImage } from './held-image.ts';
import { judgeAreas, type JudgedArea } from './judge-areas.ts';
import { type IndexExtent, type MediaIndex, readIndex } from './media-index.ts';
import { type Product, readOptionalAreas, recognizeProduct } from './medium.ts';
import { type Proof, readProof } from './proof.ts';
import {
  attempt,
  useMedium,
  type IsoSource,
  readBootstrapIgnition,
  readEmbeddedIgnition,
} from './open.ts';

/**
 * Needs no reading of large files. Sizes and offsets are bytes. Damage is reported in the member that it
 * affects; the other members are still filled.
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
  /** Absent if the image is not a live ISO of CoreOS; `notCoreos` then says what is missing. */
  readonly coreos?: {
    readonly embedArea: {
      readonly file: string;
      readonly offset: number;
      readonly size: number;
      readonly grown: boolean;
      /** Size up to the last byte that is not zero. */
      readonly used: number;
      /** Reason why the contents cannot be read. */
      readonly problem?: string;
    };
    readonly kargs: string;
    readonly defaultKargs: string;
    readonly kargAreas: number;
    readonly ignition: boolean;
    readonly bootstrapIgnition: boolean;
    readonly bootstrapProblem?: string;
    /** Stream of the operating system, such as `rhel-9`, if the name of the volume has it. */
    readonly osStream?: string;
  };
  readonly notCoreos?: string;
  /** Absent if sealift did not make the ISO, or if `mediaProblem` says why its index cannot be read. */
  readonly media?: {
    readonly product: string;
    /** Version of sealift; absent on media of earlier versions. */
    readonly program?: string;
    readonly release: MediaIndex['release'];
    readonly base?: MediaIndex['base'];
    /** Versions of the releases whose signatures were not verified. */
    readonly unsigned?: readonly string[];
    /** Number of images by set. */
    readonly images: Readonly<Record<string, number>>;
    /** Size of manifests, configs and layers by set; a blob that several sets need counts in each of them. */
    readonly sizes: Readonly<Record<string, number>>;
    /** Size of all sets, each blob counted once. */
    readonly payloadSize: number;
    readonly extents: number;
    /** Contents of the catalogs; absent on media without catalogs. */
    readonly catalogs?: MediaIndex['catalogs'];
    /** List of images by digest; media of the first versions and other products have no list. */
    readonly bundle?: { readonly name: string; readonly images: number };
    /** Reason why the list cannot be read. */
    readonly bundleProblem?: string;
    /** Digest of the index; media of the first versions have no digest. */
    readonly indexDigest?: string;
  };
  readonly mediaProblem?: string;
  /** Proof of a medium of ours that has no index. */
  readonly proof?: Pick<Proof, 'product' | 'program' | 'of' | 'digest'>;
  readonly product: Product;
  /** States of the areas that may be changed after the build; absent on an ISO without such areas. */
  readonly areas?: readonly Pick<JudgedArea, 'kind' | 'offset' | 'size' | 'state' | 'problem'>[];
  /** The configuration image of a site in its area, without secrets; absent without one. */
  readonly configImage?: HeldImage;
  /** Reason why the areas cannot be judged. */
  readonly areasProblem?: string;
};

/** @throws ConfigError `iso.unreadable`; IntegrityError if not even the directories can be read */
export async function inspectIso(medium: IsoSource): Promise<Inspection> {
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
        ...withoutUndefined({
          bootstrapProblem: bootstrap.problem,
          osStream: osStreamOf(iso.volume.volumeId),
        }),
      },
    };
  } catch (error) {
    if (!(error instanceof SealiftError) || error.code !== 'base-iso.not-coreos') throw error;
    return { notCoreos: error.cause instanceof Error ? formatCauses(error.cause) : error.message };
  }
}

/** `findEmbedArea` has checked that the area is inside its file; the file may still be truncated. */
async function measureUsed(
  iso: IsoImage,
  { offset, size }: { readonly offset: number; readonly size: number },
): Promise<number> {
  const { value: bytes } = await attempt(() => iso.readBytes(offset, size));
  return (bytes?.findLastIndex((byte) => byte !== 0) ?? -1) + 1;
}

async function inspectMedia(
  iso: IsoImage,
): Promise<
  Pick<
    Inspection,
    'media' | 'mediaProblem' | 'proof' | 'product' | 'areas' | 'areasProblem' | 'configImage'
  >
> {
  const { value: index, problem } = await attempt(() => readIndex(iso));
  const { value: proof, ...unread } = index
    ? {}
    : await attempt(() => readProof({ read: iso.readBytes, size: iso.fileSize }));
  const areas = await attempt(() => readOptionalAreas(iso, { index, proof }));
  const judged = await attempt(async () => areas.value && (await judgeAreas(areas.value)));
  return {
    product: await recognizeProduct(iso, { index, proof }, areas.value),
    ...withoutUndefined({
      media: index && (await describeMedia(iso, index)),
      proof: proof && describeProof(proof),
      mediaProblem: problem ?? unread.problem,
      areas: judged.value?.map(describeArea),
      areasProblem: areas.problem ?? judged.problem,
      configImage: areas.value && (await readHeldImage(areas.value)),
    }),
  };
}

const describeProof = ({ product, program, of, digest }: Proof): Inspection['proof'] => {
  return { product, program, of, digest };
};

const describeArea = (area: JudgedArea): NonNullable<Inspection['areas']>[number] => {
  const { kind, offset, size, state, problem } = area;
  return { kind, offset, size, state, ...withoutUndefined({ problem }) };
};

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
  const { product, program, release, base, extents, unsigned, catalogs } = index;
  const all = [...sets];
  return {
    product,
    release,
    ...withoutUndefined({ program, base, unsigned, catalogs }),
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
