import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { growHybrid, sizeOfImage } from '../boot/hybrid.ts';
import { planDirectoryArea, type DirectoryArea } from '../directory/area.ts';
import {
  roundUp,
  SECTOR_SIZE,
  type Extent,
  type Layout,
  type TreeFile,
  bytesExtent,
  fillGaps,
  type Places,
} from '../extent.ts';
import { placeAreas } from '../places/areas.ts';
import type { FileSection } from '../read/base-tree.ts';
import { rewriteDescriptors } from '../volume/path-table.ts';
import { createEmptyImage, type EmptyVolume } from './empty-image.ts';
import { layOutBase, type BasePatch, type BaseImage } from './scan.ts';
import {
  fillIndex,
  measureIndex,
  placeIndex,
  type IndexFile,
  collectContents,
  placeContent,
  sectionsAt,
  sizeOfContent,
  type Contents,
  layOutStructures,
  placeStructures,
  sizeOfStructures,
} from './structures.ts';
import { mergeTree, type TreeLeaf } from './tree.ts';

export type LayoutOptions = {
  readonly base: LayoutBase;
  readonly files: readonly TreeFile[];
  /** Rock Ridge paths of the base that the new tree does not have; absent ones are ignored. */
  readonly remove: readonly string[];
  readonly patches: readonly BasePatch[];
  /** Seconds since 1970: the times of everything new. */
  readonly epoch: number;
  readonly index?: IndexFile;
  /** Smallest size of the volume in bytes; default: no limit. */
  readonly minSize?: number;
  /** Places of an earlier layout, whose bytes stay in place as far as possible. */
  readonly places?: Places;
};

/** Base of an ISO; it is not read. */
type LayoutBase = Omit<BaseImage, 'path' | 'digest'>;

const MAX_SECTORS = 0xffff_ffff;

/** Parts whose sizes do not depend on their places. */
type Parts = {
  readonly options: LayoutOptions;
  readonly contents: Contents;
  readonly area: DirectoryArea;
};

/**
 * Every byte of an ISO that has the base's bytes at their offsets and, after them, a new directory tree, new
 * small files and blobs. Reads nothing; same options, same layout.
 *
 * | what | where |
 * |---|---|
 * | base | from 0; partition tables and volume descriptors rewritten |
 * | path tables, directories, continuation area | after the base |
 * | small files, then the index | each at a sector |
 * | small blobs, then the others | each at a multiple of BLOB_ALIGNMENT |
 * | backup GPT | at the end, if the base has one |
 *
 * @throws IntegrityError `layout.conflict`, `layout.size-conflict`, `iso.malformed-gpt`; ConfigError
 * `layout.name-too-long`, `layout.too-large`
 */
export function layOutIso(options: LayoutOptions): Layout {
  const parts = prepare(options);
  const { index } = options;
  if (!index) return assemble(parts, 0);
  const indexSize = measureIndex(index, assemble(parts, 1).extents);
  return fillIndex(index, assemble(parts, indexSize));
}

function prepare(options: LayoutOptions): Parts {
  const { base, files, remove, epoch, index } = options;
  // Empty for now, so that it takes no room among the small files.
  const content = { kind: 'bytes', bytes: new Uint8Array(0) } as const;
  const allFiles = index ? [...files, { path: index.path, content }] : files;
  const tree = mergeTree(base.root, { files: allFiles, remove, epoch });
  const area = planDirectoryArea(tree, (file) => sectionsOf(file, 0).length);
  return { options, contents: collectContents(tree), area };
}

/** Sections of a file whose new data, if it has any, starts at byte `offset`. */
function sectionsOf({ data }: TreeLeaf, offset: number): readonly FileSection[] {
  if (data.kind === 'base') return data.sections;
  return sectionsAt(offset, sizeOfContent(data.content));
}

