import { IntegrityError } from '../base/errors.ts';
import { decodeDirectoryRecord, FILE_FLAG, type DirectoryRecord } from './directory-record.ts';
import { SECTOR_SIZE } from './extent.ts';
import { decodeRockRidge, decodeSharingProtocol } from './rock-ridge.ts';
import { readSystemUse, type SystemUseEntry } from './system-use.ts';

/** Sectors of a file's data, in order; more than one when the file has several extents. */
export type FileSection = { readonly sector: number; readonly size: number };

/** What stands in a directory record of the base ISO besides its place. */
type BaseEntry = {
  /** Rock Ridge name; the root's is empty. */
  readonly name: string;
  /** ISO 9660 identifier, bytes as latin1. */
  readonly identifier: string;
  readonly flags: number;
  readonly recordedAt: Date | undefined;
  /** All system use entries, those that tell where relocated directories are left out. */
  readonly entries: readonly SystemUseEntry[];
};

export type BaseFile = BaseEntry & {
  readonly kind: 'file';
  readonly sections: readonly FileSection[];
};

export type BaseDirectory = BaseEntry & {
  readonly kind: 'directory';
  readonly children: readonly BaseNode[];
};

export type BaseNode = BaseFile | BaseDirectory;

/** Reads `size` bytes at `offset`, all of them or it throws. */
export type ReadAt = (offset: number, size: number) => Promise<Uint8Array>;

type Walk = { readonly readAt: ReadAt; readonly skip: number; readonly visited: Set<number> };
type Place = { readonly sector: number; readonly size: number };
type Entry = { readonly record: DirectoryRecord; readonly entries: readonly SystemUseEntry[] };

const MAX_DIRECTORY_SIZE = 64 * 1024 * 1024;
/** Entries about relocation (RRIP 4.1.5), obsolete (RR) or a matter of one recording (PD, SP). */
const DROPPED = ['CL', 'PL', 'RE', 'RR', 'PD', 'SP'];

/**
 * The whole directory tree as Rock Ridge tells it: relocated directories stand where they belong.
 *
 * @throws IntegrityError `iso.no-rock-ridge`, `iso.looping-directory`, `iso.directory-too-large`, and
 * what decoding and `readAt` throw
 */
export async function readBaseTree(root: Place, readAt: ReadAt): Promise<BaseDirectory> {
  const records = await readRecords(root, { readAt, skip: 0, visited: new Set() });
  const self = records[0];
  const skip = self && decodeSharingProtocol(self.entries);
  if (!self || skip === undefined) {
    throw new IntegrityError('iso.no-rock-ridge', 'root directory has no Rock Ridge entries', {
      hint: 'Use a CoreOS live ISO as base.',
    });
  }
  return readDirectory(
    { ...describe(self), name: '', identifier: '\0' },
    { place: root, walk: { readAt, skip, visited: new Set() } },
  );
}

async function readDirectory(
  entry: BaseEntry,
  { place, walk }: { place: Place; walk: Walk },
): Promise<BaseDirectory> {
  if (walk.visited.has(place.sector)) {
    throw new IntegrityError(
      'iso.looping-directory',
      `directory "${entry.name}" at sector ${place.sector} has been entered before`,
    );
  }
  walk.visited.add(place.sector);
  const children: BaseNode[] = [];
  for (const group of groupSections((await readRecords(place, walk)).slice(2))) {
    const child = await readNode(group, walk);
    if (child) children.push(child);
  }
  return { ...entry, kind: 'directory', children };
}

/** Records of one file follow each other, all but the last marked (ECMA-119 9.1.6). */
function groupSections(records: readonly Entry[]): Entry[][] {
  const groups: Entry[][] = [];
  let open: Entry[] | undefined;
  for (const record of records) {
    if (open) open.push(record);
    else groups.push((open = [record]));
    if ((record.record.flags & FILE_FLAG.multiExtent) === 0) open = undefined;
  }
  return groups;
}

async function readNode(group: readonly Entry[], walk: Walk): Promise<BaseNode | undefined> {
  const [first] = group;
  if (!first) return undefined;
  const { isRelocated, childLink } = decodeRockRidge(first.entries);
  if (isRelocated === true) return undefined;
  const entry = describe(first);
  if (childLink !== undefined) {
    const [self] = await readRecords({ sector: childLink, size: SECTOR_SIZE }, walk);
    const place = { sector: childLink, size: self?.record.size ?? 0 };
    const flags = entry.flags | FILE_FLAG.directory;
    const entries = self ? withEntriesOf(entry.entries, describe(self).entries) : entry.entries;
    return readDirectory({ ...entry, entries, flags }, { place, walk });
  }
  if ((first.record.flags & FILE_FLAG.directory) !== 0) {
    const directory = await readDirectory(entry, { place: placeOf(first.record), walk });
    const isOnlyForRelocated = directory.children.length === 0 && entry.name === 'rr_moved';
    return isOnlyForRelocated ? undefined : directory;
  }
  return { ...entry, kind: 'file', sections: group.map(({ record }) => placeOf(record)) };
}

/** The placeholder of a relocated directory names it; its own record has its mode and times. */
function withEntriesOf(
  placeholder: readonly SystemUseEntry[],
  own: readonly SystemUseEntry[],
): readonly SystemUseEntry[] {
  const isAttribute = (entry: SystemUseEntry): boolean => ['PX', 'TF'].includes(entry.signature);
  return [...own.filter(isAttribute), ...placeholder.filter((entry) => !isAttribute(entry))];
}

const placeOf = (record: DirectoryRecord): Place => ({
  sector: record.extent + (record.extendedAttributeLength ?? 0),
  size: record.size,
});

function describe({ record, entries }: Entry): BaseEntry {
  const identifier = Buffer.from(record.identifier).toString('latin1');
  const { name } = decodeRockRidge(entries);
  return {
    name: name ?? identifier.replace(/\.?;\d+$/, ''),
    identifier,
    flags: record.flags & ~FILE_FLAG.multiExtent,
    recordedAt: record.recordedAt,
    entries: entries.filter((entry) => !DROPPED.includes(entry.signature)),
  };
}

async function readRecords(place: Place, walk: Walk): Promise<Entry[]> {
  if (place.size > MAX_DIRECTORY_SIZE) {
    throw new IntegrityError(
      'iso.directory-too-large',
      `directory at sector ${place.sector} has ${place.size} bytes, more than ${MAX_DIRECTORY_SIZE}`,
    );
  }
  const bytes = await walk.readAt(place.sector * SECTOR_SIZE, place.size);
  const records: Entry[] = [];
  for (let at = 0; at < bytes.length;) {
    if (bytes[at] === 0) {
      at = (Math.floor(at / SECTOR_SIZE) + 1) * SECTOR_SIZE;
      continue;
    }
    const { record, length } = decodeDirectoryRecord(bytes, at);
    const area = record.systemUse.subarray(walk.skip);
    const entries = await readSystemUse(area, ({ sector, offset, size }) =>
      walk.readAt(sector * SECTOR_SIZE + offset, size),
    );
    records.push({ record, entries });
    at += length;
  }
  return records;
}
