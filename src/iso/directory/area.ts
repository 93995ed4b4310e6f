import { viewOf, roundUp, SECTOR_SIZE } from '../extent.ts';
import type { TreeDirectory, TreeLeaf, TreeNode } from '../lay-out/tree.ts';
import type { FileSection } from '../read/base-tree.ts';
import { sizeOfPathTable, type PathTableRecord } from '../volume/path-table.ts';
import { compareFilled, rootEntries, selfEntries, type EntryAttributes } from './names.ts';
import { FILE_FLAG, encodeDirectoryRecord, systemUseRoom } from './record.ts';
import { encodeContinuation, placeSystemUse } from './system-use.ts';

/** The directories of a tree as bytes, except for the places that records point to. */
export type DirectoryArea = {
  /** In the order of the path table: by depth, then by parent, then by identifier. */
  readonly directories: readonly PlannedDirectory[];
  /** Bytes of a path table. */
  readonly pathTableSize: number;
  /** The directories; whole sectors. */
  readonly template: Uint8Array;
  /** System use entries that do not fit into records; whole sectors, after the directories. */
  readonly continuationArea: Uint8Array;
  readonly pointers: readonly Pointer[];
};

type PlannedDirectory = {
  readonly identifier: Uint8Array;
  /** Index of the parent in this order; the root is its own. */
  readonly parent: number;
  /** Bytes from the start of the directories. */
  readonly offset: number;
  /** Bytes; a multiple of SECTOR_SIZE. */
  readonly size: number;
};

/** Value that must be filled in at byte `at` of the directories. */
type Pointer =
  | { readonly kind: 'directory'; readonly at: number; readonly number: number }
  | {
      readonly kind: 'file';
      readonly at: number;
      readonly file: TreeLeaf;
      readonly section: number;
    }
  /** A CE entry, and its bytes of the continuation area. */
  | {
      readonly kind: 'continuation';
      readonly at: number;
      readonly offset: number;
      readonly size: number;
    };

export type AreaPlaces = {
  /** Sector of the first directory. */
  readonly sector: number;
  readonly sectionsOf: (file: TreeLeaf) => readonly FileSection[];
};

type OrderedDirectory = { readonly directory: TreeDirectory; readonly parent: number };

type Drafting = {
  readonly records: SectorBuffer;
  readonly continuations: SectorBuffer;
  readonly pointers: Pointer[];
  readonly numbers: ReadonlyMap<TreeDirectory, number>;
  readonly countSections: (file: TreeLeaf) => number;
};

/** Parent numbers have 16 bits; Linux does not read them, and firmware only needs the first levels. */
const MAX_PARENT_NUMBER = 0xffff;