/** The layout with `indexSize` bytes for the index, not yet filled. */
function assemble({ options, contents, area }: Parts, indexSize: number): Layout {
  const { base, patches, remove, files, minSize = 0, index: indexFile } = options;
  const { areas, offsets, end } = placeAreas(
    {
      base: base.size,
      structures: sizeOfStructures(area),
      index: indexSize,
      files: contents.small,
      blobs: contents.blobs,
    },
    options.places,
  );
  const places = placeStructures(area, areas.structures);
  const index = indexFile && placeIndex(indexFile, { offset: areas.index, size: indexSize });
  const dataEnd = roundUp(Math.max(end, minSize), SECTOR_SIZE);
  const size = sizeOfImage(base.systemArea, dataEnd);
  requireAddressable(size);
  const { systemArea, tail } = growHybrid(base.systemArea, base.size, size);
  const offsetOf = (file: TreeLeaf): number => {
    if (index?.paths.includes(file.path)) return index.offset;
    const digest = contents.digestOfFile.get(file);
    return (digest && offsets.get(digest)) ?? 0;
  };
  const structures = layOutStructures(area, {
    places,
    sectionsOf: (file) =>
      index?.paths.includes(file.path)
        ? sectionsAt(index.offset, index.size)
        : sectionsOf(file, offsetOf(file)),
  });
  const sectors = sectorsOfVolume(base, { dataEnd, size });
  const descriptors = rewriteDescriptors(base.descriptors, { ...structures.volume, sectors });
  const gone = [...remove, ...files.map(({ path }) => path), ...(index?.paths ?? [])];
  const placed = [...contents.small, ...contents.blobs].flatMap((content) =>
    placeContent(content, offsets.get(content.digest) ?? 0),
  );
  const extents: Extent[] = [
    ...layOutBase(base, { systemArea, descriptors, patches, gone }),
    ...structures.extents,
    ...placed,
    ...(index ? [index] : []),
    ...(tail ? [bytesExtent(tail.offset, tail.bytes)] : []),
  ];
  extents.sort((a, b) => a.offset - b.offset);
  return { size, extents: fillGaps(extents, size), ...(indexFile && { areas }) };
}

/** Sectors are numbered with 32 bits. */
function requireAddressable(size: number): void {
  if (size / SECTOR_SIZE <= MAX_SECTORS) return;
  throw new ConfigError(
    'layout.too-large',
    `ISO would have ${size} bytes, but ISO 9660 ends at ${MAX_SECTORS * SECTOR_SIZE}`,
    { hint: 'mirror fewer images' },
  );
}

/** Sectors of the volume. Padding and backup GPT belong to it if they did in the base: writers differ. */
function sectorsOfVolume(
  { descriptors, size: oldSize }: LayoutBase,
  { dataEnd, size }: { dataEnd: number; size: number },
): number {
  const primary = descriptors.find((descriptor) => descriptor.kind === 'primary');
  const coversFile = primary?.volume.volumeSpaceSize === Math.floor(oldSize / SECTOR_SIZE);
  return (coversFile ? size : dataEnd) / SECTOR_SIZE;
}

export type SmallIso = EmptyVolume & {
  readonly files: readonly {
    /** Absolute. */
    readonly path: string;
    readonly bytes: Uint8Array;
    /** Permission bits; default 0o644. */
    readonly mode?: number;
  }[];
};

/** busybox takes a medium that ends before 68 KiB for an empty drive, and does not look for its label. */
const MIN_SIZE = 64 * SECTOR_SIZE;

/**
 * A whole ISO 9660 image with Rock Ridge, without Joliet, El Torito or partitions: same input, same
 * bytes. Takes about 40 KiB beyond the files, each of which ends at a sector.
 *
 * @throws IntegrityError `layout.conflict`; ConfigError `layout.name-too-long`
 */
export function encodeSmallIso({ files, ...volume }: SmallIso): Uint8Array {
  const { size, extents } = layOutIso({
    base: createEmptyImage(volume),
    files: files.map(({ path, bytes, mode }) => ({
      path,
      content: { kind: 'bytes', bytes } as const,
      ...withoutUndefined({ mode }),
    })),
    remove: [],
    patches: [],
    epoch: volume.epoch,
    minSize: MIN_SIZE,
  });
  const image = new Uint8Array(size);
  for (const { source, offset } of extents) {
    if (source.kind === 'bytes') image.set(source.bytes, offset);
  }
  return image;
}
