import {
  encodeDirectoryRecord,
  FILE_FLAG,
  type DirectoryRecord,
} from '../../src/iso/directory/record.ts';
import { encodePathTable } from '../../src/iso/volume/path-table.ts';
import {
  encodeRockRidge,
  encodeSharingProtocol,
  type PosixAttributes,
} from '../../src/iso/directory/rock-ridge.ts';
import { encodeSystemUse } from '../../src/iso/directory/system-use.ts';
import {
  encodePrimaryVolumeDescriptor,
  encodeTerminator,
  type PrimaryVolumeDescriptor,
} from '../../src/iso/volume/descriptor.ts';

export const ROOT = 20;
export const SUBDIRECTORY = 21;
export const CONTINUATION = 22;
export const SECTORS = 24;
export const POSIX: PosixAttributes = { mode: 0o100644, links: 1, uid: 0, gid: 0 };

export const ascii = (text: string): Uint8Array => Buffer.from(text, 'latin1');

export function record(change: Partial<DirectoryRecord>): DirectoryRecord {
  return {
    identifier: ascii('FILE.;1'),
    extent: 23,
    size: 4,
    recordedAt: undefined,
    flags: 0,
    systemUse: new Uint8Array(0),
    ...change,
  };
}

export const named = (name: string, change: Partial<DirectoryRecord> = {}): DirectoryRecord =>
  record({ systemUse: encodeSystemUse(encodeRockRidge({ ...POSIX, name })), ...change });

export const directoryRecord = (
  extent: number,
  change: Partial<DirectoryRecord> = {},
): DirectoryRecord =>
  record({ identifier: ascii('DIR'), flags: FILE_FLAG.directory, extent, size: 2048, ...change });

const self = (sector: number): DirectoryRecord => ({
  ...directoryRecord(sector),
  identifier: Uint8Array.of(0),
  ...(sector === ROOT && {
    systemUse: encodeSystemUse([
      encodeSharingProtocol(),
      ...encodeRockRidge({ ...POSIX, mode: 0o40755 }),
    ]),
  }),
});

export type ImageOptions = {
  /** Behind those of the root itself and its parent. */
  readonly root?: readonly DirectoryRecord[];
  readonly subdirectory?: readonly DirectoryRecord[];
  readonly continuation?: Uint8Array;
  readonly volume?: Partial<PrimaryVolumeDescriptor>;
  /** At last: bytes put at an offset. */
  readonly patches?: readonly (readonly [number, Uint8Array])[];
};

/** The smallest image: descriptors, path tables, a root, a directory, a continuation area, a file. */
export function makeImage(options: ImageOptions = {}): Buffer {
  const image = Buffer.alloc(SECTORS * 2048);
  const put = (sector: number, bytes: Uint8Array): void => {
    image.set(bytes, sector * 2048);
  };
  const table = [{ identifier: Uint8Array.of(0), extent: ROOT, parent: 1 }];
  put(16, encodePrimaryVolumeDescriptor({ ...volume(), ...options.volume }));
  put(17, encodeTerminator());
  put(18, encodePathTable(table, 'little'));
  put(19, encodePathTable(table, 'big'));
  put(ROOT, encodeRecords(ROOT, options.root ?? []));
  put(SUBDIRECTORY, encodeRecords(SUBDIRECTORY, options.subdirectory ?? []));
  put(CONTINUATION, options.continuation ?? new Uint8Array(0));
  put(23, ascii('data'));
  for (const [offset, bytes] of options.patches ?? []) image.set(bytes, offset);
  return image;
}

const encodeRecords = (sector: number, records: readonly DirectoryRecord[]): Buffer =>
  Buffer.concat(
    [self(sector), { ...directoryRecord(ROOT), identifier: Uint8Array.of(1) }, ...records].map(
      (each) => encodeDirectoryRecord(each),
    ),
  );

export const volume = (): PrimaryVolumeDescriptor => ({
  systemId: '',
  volumeId: 'HOSTILE',
  volumeSpaceSize: SECTORS,
  volumeSetSize: 1,
  volumeSequence: 1,
  logicalBlockSize: 2048,
  pathTableSize: 10,
  lPathTable: 18,
  optionalLPathTable: 0,
  mPathTable: 19,
  optionalMPathTable: 0,
  rootRecord: { ...self(ROOT), systemUse: new Uint8Array(0) },
  volumeSetId: '',
  publisherId: '',
  preparerId: '',
  applicationId: '',
  copyrightFile: '',
  abstractFile: '',
  bibliographicFile: '',
  createdAt: undefined,
  modifiedAt: undefined,
  expiresAt: undefined,
  effectiveAt: undefined,
  fileStructureVersion: 1,
  applicationUse: new Uint8Array(512),
});
