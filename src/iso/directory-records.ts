import { systemUseRoom } from './directory-record.ts';
import { FILE_FLAG } from './directory-record.ts';
import { rootEntries, selfEntries, type EntryAttributes } from './entry-attributes.ts';
import { SECTOR_SIZE } from './extent.ts';
import { placeSystemUse, type SystemUseEntry } from './system-use.ts';
import type { TreeDirectory, TreeLeaf, TreeNode } from './tree.ts';

/** A directory record without the place of its data. */
export type RecordPlan = {
  readonly identifier: Uint8Array;
  readonly flags: number;
  readonly recordedAt: Date | undefined;
  /** Bytes of the whole record. */
  readonly size: number;
  readonly inline: Uint8Array;
  /** What `inline`, which then ends with an unset CE entry, has no room for. */
  readonly continuation?: { readonly offset: number; readonly bytes: Uint8Array };
  readonly target: RecordTarget;
};

type RecordTarget =
  | { readonly kind: 'directory'; readonly number: number }
  | { readonly kind: 'file'; readonly file: TreeLeaf; readonly section: number };

/** The continuation area that all directories share, filled from its start. */
export type ContinuationRoom = { size: number };

export type RecordContext = {
  /** Of this directory and of its parent, in the path table's order from 0. */
  readonly number: number;
  readonly parent: number;
  readonly parentDirectory: TreeDirectory;
  readonly numberOf: (child: TreeDirectory) => number;
  readonly countSections: (file: TreeLeaf) => number;
  readonly continuation: ContinuationRoom;
};

const SELF = '\0';
const PARENT = '\u0001';
/** ECMA-119 9.1 up to the identifier. */
const FIXED_SIZE = 33;

/** `.`, `..`, then the children in the order they have; a large file takes a record a section. */
export function planRecords(directory: TreeDirectory, context: RecordContext): RecordPlan[] {
  const isRoot = context.number === context.parent;
  const self = isRoot ? rootEntries(directory) : selfEntries(directory);
  const up = context.parentDirectory;
  return [
    planRecord(
      { ...directory, identifier: SELF, entries: self },
      { kind: 'directory', number: context.number },
      context.continuation,
    ),
    planRecord(
      { ...up, identifier: PARENT, entries: selfEntries(up) },
      { kind: 'directory', number: context.parent },
      context.continuation,
    ),
    ...directory.children.flatMap((child) =>
      targetsOf(child, context).map((target) => planRecord(child, target, context.continuation)),
    ),
  ];
}

function targetsOf(child: TreeNode, context: RecordContext): RecordTarget[] {
  if (child.kind === 'directory') {
    return [{ kind: 'directory', number: context.numberOf(child) }];
  }
  return Array.from({ length: context.countSections(child) }, (_, section) => ({
    kind: 'file' as const,
    file: child,
    section,
  }));
}

type Described = EntryAttributes & {
  readonly identifier: string;
  readonly entries: readonly SystemUseEntry[];
};

function planRecord(
  { identifier, flags, recordedAt, entries }: Described,
  target: RecordTarget,
  room: ContinuationRoom,
): RecordPlan {
  const bytes = Buffer.from(identifier, 'latin1');
  const { inline, continuation } = placeSystemUse(entries, systemUseRoom(bytes.length));
  const size = roundUpToEven(roundUpToEven(FIXED_SIZE + bytes.length) + inline.length);
  const kept = target.kind === 'directory' ? flags | FILE_FLAG.directory : flags;
  const plan = { identifier: bytes, flags: kept, recordedAt, size, inline, target };
  if (continuation.length === 0) return plan;
  const offset = takeRoom(room, continuation.length);
  return { ...plan, continuation: { offset, bytes: continuation } };
}

/** A continuation area must not cross a sector: Linux calls the directory corrupted then. */
function takeRoom(room: ContinuationRoom, size: number): number {
  const left = SECTOR_SIZE - (room.size % SECTOR_SIZE);
  const offset = size > left ? room.size + left : room.size;
  room.size = offset + size;
  return offset;
}

const roundUpToEven = (size: number): number => size + (size % 2);
