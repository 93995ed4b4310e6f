import type { BaseDirectory } from './base/base-tree.ts';
import { placeStructures, layOutStructures } from './check/structure-extents.ts';
import { planDirectoryArea } from './directory/directory-area.ts';
import { FILE_FLAG } from './directory/directory-record.ts';
import { assignIdentifiers } from './directory/names.ts';
import { encodeRockRidge } from './directory/rock-ridge.ts';
import { SECTOR_SIZE } from './extent.ts';
import { collectContents, placeContents, sectionsAt } from './place-files.ts';
import { mergeTree, type TreeLeaf } from './tree.ts';
import { encodePrimaryVolumeDescriptor, encodeTerminator } from './volume/volume-descriptor.ts';
import type { RewrittenVolume } from './volume/volume-descriptors.ts';

export type SmallIso = {
  /** ECMA-119 8.4.6, as it is: lower case stays, though its characters would be upper case. */
  readonly volumeId: string;
  /** Absolute paths of directories that are there even when empty. */
  readonly directories: readonly string[];
  readonly files: readonly {
    /** Absolute. */
    readonly path: string;
    readonly bytes: Uint8Array;
    /** Permission bits; default 0o644. */
    readonly mode?: number;
  }[];
  /** Seconds since 1970: every time on the volume. */
  readonly epoch: number;
};

/** ECMA-119 6.2.1: behind the System Area. */
const DESCRIPTOR_SECTOR = 16;
const STRUCTURES_SECTOR = DESCRIPTOR_SECTOR + 2;
const DIRECTORY_MODE = 0o040755;
const MAX_VOLUME_ID = 32;
/** busybox takes a medium that ends before 68 KiB for an empty drive, and looks for no label on it. */
const MIN_SECTORS = 64;

/**
 * A whole ISO 9660 image with Rock Ridge, without Joliet, El Torito or partitions: same input, same
 * bytes. Takes about 40 KiB beyond the files, each of which ends at a sector.
 *
 * @throws IntegrityError `layout.conflict`; ConfigError `layout.name-too-long`
 */
export function encodeSmallIso({ volumeId, directories, files, epoch }: SmallIso): Uint8Array {
  if (volumeId.length > MAX_VOLUME_ID) throw new RangeError(`volume id ${volumeId} is too long`);
  const base = directoryOf('', '\0', { directories, epoch });
  const added = files.map(({ path, bytes, mode }) => ({
    ...{ path, content: { kind: 'bytes', bytes } as const },
    ...(mode !== undefined && { mode }),
  }));
  const tree = mergeTree(base, { files: added, remove: [], epoch });
  const area = planDirectoryArea(tree, () => 1);
  const places = placeStructures(area, STRUCTURES_SECTOR * SECTOR_SIZE);
  const contents = collectContents(tree);
  const { placed, end } = placeContents(contents.small, places.end);
  const offsets = new Map(placed.map(({ digest, offset }) => [digest, offset]));
  const offsetOf = (file: TreeLeaf): number => {
    const digest = contents.digestOfFile.get(file);
    return (digest && offsets.get(digest)) ?? 0;
  };
  const { extents, volume } = layOutStructures(area, {
    places,
    sectionsOf: (file) => sectionsAt(offsetOf(file), sizeOf(file)),
  });
  const sectors = Math.max(MIN_SECTORS, Math.ceil(end / SECTOR_SIZE));
  const descriptor = encodeDescriptor({ ...volume, sectors }, { volumeId, epoch });
  const image = new Uint8Array(sectors * SECTOR_SIZE);
  image.set(descriptor, DESCRIPTOR_SECTOR * SECTOR_SIZE);
  image.set(encodeTerminator(), (DESCRIPTOR_SECTOR + 1) * SECTOR_SIZE);
  for (const { source, offset } of [...extents, ...placed]) {
    if (source.kind === 'bytes') image.set(source.bytes, offset);
  }
  return image;
}

type Named = { readonly directories: readonly string[]; readonly epoch: number };

/** The directory at `path` ('' is the root) with those below it, as if a base had them. */
function directoryOf(
  path: string,
  identifier: string,
  { directories, epoch }: Named,
): BaseDirectory {
  const below = directories.filter((other) => other.startsWith(`${path}/`));
  const depth = path.length + 1;
  const names = [...new Set(below.map((other) => other.slice(depth).split('/')[0] ?? ''))].sort();
  const identifiers = assignIdentifiers(
    [],
    names.map((name) => ({ name, kind: 'directory' })),
  );
  const name = path.slice(path.lastIndexOf('/') + 1);
  const time = new Date(epoch * 1000);
  const times = { modified: time, accessed: time, attributesChanged: time };
  const posix = { mode: DIRECTORY_MODE, links: 2 + names.length, uid: 0, gid: 0, times };
  return {
    kind: 'directory',
    ...{ name, identifier, flags: FILE_FLAG.directory, recordedAt: time },
    entries: encodeRockRidge(path === '' ? posix : { ...posix, name }),
    children: names.map((child) =>
      directoryOf(`${path}/${child}`, identifiers.get(child) ?? child, { directories, epoch }),
    ),
  };
}

const sizeOf = ({ data }: TreeLeaf): number =>
  data.kind === 'new' && data.content.kind === 'bytes' ? data.content.bytes.length : 0;

/** ECMA-119 8.4. */
function encodeDescriptor(
  { sectors, pathTableSize, lPathTable, mPathTable, root }: RewrittenVolume,
  { volumeId, epoch }: Pick<SmallIso, 'volumeId' | 'epoch'>,
): Uint8Array {
  const time = new Date(epoch * 1000);
  return encodePrimaryVolumeDescriptor({
    ...{ systemId: 'LINUX', volumeId, volumeSetId: '', publisherId: '', preparerId: '' },
    ...{ applicationId: 'SEALIFT', copyrightFile: '', abstractFile: '', bibliographicFile: '' },
    ...{ volumeSpaceSize: sectors, volumeSetSize: 1, volumeSequence: 1 },
    ...{ logicalBlockSize: SECTOR_SIZE, fileStructureVersion: 1 },
    ...{ pathTableSize, lPathTable, mPathTable, optionalLPathTable: 0, optionalMPathTable: 0 },
    ...{ createdAt: time, modifiedAt: time, expiresAt: undefined, effectiveAt: undefined },
    rootRecord: {
      identifier: Uint8Array.of(0),
      extent: root.sector,
      size: root.size,
      recordedAt: time,
      flags: FILE_FLAG.directory,
      systemUse: new Uint8Array(0),
    },
    applicationUse: new Uint8Array(512),
  });
}
