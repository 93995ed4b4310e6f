import { open } from 'node:fs/promises';
import {
  encodeDirectoryRecord,
  FILE_FLAG,
  type DirectoryRecord,
} from '../../src/iso/directory/record.ts';
import { encodeRockRidge, encodeSharingProtocol } from '../../src/iso/directory/rock-ridge.ts';
import { encodeSystemUse } from '../../src/iso/directory/system-use.ts';
import {
  encodePrimaryVolumeDescriptor,
  encodeTerminator,
} from '../../src/iso/volume/descriptor.ts';
import { directoryRecord, named, POSIX, ROOT, volume } from './raw-image.ts';

export const SECTOR = 2048;

/** Bytes at a sector; what nothing is put on stays a hole of the file. */
export type Piece = readonly [sector: number, bytes: Uint8Array];

/** Records of a directory in whole sectors: none crosses the end of one (ECMA-119 6.8.1.1). */
export function packRecords(records: Iterable<DirectoryRecord>): Buffer {
  const parts: Uint8Array[] = [];
  let used = 0;
  for (const record of records) {
    const bytes = encodeDirectoryRecord(record);
    const at = used % SECTOR;
    const gap = at + bytes.length > SECTOR ? SECTOR - at : 0;
    parts.push(new Uint8Array(gap), bytes);
    used += gap + bytes.length;
  }
  parts.push(new Uint8Array((SECTOR - (used % SECTOR)) % SECTOR));
  return Buffer.concat(parts);
}

/** A directory's own record and its parent's, then `records`. */
export function packDirectory(
  sector: number,
  size: number,
  records: Iterable<DirectoryRecord>,
): Buffer {
  const systemUse =
    sector === ROOT
      ? encodeSystemUse([encodeSharingProtocol(), ...encodeRockRidge({ ...POSIX, mode: 0o40755 })])
      : new Uint8Array(0);
  const own = { ...directoryRecord(sector), size, systemUse };
  return packRecords([
    { ...own, identifier: Uint8Array.of(0) },
    { ...directoryRecord(ROOT), identifier: Uint8Array.of(1) },
    ...records,
  ]);
}

/** A record of a directory with a Rock Ridge name. */
export const namedDirectory = (name: string, extent: number, size = SECTOR): DirectoryRecord =>
  named(name, {
    extent,
    size,
    flags: FILE_FLAG.directory,
    systemUse: encodeSystemUse(encodeRockRidge({ ...POSIX, mode: 0o40755, name })),
  });

/** Writes an image of `sectors` sectors whose root is at sector 20 and has `rootSize` bytes. */
export async function writeSparseImage(
  path: string,
  image: {
    readonly sectors: number;
    readonly rootSize?: number;
    readonly volumeId?: string;
    readonly pieces: readonly Piece[];
  },
): Promise<string> {
  const { sectors, rootSize = SECTOR, volumeId = 'cluster-config', pieces } = image;
  const file = await open(path, 'w');
  try {
    await file.truncate(sectors * SECTOR);
    const { rootRecord, ...rest } = volume();
    const primary = encodePrimaryVolumeDescriptor({
      ...rest,
      volumeId,
      volumeSpaceSize: sectors,
      rootRecord: { ...rootRecord, size: rootSize },
    });
    const all: readonly Piece[] = [[16, primary], [17, encodeTerminator()], ...pieces];
    for (const [sector, bytes] of all) await file.write(bytes, 0, bytes.length, sector * SECTOR);
  } finally {
    await file.close();
  }
  return path;
}
