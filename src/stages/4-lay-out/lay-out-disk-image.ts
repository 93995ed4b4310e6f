import { join } from 'node:path';
import { readUnchanged, type FileDigests, type FileInput } from '../../base/disk/file-digests.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { openRandomAccess, type RandomAccess } from '../../base/random-access.ts';
import type { BlobCache } from '../../base/store/blob-cache.ts';
import type { Stage } from '../../engine/index.ts';
import {
  createEmptyImage,
  layOutDisk,
  layOutIso,
  planTables,
  readMetalImage,
  scanPieces,
  TABLES_SIZE,
  type DiskPlan,
  type DiskSource,
  type Layout,
  type MetalImage,
  type TableParts,
} from '../../iso/index.ts';
import { describeDisk, DISK_PATH } from '../../media/disk-image.ts';
import { describeMedium } from '../../media/describe.ts';
import { describeCatalogs } from '../../media/index-catalogs.ts';
import { INDEX_PATH } from '../../media/media-index.ts';
import { planLiveFiles } from '../../media/tree.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { AbsentImage } from '../../openshift/mirror/closure.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { renderDiskMenu } from '../../openshift/node/recovery.ts';
import { editBootPartition } from '../../openshift/release/boot-partition.ts';
import { describeRelease, type Release } from '../../openshift/release/release.ts';

/* The layout of a disk image: metal image, recovery ISO, data ISO. Nothing is poured for it. */

/** Labels and names of the partitions, by which the booted system and installed hosts find them. */
export const RECOVERY_LABEL = 'agentboot';
const DATA_LABEL = 'agentdata';

/** The part of the metal image that goes to the disk, as it was read. */
export type PreparedMetal = Pick<MetalImage, 'head' | 'end'> & {
  /** Metal image and edited boot file system. */
  readonly files: readonly FileInput[];
  readonly sources: readonly DiskSource[];
};

export type PrepareMetalInput = {
  readonly metal: FileInput;
  /** Further kernel arguments of our menu entry. */
  readonly kargs: readonly string[];
  readonly epoch: number;
};

type MetalTools = { readonly workDir: string; readonly digests: FileDigests };

/** Edits a copy of the boot file system, and reads everything that goes to the disk. */
export const prepareMetal: Stage<PrepareMetalInput, PreparedMetal, MetalTools> = {
  name: 'prepare metal image',
  run: (input, { workDir, digests }, { signal }) =>
    readUnchanged(input.metal, digests, () =>
      useFile(input.metal.path, async (access) => {
        const directory = join(workDir, 'cache', 'metal');
        return readParts(input, { access, directory, signal });
      }),
    ),
};

type Reading = {
  readonly access: RandomAccess;
  readonly directory: string;
  readonly signal: AbortSignal;
};

async function readParts(
  { metal, kargs, epoch }: PrepareMetalInput,
  { access, directory, signal }: Reading,
): Promise<PreparedMetal> {
  const { head, boot, end } = await readMetalImage(access);
  const menu = renderDiskMenu({ stage: 'factory', kargs });
  const common = { metal: access, of: metal.digest, boot, signal };
  const edited = await editBootPartition({ ...common, menu, epoch, directory });
  const before = { offset: TABLES_SIZE, size: boot.offset - TABLES_SIZE };
  const whole = { offset: 0, size: boot.size };
  const kept = await scanPieces(access, before, signal);
  const editedPieces = await useFile(edited.path, (image) => scanPieces(image, whole, signal));
  return {
    head,
    end,
    files: [metal, edited],
    sources: [
      { file: metal.digest, pieces: kept, shift: 0 },
      { file: edited.digest, pieces: editedPieces, shift: boot.offset },
    ],
  };
}

async function useFile<Result>(
  path: string,
  work: (access: RandomAccess) => Promise<Result>,
): Promise<Result> {
  const access = await openRandomAccess(path);
  try {
    return await work(access);
  } finally {
    await access.close();
  }
}

