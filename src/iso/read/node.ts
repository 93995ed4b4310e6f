import { IntegrityError } from '../../base/errors.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { FILE_FLAG, type DirectoryRecord } from '../directory/record.ts';
import type { PosixAttributes } from '../directory/rock-ridge.ts';
import { SECTOR_SIZE } from '../extent.ts';

type Entry = {
  /** The Rock Ridge name; without Rock Ridge, the ISO 9660 identifier without its version. */
  readonly name: string;
  /** As written in the directory record. */
  readonly isoIdentifier: Uint8Array;
  /** `st_mode`; without Rock Ridge readable by all. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modifiedAt: Date | undefined;
  /** In their order on the volume; more than one if the file has several extents. */
  readonly records: readonly DirectoryRecord[];
};

/** Device nodes, sockets and pipes are files without bytes, too; their mode shows it. */
export type IsoFile = Entry & {
  readonly kind: 'file';
  /** Bytes of the image, in the order of the file; none of them is empty. */
  readonly extents: readonly ByteRange[];
  /** Bytes. */
  readonly size: number;
};

export type IsoDirectory = Entry & {
  readonly kind: 'directory';
  /** The records of the directory. */
  readonly extent: ByteRange;
};

type IsoSymlink = Entry & { readonly kind: 'symlink'; readonly target: string };

export type IsoNode = IsoFile | IsoDirectory | IsoSymlink;

const TYPE_OF_FILE = 0o170000;
const SYMLINK = 0o120000;
const FILE_MODE = 0o100444;
const DIRECTORY_MODE = 0o040555;

/** Creates a node from the records of one file (ECMA-119 6.5.1: one record an extent). */
export function createNode(
  records: readonly [DirectoryRecord, ...DirectoryRecord[]],
  attributes: Partial<PosixAttributes>,
): IsoNode {
  const [first] = records;
  const isDirectory = (first.flags & FILE_FLAG.directory) !== 0;
  const mode = attributes.mode ?? (isDirectory ? DIRECTORY_MODE : FILE_MODE);
  const node = createEntry(records, attributes, mode);
  if (isDirectory) {
    return Object.assign(node, { kind: 'directory' as const, extent: locateExtent(first) });
  }
  const { target } = attributes;
  if (target !== undefined && (mode & TYPE_OF_FILE) === SYMLINK) {
    return Object.assign(node, { kind: 'symlink' as const, target });
  }
  const extents: ByteRange[] = [];
  let size = 0;
  for (const record of records) {
    const extent = locateExtent(record);
    if (extent.size > 0) extents.push(extent);
    size += extent.size;
  }
  return Object.assign(node, { kind: 'file' as const, extents, size });
}

/** Creates an entry. Callers extend it in place without copying it: an image has half a million. */
const createEntry = (
  records: readonly [DirectoryRecord, ...DirectoryRecord[]],
  { name, uid = 0, gid = 0, times }: Partial<PosixAttributes>,
  mode: number,
) => ({
  kind: 'file' as IsoNode['kind'],
  name: checkName(name ?? formatIdentifier(records[0].identifier)),
  isoIdentifier: records[0].identifier,
  mode,
  uid,
  gid,
  modifiedAt: times?.modified ?? records[0].recordedAt,
  records,
});

export function locateExtent(record: DirectoryRecord): ByteRange {
  if (record.fileUnitSize || record.interleaveGap) {
    throw new IntegrityError(
      'iso.unsupported',
      `extent at sector ${record.extent} is interleaved, which no current system reads`,
    );
  }
  const sector = record.extent + (record.extendedAttributeLength ?? 0);
  return { offset: sector * SECTOR_SIZE, size: record.size };
}

/** ECMA-119 7.5: the identifier without version, and without the dot of an empty extension. */
export function formatIdentifier(identifier: Uint8Array): string {
  return Buffer.from(identifier).toString('latin1').replace(/;\d*$/, '').replace(/\.$/, '');
}

function checkName(name: string): string {
  if (name !== '.' && name !== '..' && isFileName(name)) return name;
  throw new IntegrityError(
    'iso.bad-name',
    `${JSON.stringify(name.slice(0, MAX_NAME))} is not a valid file name`,
  );
}

/** The longest name that Linux accepts (NAME_MAX). */
const MAX_NAME = 255;

export const isFileName = (name: string): boolean =>
  name !== '' && name.length <= MAX_NAME && !/[/\0]/.test(name);
