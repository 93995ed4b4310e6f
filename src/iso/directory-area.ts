import type { FileSection } from './base-tree.ts';
import { planRecords, type ContinuationRoom, type RecordPlan } from './directory-records.ts';
import { encodeDirectoryRecord, FILE_FLAG } from './directory-record.ts';
import { SECTOR_SIZE } from './extent.ts';
import { compareFilled } from './names.ts';
import { sizeOfPathTable, type PathTableRecord } from './path-table.ts';
import { encodeContinuation } from './system-use.ts';
import type { TreeDirectory, TreeLeaf } from './tree.ts';

/** Every directory of a tree, its records planned, but without the places of files. */
export type DirectoryArea = {
  /** In the order of the path table: by depth, then by parent, then by identifier. */
  readonly directories: readonly PlannedDirectory[];
  /** Bytes of a path table. */
  readonly pathTableSize: number;
  /** Bytes from the start of the directories; a multiple of SECTOR_SIZE. */
  readonly continuationOffset: number;
  /** Bytes of directories and continuation area; a multiple of SECTOR_SIZE. */
  readonly size: number;
};

type PlannedDirectory = {
  readonly identifier: Uint8Array;
  /** Index of the parent in this order; the root is its own. */
  readonly parent: number;
  readonly records: readonly RecordPlan[];
  /** Bytes from the start of the directories. */
  readonly offset: number;
  /** Bytes; a multiple of SECTOR_SIZE. */
  readonly size: number;
};

/** What the area needs to know to become bytes. */
export type AreaPlaces = {
  /** Sector of the first directory. */
  readonly sector: number;
  readonly sectionsOf: (file: TreeLeaf) => readonly FileSection[];
};

type OrderedDirectory = { readonly directory: TreeDirectory; readonly parent: number };

/** Parent numbers have 16 bits; Linux does not read them, and firmware only needs the first levels. */
const MAX_PARENT_NUMBER = 0xffff;

export function planDirectoryArea(
  root: TreeDirectory,
  countSections: (file: TreeLeaf) => number,
): DirectoryArea {
  const ordered = orderDirectories(root);
  const numbers = new Map(ordered.map(({ directory }, number) => [directory, number]));
  const continuation: ContinuationRoom = { size: 0 };
  const directories: PlannedDirectory[] = [];
  let offset = 0;
  for (const [number, { directory, parent }] of ordered.entries()) {
    const records = planRecords(directory, {
      number,
      parent,
      parentDirectory: ordered[parent]?.directory ?? root,
      numberOf: (child) => numbers.get(child) ?? 0,
      countSections,
      continuation,
    });
    const size = sizeOfRecords(records);
    const identifier = Buffer.from(directory.identifier, 'latin1');
    directories.push({ identifier, parent, records, offset, size });
    offset += size;
  }
  return {
    directories,
    pathTableSize: sizeOfPathTable(pathRecordsOf(directories, 0)),
    continuationOffset: offset,
    size: offset + roundUpToSector(continuation.size),
  };
}

/** ECMA-119 6.9.1. */
function orderDirectories(root: TreeDirectory): OrderedDirectory[] {
  const ordered: OrderedDirectory[] = [{ directory: root, parent: 0 }];
  for (let number = 0; number < ordered.length; number += 1) {
    const children = (ordered[number]?.directory.children ?? [])
      .filter((child) => child.kind === 'directory')
      .sort((a, b) => compareFilled(a.identifier, b.identifier));
    for (const directory of children) ordered.push({ directory, parent: number });
  }
  return ordered;
}

/** ECMA-119 6.8.1.1: a record ends in the sector it begins in. */
function sizeOfRecords(records: readonly RecordPlan[]): number {
  const end = records.reduce((at, { size }) => skipToRoom(at, size) + size, 0);
  return roundUpToSector(end);
}

function skipToRoom(at: number, size: number): number {
  const left = SECTOR_SIZE - (at % SECTOR_SIZE);
  return size > left ? at + left : at;
}

const roundUpToSector = (size: number): number => Math.ceil(size / SECTOR_SIZE) * SECTOR_SIZE;

/** The directories one after another, then the continuation area. */
export function encodeDirectories(area: DirectoryArea, places: AreaPlaces): Uint8Array {
  const bytes = new Uint8Array(area.size);
  for (const directory of area.directories) {
    let at = 0;
    for (const record of directory.records) {
      at = skipToRoom(at, record.size);
      bytes.set(encodeRecord(record, { area, places }), directory.offset + at);
      at += record.size;
      if (record.continuation) {
        const { offset, bytes: continued } = record.continuation;
        bytes.set(continued, area.continuationOffset + offset);
      }
    }
  }
  return bytes;
}

function encodeRecord(
  record: RecordPlan,
  { area, places }: { area: DirectoryArea; places: AreaPlaces },
): Uint8Array {
  const { identifier, flags, recordedAt } = record;
  const systemUse = Uint8Array.from(record.inline);
  if (record.continuation) {
    const start = area.continuationOffset + record.continuation.offset;
    const sector = places.sector + Math.floor(start / SECTOR_SIZE);
    const size = record.continuation.bytes.length;
    const entry = encodeContinuation(sector, start % SECTOR_SIZE, size);
    systemUse.set(entry, systemUse.length - entry.length);
  }
  const common = { identifier, recordedAt, systemUse };
  if (record.target.kind === 'directory') {
    const target = area.directories[record.target.number];
    if (!target) throw new Error(`directory ${record.target.number} is not planned`);
    const extent = places.sector + target.offset / SECTOR_SIZE;
    return encodeDirectoryRecord({ ...common, flags, extent, size: target.size });
  }
  const sections = places.sectionsOf(record.target.file);
  const section = sections[record.target.section];
  if (!section) throw new Error(`section ${record.target.section} has no place`);
  const isLast = record.target.section === sections.length - 1;
  return encodeDirectoryRecord({
    ...common,
    flags: isLast ? flags : flags | FILE_FLAG.multiExtent,
    extent: section.sector,
    size: section.size,
  });
}

/** The records of both path tables; `sector` is that of the first directory. */
export const pathTableOf = (area: DirectoryArea, sector: number): PathTableRecord[] =>
  pathRecordsOf(area.directories, sector);

function pathRecordsOf(
  directories: readonly PlannedDirectory[],
  sector: number,
): PathTableRecord[] {
  return directories.map(({ identifier, parent, offset }) => ({
    identifier,
    extent: sector + offset / SECTOR_SIZE,
    parent: Math.min(parent + 1, MAX_PARENT_NUMBER),
  }));
}
