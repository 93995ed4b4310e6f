import { encodeDirectoryRecord, FILE_FLAG } from '../../src/iso/directory/record.ts';
import { encodePathTable } from '../../src/iso/volume/path-table.ts';
import {
  encodeExtensionReference,
  encodeRockRidge,
  encodeSharingProtocol,
  type PosixAttributes,
} from '../../src/iso/directory/rock-ridge.ts';
import { encodeContinuation, encodeSystemUse } from '../../src/iso/directory/system-use.ts';
import {
  encodePrimaryVolumeDescriptor,
  encodeTerminator,
} from '../../src/iso/volume/descriptor.ts';

const TIME = new Date('2026-01-02T03:04:05Z');
const DIRECTORY = 0o040555;
const FILE = 0o100444;
const SECTORS = 24;
const PATH_TABLE = [
  { identifier: Uint8Array.of(0), extent: 20, parent: 1 },
  { identifier: Buffer.from('SUB'), extent: 21, parent: 1 },
];
const PATH_TABLE_SIZE = 10 + 12;

/**
 * The smallest base there can be, the same bytes at every call: `/readme.txt` (5 bytes at sector 22)
 * and `/sub/data.bin` (2048 bytes at sector 23), their sectors 18 to 21 path tables and directories.
 */
export function makeTinyIso(): Uint8Array {
  const iso = new Uint8Array(SECTORS * 2048);
  const put = (sector: number, bytes: Uint8Array): void => {
    iso.set(bytes, sector * 2048);
  };
  put(16, primaryDescriptor());
  put(17, encodeTerminator());
  put(18, encodePathTable(PATH_TABLE, 'little'));
  put(19, encodePathTable(PATH_TABLE, 'big'));
  const root = { extent: 20, mode: DIRECTORY, links: 3 };
  const sub = { extent: 21, mode: DIRECTORY, links: 2 };
  const rootArea = Buffer.concat([
    encodeSystemUse([encodeSharingProtocol(), ...attributes(root)]),
    encodeContinuation(20, 1024, 237),
  ]);
  const readme = { extent: 22, mode: FILE, links: 1, name: 'readme.txt', size: 5 };
  const data = { extent: 23, mode: FILE, links: 1, name: 'data.bin' };
  put(20, record('\0', root, rootArea));
  iso.set(encodeSystemUse([encodeExtensionReference()]), 20 * 2048 + 1024);
  iso.set(
    Buffer.concat([
      record('\u0001', root),
      record('README.TXT;1', readme),
      record('SUB', { ...sub, name: 'sub' }),
    ]),
    20 * 2048 + record('\0', root, rootArea).length,
  );
  put(21, Buffer.concat([record('\0', sub), record('\u0001', root), record('DATA.BIN;1', data)]));
  put(22, Buffer.from('hello'));
  put(23, new Uint8Array(2048).fill(7));
  return iso;
}

type Entry = Pick<PosixAttributes, 'mode' | 'links'> & {
  extent: number;
  name?: string;
  size?: number;
};

const attributes = ({ mode, links, name }: Entry): ReturnType<typeof encodeRockRidge> =>
  encodeRockRidge({
    mode,
    links,
    uid: 0,
    gid: 0,
    times: { modified: TIME },
    ...(name !== undefined && { name }),
  });

function record(identifier: string, entry: Entry, systemUse?: Uint8Array): Uint8Array {
  return encodeDirectoryRecord({
    identifier: Buffer.from(identifier, 'latin1'),
    extent: entry.extent,
    size: entry.size ?? 2048,
    recordedAt: TIME,
    flags: entry.mode === DIRECTORY ? FILE_FLAG.directory : 0,
    systemUse: systemUse ?? encodeSystemUse(attributes(entry)),
  });
}

function primaryDescriptor(): Uint8Array {
  return encodePrimaryVolumeDescriptor({
    systemId: 'LINUX',
    volumeId: 'TINY',
    volumeSetId: '',
    publisherId: '',
    preparerId: '',
    applicationId: '',
    copyrightFile: '',
    abstractFile: '',
    bibliographicFile: '',
    volumeSpaceSize: SECTORS,
    volumeSetSize: 1,
    volumeSequence: 1,
    logicalBlockSize: 2048,
    pathTableSize: PATH_TABLE_SIZE,
    lPathTable: 18,
    mPathTable: 19,
    optionalLPathTable: 0,
    optionalMPathTable: 0,
    fileStructureVersion: 1,
    createdAt: TIME,
    modifiedAt: TIME,
    expiresAt: undefined,
    effectiveAt: undefined,
    rootRecord: {
      identifier: Uint8Array.of(0),
      extent: 20,
      size: 2048,
      recordedAt: TIME,
      flags: FILE_FLAG.directory,
      systemUse: new Uint8Array(0),
    },
    applicationUse: new Uint8Array(512),
  });
}