export function planDirectoryArea(
  root: TreeDirectory,
  countSections: (file: TreeLeaf) => number,
): DirectoryArea {
  const ordered = orderDirectories(root);
  const drafting: Drafting = {
    records: createSectorBuffer(),
    continuations: createSectorBuffer(),
    pointers: [],
    numbers: new Map(ordered.map(({ directory }, number) => [directory, number])),
    countSections,
  };
  const directories: PlannedDirectory[] = [];
  for (const [number, { directory, parent }] of ordered.entries()) {
    const offset = drafting.records.size();
    const up = ordered[parent]?.directory ?? root;
    addRecord(drafting, draftSelf(directory, number === 0), { kind: 'directory', number });
    addRecord(drafting, draftParent(up), { kind: 'directory', number: parent });
    for (const child of directory.children) addChild(drafting, child);
    drafting.records.endSector();
    const size = drafting.records.size() - offset;
    const identifier = Buffer.from(directory.identifier, 'latin1');
    directories.push({ identifier, parent, offset, size });
  }
  return {
    directories,
    pathTableSize: sizeOfPathTable(pathRecordsOf(directories, 0)),
    template: drafting.records.toBytes(),
    continuationArea: drafting.continuations.toBytes(),
    pointers: drafting.pointers,
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

/** A file has one record for each section; they differ only in the section that they point to. */
function addChild(drafting: Drafting, child: TreeNode): void {
  const draft = draftRecord(child);
  if (child.kind === 'directory') {
    const number = drafting.numbers.get(child) ?? 0;
    addRecord(drafting, draft, { kind: 'directory', number });
    return;
  }
  for (let section = 0; section < drafting.countSections(child); section += 1) {
    addRecord(drafting, draft, { kind: 'file', file: child, section });
  }
}

type Target =
  | { readonly kind: 'directory'; readonly number: number }
  | { readonly kind: 'file'; readonly file: TreeLeaf; readonly section: number };

function addRecord(drafting: Drafting, draft: RecordDraft, target: Target): void {
  // ECMA-119 6.8.1.1: a record ends in the sector it begins in.
  const at = drafting.records.add(draft.bytes);
  drafting.pointers.push({ ...target, at });
  const size = draft.continuation.length;
  if (size === 0) return;
  // Linux treats a directory as corrupted if its continuation areas cross sectors.
  const offset = drafting.continuations.add(draft.continuation);
  drafting.pointers.push({ kind: 'continuation', at: at + draft.continuedAt, offset, size });
}

/** Bytes of directories and continuation area; a multiple of SECTOR_SIZE. */
export const sizeOfArea = ({ template, continuationArea }: DirectoryArea): number =>
  template.length + continuationArea.length;

/** The directories one after another, then the continuation area. */
export function encodeDirectories(area: DirectoryArea, places: AreaPlaces): Uint8Array {
  const bytes = new Uint8Array(sizeOfArea(area));
  bytes.set(area.template);
  bytes.set(area.continuationArea, area.template.length);
  const view = viewOf(bytes, { at: 0, size: bytes.length });
  for (const pointer of area.pointers) {
    if (pointer.kind === 'continuation') {
      const start = area.template.length + pointer.offset;
      const sector = places.sector + Math.floor(start / SECTOR_SIZE);
      bytes.set(encodeContinuation(sector, start % SECTOR_SIZE, pointer.size), pointer.at);
    } else {
      pointRecord(view, pointer.at, placeOf(pointer, { area, places }));
    }
  }
  return bytes;
}

type Place = FileSection & { readonly isContinued: boolean };

function placeOf(
  target: Target,
  { area, places }: { area: DirectoryArea; places: AreaPlaces },
): Place {
  if (target.kind === 'directory') {
    const directory = area.directories[target.number];
    if (!directory) throw new Error(`directory ${target.number} is not planned`);
    const sector = places.sector + directory.offset / SECTOR_SIZE;
    return { sector, size: directory.size, isContinued: false };
  }
  const sections = places.sectionsOf(target.file);
  const section = sections[target.section];
  if (!section) throw new Error(`section ${target.section} of ${target.file.path} has no place`);
  return { ...section, isContinued: target.section + 1 < sections.length };
}

/** ECMA-119 9.1.3, 9.1.4, 9.1.6. */
function pointRecord(view: DataView, at: number, { sector, size, isContinued }: Place): void {
  view.setUint32(at + 2, sector, true);
  view.setUint32(at + 6, sector, false);
  view.setUint32(at + 10, size, true);
  view.setUint32(at + 14, size, false);
  if (isContinued) view.setUint8(at + 25, view.getUint8(at + 25) | FILE_FLAG.multiExtent);
}

/** The records of both path tables; `sector` is the first directory's. */
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

/** An encoded directory record whose extent and size are still 0. */
type RecordDraft = {
  readonly bytes: Uint8Array;
  /** Entries that do not fit into the record, which then has an unset CE entry at `continuedAt`. */
  readonly continuation: Uint8Array;
  readonly continuedAt: number;
};

/** Identifiers of a directory itself and of its parent (ECMA-119 6.8.2.2). */
const SELF = '\0';
const PARENT = '\u0001';
/** ECMA-119 9.1.1, and even. */
const MAX_RECORD_SIZE = 254;
const CONTINUATION_ENTRY_SIZE = 28;

/** The record of a file or directory in its parent directory. */
const draftRecord = (node: TreeNode): RecordDraft => draft(node, node.identifier);

/** A directory's own record, `.`. */
function draftSelf(directory: TreeDirectory, isRoot: boolean): RecordDraft {
  const entries = isRoot ? rootEntries(directory) : selfEntries(directory);
  return draft({ ...directory, entries }, SELF);
}

/** The record `..` of every directory in this one. */
const draftParent = (directory: TreeDirectory): RecordDraft =>
  draft({ ...directory, entries: selfEntries(directory) }, PARENT);

function draft(attributes: EntryAttributes, identifier: string): RecordDraft {
  const bytes = Buffer.from(identifier, 'latin1');
  const room = systemUseRoom(bytes.length);
  const { inline, continuation } = placeSystemUse(attributes.entries, room);
  const { flags, recordedAt } = attributes;
  const record = { identifier: bytes, extent: 0, size: 0, recordedAt, flags, systemUse: inline };
  const systemUseAt = MAX_RECORD_SIZE - room;
  return {
    bytes: encodeDirectoryRecord(record),
    continuation,
    continuedAt: systemUseAt + inline.length - CONTINUATION_ENTRY_SIZE,
  };
}

/** Pieces of bytes one after another, none of which crosses from one sector into the next. */
type SectorBuffer = {
  /** Returns the offset of the bytes, which are at most SECTOR_SIZE. */
  readonly add: (bytes: Uint8Array) => number;
  /** Fills the current sector with zeros. */
  readonly endSector: () => void;
  readonly size: () => number;
  /** Whole sectors; nothing may be added afterwards. */
  readonly toBytes: () => Uint8Array;
};

function createSectorBuffer(): SectorBuffer {
  let bytes = new Uint8Array(16 * SECTOR_SIZE);
  let size = 0;
  const endSector = (): void => {
    size = roundUp(size, SECTOR_SIZE);
  };
  return {
    add(added) {
      if ((size % SECTOR_SIZE) + added.length > SECTOR_SIZE) endSector();
      if (size + added.length > bytes.length) {
        const larger = new Uint8Array(2 * bytes.length);
        larger.set(bytes);
        bytes = larger;
      }
      bytes.set(added, size);
      const at = size;
      size += added.length;
      return at;
    },
    endSector,
    size: () => size,
    toBytes() {
      endSector();
      return bytes.subarray(0, size);
    },
  };
}
