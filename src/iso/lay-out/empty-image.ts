import { digestOf } from '../../base/digest.ts';
import { SYSTEM_AREA_SIZE } from '../boot/hybrid.ts';
import { assignIdentifiers } from '../directory/names.ts';
import { FILE_FLAG } from '../directory/record.ts';
import { encodeRockRidge } from '../directory/rock-ridge.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { BaseDirectory } from '../read/base-tree.ts';
import {
  decodeVolumeDescriptor,
  encodePrimaryVolumeDescriptor,
  encodeTerminator,
} from '../volume/descriptor.ts';
import type { BaseImage } from './scan.ts';

export type EmptyVolume = {
  /** ECMA-119 8.4.6, at most 32 bytes. Written as given, although the standard has upper case only. */
  readonly volumeId: string;
  /** Absolute paths of directories that exist even if they are empty. */
  readonly directories: readonly string[];
  /** Seconds since 1970: every time on the volume. */
  readonly epoch: number;
};

const DIRECTORY_MODE = 0o040755;
const MAX_VOLUME_ID = 32;

/** Base for media without a base ISO: a volume with Rock Ridge, without files, boot catalog and partitions. */
export function createEmptyImage(volume: EmptyVolume): Omit<BaseImage, 'path' | 'digest'> {
  const { volumeId } = volume;
  if (Buffer.byteLength(volumeId) > MAX_VOLUME_ID) {
    throw new RangeError(`volume id ${volumeId} is too long`);
  }
  const sectors = [encodeDescriptor(volume), encodeTerminator()];
  const bytes = Buffer.concat(sectors);
  const place = { offset: SYSTEM_AREA_SIZE, size: bytes.length, paths: [] };
  return {
    size: SYSTEM_AREA_SIZE + bytes.length,
    // The System Area has no piece: it is zeros, like everything that no extent covers.
    pieces: [{ ...place, digest: digestOf(bytes), bytes }],
    systemArea: new Uint8Array(SYSTEM_AREA_SIZE),
    descriptors: sectors.map(decodeVolumeDescriptor),
    root: directoryOf('', '\0', volume),
  };
}

type Named = Pick<EmptyVolume, 'directories' | 'epoch'>;

/** The directory at `path` ('' is the root) with those below it. */
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
    name,
    identifier,
    flags: FILE_FLAG.directory,
    recordedAt: time,
    entries: encodeRockRidge(path === '' ? posix : { ...posix, name }),
    children: names.map((child) =>
      directoryOf(`${path}/${child}`, identifiers.get(child) ?? child, { directories, epoch }),
    ),
  };
}

/** ECMA-119 8.4; a layout fills in the places. */
function encodeDescriptor({ volumeId, epoch }: EmptyVolume): Uint8Array {
  const time = new Date(epoch * 1000);
  return encodePrimaryVolumeDescriptor({
    systemId: 'LINUX',
    volumeId,
    volumeSetId: '',
    publisherId: '',
    preparerId: '',
    applicationId: 'SEALIFT',
    copyrightFile: '',
    abstractFile: '',
    bibliographicFile: '',
    volumeSpaceSize: 0,
    volumeSetSize: 1,
    volumeSequence: 1,
    logicalBlockSize: SECTOR_SIZE,
    fileStructureVersion: 1,
    pathTableSize: 0,
    lPathTable: 0,
    mPathTable: 0,
    optionalLPathTable: 0,
    optionalMPathTable: 0,
    createdAt: time,
    modifiedAt: time,
    expiresAt: undefined,
    effectiveAt: undefined,
    rootRecord: {
      identifier: Uint8Array.of(0),
      extent: 0,
      size: 0,
      recordedAt: time,
      flags: FILE_FLAG.directory,
      systemUse: new Uint8Array(0),
    },
    applicationUse: new Uint8Array(512),
  });
}
