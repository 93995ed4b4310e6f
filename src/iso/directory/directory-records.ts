import { encodeDirectoryRecord, systemUseRoom } from './directory-record.ts';
import { rootEntries, selfEntries, type EntryAttributes } from './entry-attributes.ts';
import { placeSystemUse } from './system-use.ts';
import type { TreeDirectory, TreeNode } from '../tree.ts';

/** An encoded directory record whose extent and size are still 0. */
export type RecordDraft = {
  readonly bytes: Uint8Array;
  /** What the record has no room for; it then has an unset CE entry at `continuedAt`. */
  readonly continuation: Uint8Array;
  readonly continuedAt: number;
};

/** The bytes that stand for a directory itself and for its parent (ECMA-119 6.8.2.2). */
const SELF = '\0';
const PARENT = '\u0001';
/** ECMA-119 9.1.1, and even. */
const MAX_RECORD_SIZE = 254;
const CONTINUATION_ENTRY_SIZE = 28;

/** The record of a file or directory in the directory it is in. */
export const draftRecord = (node: TreeNode): RecordDraft => draft(node, node.identifier);

/** A directory's own record, `.`. */
export function draftSelf(directory: TreeDirectory, isRoot: boolean): RecordDraft {
  const entries = isRoot ? rootEntries(directory) : selfEntries(directory);
  return draft({ ...directory, entries }, SELF);
}

/** The record `..` of every directory in this one. */
export const draftParent = (directory: TreeDirectory): RecordDraft =>
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
