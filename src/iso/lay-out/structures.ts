import { digestOf, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import {
  encodeDirectories,
  pathTableOf,
  sizeOfArea,
  type DirectoryArea,
} from '../directory/area.ts';
import {
  SECTOR_SIZE,
  type Extent,
  bytesExtent,
  BLOB_ALIGNMENT,
  roundUp,
  type Layout,
  type Areas,
  zeroExtent,
  type ExtentSource,
  type ImageContent,
  type TreeFile,
} from '../extent.ts';
import type { FileSection } from '../read/base-tree.ts';
import { encodePathTable, type RewrittenVolume } from '../volume/path-table.ts';
import type { TreeLeaf, TreeDirectory } from './tree.ts';

/** First sectors of path tables and directories. */
export type StructurePlaces = {
  readonly lPathTable: number;
  readonly mPathTable: number;
  readonly directories: number;
};

/** Bytes of path tables, directories and continuation area. */
export const sizeOfStructures = (area: DirectoryArea): number =>
  2 * sectorsOfTable(area) * SECTOR_SIZE + sizeOfArea(area);

/** `start` is in bytes, at a sector. */
export function placeStructures(area: DirectoryArea, start: number): StructurePlaces {
  const lPathTable = start / SECTOR_SIZE;
  const mPathTable = lPathTable + sectorsOfTable(area);
  return { lPathTable, mPathTable, directories: mPathTable + sectorsOfTable(area) };
}

const sectorsOfTable = ({ pathTableSize }: DirectoryArea): number =>
  Math.ceil(pathTableSize / SECTOR_SIZE);

/** Both path tables and the directories as bytes, and the fields of the volume descriptor for them. */
export function layOutStructures(
  area: DirectoryArea,
  {
    places,
    sectionsOf,
  }: { places: StructurePlaces; sectionsOf: (file: TreeLeaf) => readonly FileSection[] },
): { extents: Extent[]; volume: Omit<RewrittenVolume, 'sectors'> } {
  const { lPathTable, mPathTable, directories } = places;
  const table = pathTableOf(area, directories);
  const bytes = encodeDirectories(area, { sector: directories, sectionsOf });
  const rootSize = area.directories[0]?.size ?? 0;
  return {
    extents: [
      bytesExtent(lPathTable * SECTOR_SIZE, encodePathTable(table, 'little')),
      bytesExtent(mPathTable * SECTOR_SIZE, encodePathTable(table, 'big')),
      bytesExtent(directories * SECTOR_SIZE, bytes),
    ],
    volume: {
      pathTableSize: area.pathTableSize,
      lPathTable,
      mPathTable,
      root: { sector: directories, size: rootSize },
    },
  };
}

/** A file that lists the extents of the ISO it is in. */
export type IndexFile = {
  /** Rock Ridge path. */
  readonly path: string;
  /**
   * Called twice: with offsets and sizes that have more digits than the real ones, then with the real ones. The
   * file's own extent has no digest. Its text ends in white space to reach the first result's size, so its
   * format must allow that.
   */
  readonly render: (extents: readonly Extent[], areas: Areas) => Uint8Array;
};

/** Past the last byte that 32 bits of sector numbers reach. */
const LARGEST_NUMBER = 9_999_999_999_999;

/** The index, not yet rendered. */
export const placeIndex = (
  { path }: IndexFile,
  place: { readonly offset: number; readonly size: number },
): Extent => ({ ...place, source: { kind: 'bytes', bytes: new Uint8Array(0) }, paths: [path] });

const WIDEST_AREAS: Areas = {
  structures: LARGEST_NUMBER,
  files: LARGEST_NUMBER,
  index: LARGEST_NUMBER,
  smallBlobs: LARGEST_NUMBER,
  blobs: LARGEST_NUMBER,
};

/** Bytes that suffice for the index, regardless of where its size moves the extents. */
export function measureIndex(index: IndexFile, extents: readonly Extent[]): number {
  const widest = [...extents, zeroExtent(0, 1), zeroExtent(0, 1)].map((extent) => ({
    ...extent,
    offset: LARGEST_NUMBER,
    size: LARGEST_NUMBER,
  }));
  const { length } = index.render(widest, WIDEST_AREAS);
  return roundUp(length + 1, BLOB_ALIGNMENT);
}

/** The layout with the index rendered into its reserved extent. */
export function fillIndex(index: IndexFile, layout: Layout): Layout {
  const { areas } = layout;
  if (!areas) throw new Error('a layout with an index has areas');
  const extents = layout.extents.map((extent) => {
    if (!extent.paths.includes(index.path)) return extent;
    const text = index.render(layout.extents, areas);
    const bytes = padText(text, extent.size);
    return { ...extent, digest: digestOf(bytes), source: { kind: 'bytes' as const, bytes } };
  });
  return { ...layout, extents };
}

/** Spaces, then a newline. */
function padText(text: Uint8Array, size: number): Uint8Array {
  if (text.length > size) throw new Error(`index has ${text.length} bytes, not at most ${size}`);
  const bytes = new Uint8Array(size).fill(0x20);
  bytes.set(text);
  if (text.length < size) bytes[size - 1] = 0x0a;
  return bytes;
}

/** Bytes that one or more new files consist of. */
export type UniqueContent = {
  readonly digest: Digest;
  readonly size: number;
  readonly source: ExtentSource | ImageContent;
  /** Sorted. */
  readonly paths: readonly string[];
};

/** Contents of new files, each once, regardless of the number of files that have it. */
export type Contents = {
  /** In the order of their first paths. */
  readonly small: readonly UniqueContent[];
  /** In the order of their first paths. */
  readonly blobs: readonly UniqueContent[];
  readonly digestOfFile: ReadonlyMap<TreeLeaf, Digest>;
};

type Content = Omit<UniqueContent, 'paths'>;

/** The largest size in one directory record (ECMA-119 9.1.4: 32 bits) in whole sectors, so without gaps. */
const MAX_SECTION_SIZE = 2 ** 32 - SECTOR_SIZE;

/** Collects the contents that must be placed. Empty files have no content. */
export function collectContents(root: TreeDirectory): Contents {
  const found = new Map<Digest, Content & { paths: string[] }>();
  const digestOfFile = new Map<TreeLeaf, Digest>();
  for (const file of newFilesOf(root)) {
    if (file.data.kind !== 'new') continue;
    const content = describeContent(file.data.content);
    if (content.size === 0) continue;
    digestOfFile.set(file, content.digest);
    const known = found.get(content.digest);
    if (known && known.size !== content.size) throw sizeConflict(file.path, content, known);
    const paths = known?.paths ?? [];
    paths.push(file.path);
    found.set(content.digest, { ...preferBytes(known, content), paths });
  }
  for (const { paths } of found.values()) paths.sort();
  const unique = [...found.values()].sort((a, b) =>
    (a.paths[0] ?? '') < (b.paths[0] ?? '') ? -1 : 1,
  );
  const small = unique.filter(({ source }) => source.kind === 'bytes');
  const blobs = unique.filter(({ source }) => source.kind !== 'bytes');
  return { small, blobs, digestOfFile };
}

/** Prefers bytes in memory, which need not be fetched. */
function preferBytes(known: Content | undefined, found: Content): Content {
  return known?.source.kind === 'bytes' ? known : found;
}

const sizeConflict = (path: string, found: Content, known: Content): IntegrityError =>
  new IntegrityError(
    'layout.size-conflict',
    `blob ${found.digest} of ${path} should have ${found.size} bytes here, but ${known.size} elsewhere`,
    { expected: String(known.size), found: String(found.size) },
  );

function* newFilesOf(directory: TreeDirectory): Generator<TreeLeaf> {
  for (const child of directory.children) {
    if (child.kind === 'directory') yield* newFilesOf(child);
    else if (child.data.kind === 'new') yield child;
  }
}

function describeContent(content: TreeFile['content']): Content {
  const size = sizeOfContent(content);
  if (content.kind === 'blob') return { digest: content.digest, size, source: { kind: 'blob' } };
  if (content.kind === 'image') return { digest: identify(content), size, source: content };
  return { digest: digestOf(content.bytes), size, source: content };
}

export function sizeOfContent(content: TreeFile['content']): number {
  if (content.kind === 'image') return content.layout.size;
  return content.kind === 'blob' ? content.size : content.bytes.length;
}

/** Stands for the digest of the image, which is not known before the pour. */
const identify = ({ layout: { size, extents } }: ImageContent): Digest =>
  digestOf(JSON.stringify([size, extents.map(({ offset, digest }) => [offset, digest])]));

/** The extents of a content at a place. Of an image, the first one has the paths. */
export function placeContent(
  { source, ...content }: UniqueContent,
  offset: number,
): readonly Extent[] {
  if (source.kind !== 'image') return [{ ...content, source, offset }];
  return source.layout.extents
    .filter((extent) => extent.source.kind !== 'zero')
    .map((extent, index) => ({
      ...extent,
      offset: extent.offset + offset,
      paths: index === 0 ? content.paths : [],
    }));
}

/** The sections of contiguous data: one, and more past 4 GiB (ECMA-119 6.5.1, level 3). */
export function sectionsAt(offset: number, size: number): FileSection[] {
  const sections: FileSection[] = [];
  for (let done = 0; done === 0 || done < size; done += MAX_SECTION_SIZE) {
    sections.push({
      sector: (offset + done) / SECTOR_SIZE,
      size: Math.min(size - done, MAX_SECTION_SIZE),
    });
  }
  return sections;
}