export type DataIsoParts = {
  readonly plan: MirrorPlan;
  readonly release: Release;
  readonly catalogs: readonly SelectedCatalog[];
  /** Images that are missing with the consent of the user. */
  readonly missing?: readonly AbsentImage[];
  /** Seconds since 1970; default: the release's creation. */
  readonly epoch?: number;
  /** Decides the partition tables, of which the ISO has the digests, with the members below. */
  readonly metal: PreparedMetal;
  readonly recovery: Layout;
  /** The base of the recovery ISO. */
  readonly base: FileInput;
  /** GiB of the disk; absent: as small as possible. */
  readonly size?: number;
};

/** Lays out the ISO of partition `agentdata`: the registry, its list of images, and the index. */
export const layOutDataIso: Stage<DataIsoParts, Layout, { readonly cache: BlobCache }> = {
  name: 'lay out data ISO',
  async run(parts, { cache }) {
    const { plan, release, metal } = parts;
    const files = await planLiveFiles({ plan, release, cache });
    const layOut = (disk: Uint8Array): Layout =>
      renderDataIso(parts, [
        { path: DISK_PATH, content: { kind: 'bytes', bytes: disk } },
        ...files,
      ]);
    // The tables depend on the size of this ISO, which does not depend on the digests in it.
    const none = new Uint8Array(TABLES_SIZE);
    const { size } = layOut(describeDisk(metal, { primary: none, backup: none }));
    const isos = { recovery: parts.recovery.size, data: size };
    const layout = layOut(describeDisk(metal, planTables(tablePartsOf(parts), isos)));
    if (layout.size !== size) throw new Error('the size of a data ISO depends on digests');
    return layout;
  },
};

const renderDataIso = (
  parts: DataIsoParts,
  files: Parameters<typeof layOutIso>[0]['files'],
): Layout => {
  const { plan, release, epoch = createdAt(release) } = parts;
  return layOutIso({
    base: createEmptyImage({ volumeId: DATA_LABEL, directories: [], epoch }),
    files,
    remove: [],
    patches: [],
    epoch,
    index: {
      path: INDEX_PATH,
      render: (extents, areas) =>
        describeMedium({
          product: 'data-iso',
          plan,
          extents,
          areas,
          releases: [release],
          catalogs: describeCatalogs(parts.catalogs),
          missing: parts.missing?.map(({ image }) => image) ?? [],
          release: describeRelease(release),
        }),
    },
  });
};

const tablePartsOf = ({
  metal,
  base,
  size,
}: Pick<DiskImageParts, 'metal' | 'base' | 'size'>): TableParts => ({
  metal,
  madeFrom: [...metal.files, base].map(({ digest }) => digest),
  ...withoutUndefined({ gib: size }),
});

/** Seconds since 1970. */
export const createdAt = ({ created }: Pick<Release, 'created'>): number =>
  Math.floor(Date.parse(created) / 1000);

export type DiskImageParts = {
  readonly metal: PreparedMetal;
  readonly recovery: Layout;
  /** The base of the recovery ISO. */
  readonly base: FileInput;
  readonly data: Layout;
  /** GiB; absent: as small as possible. */
  readonly size?: number;
};

/** `bootEnd`: end of the boot file system; `written`: bytes that are not zeros. */
export type DiskLayout = Layout & {
  readonly partitions: DiskPlan;
  readonly bootEnd: number;
  readonly written: number;
};

export const layOutDiskImage: Stage<DiskImageParts, DiskLayout, object> = {
  name: 'lay out disk image',
  run(parts) {
    const { metal, recovery, base, data } = parts;
    const { plan: partitions, ...layout } = layOutDisk({
      ...tablePartsOf(parts),
      sources: metal.sources,
      recovery: { layout: recovery, base: base.digest },
      data: { layout: data },
    });
    const written = layout.extents
      .filter(({ source }) => source.kind !== 'zero')
      .reduce((sum, extent) => sum + extent.size, 0);
    return Promise.resolve({ ...layout, partitions, bootEnd: metal.end, written });
  },
};
