import type { BaseDirectory, BaseNode } from '../live-base/base-tree.ts';
import { encodeBoth32 } from '../volume/both-endian.ts';
import { FILE_FLAG } from './directory-record.ts';
import {
  decodeRockRidge,
  encodeExtensionReference,
  encodeRockRidge,
  encodeSharingProtocol,
} from './rock-ridge.ts';
import type { SystemUseEntry } from './system-use.ts';

/** What a directory record says besides where the data is. */
export type EntryAttributes = {
  readonly flags: number;
  readonly recordedAt: Date | undefined;
  readonly entries: readonly SystemUseEntry[];
};

/** Gives new entries their time and, in the form of PX that the base uses, a serial number. */
export type EntrySource = {
  readonly time: Date;
  readonly takeSerial: () => number | undefined;
  /** System use entries that thousands of files have in common, by their bytes. */
  readonly common: Map<string, SystemUseEntry>;
};

const LINKS_AT = 8;
const DIRECTORY_TYPE = 0o040000;
const TYPE_MASK = 0o170000;

export function entrySourceOf(base: BaseDirectory, epoch: number): EntrySource {
  const time = new Date(epoch * 1000);
  const hasSerials = decodeRockRidge(base.entries).serial !== undefined;
  let serial = hasSerials ? highestSerial(base) : 0;
  return { time, takeSerial: () => (hasSerials ? (serial += 1) : undefined), common: new Map() };
}

function highestSerial(node: BaseNode): number {
  const own = decodeRockRidge(node.entries).serial ?? 0;
  const children = node.kind === 'directory' ? node.children : [];
  return children.reduce((highest, child) => Math.max(highest, highestSerial(child)), own);
}

/** Owned by root; `mode` with the file type, as in `st_mode`. */
export function newAttributes(
  { time, takeSerial, common }: EntrySource,
  { name, mode, links }: { name: string; mode: number; links: number },
): EntryAttributes {
  const serial = takeSerial();
  const times = { modified: time, accessed: time, attributesChanged: time };
  const posix = { mode, links, uid: 0, gid: 0, name, times };
  const isDirectory = (mode & TYPE_MASK) === DIRECTORY_TYPE;
  return {
    flags: isDirectory ? FILE_FLAG.directory : 0,
    recordedAt: time,
    entries: encodeRockRidge(serial === undefined ? posix : { ...posix, serial }).map((entry) =>
      entry.signature === 'TF' || (entry.signature === 'PX' && serial === undefined)
        ? share(common, entry)
        : entry,
    ),
  };
}

/** One object for equal entries: a tree of many files stays small. */
function share(common: Map<string, SystemUseEntry>, entry: SystemUseEntry): SystemUseEntry {
  const key = entry.signature + Buffer.from(entry.data).toString('latin1');
  const known = common.get(key);
  if (!known) common.set(key, entry);
  return known ?? entry;
}

/** The same attributes with another number of links (RRIP 4.1.1). */
export function withLinks(
  { flags, recordedAt, entries }: EntryAttributes,
  links: number,
): EntryAttributes {
  const patched = entries.map((entry) => {
    if (entry.signature !== 'PX') return entry;
    const data = Uint8Array.from(entry.data);
    encodeBoth32(data, LINKS_AT, links);
    return { ...entry, data };
  });
  return { flags, recordedAt, entries: patched };
}

/** Entries of a directory's own record `.`, and of `..` in its children: no name. */
export const selfEntries = ({ entries }: EntryAttributes): readonly SystemUseEntry[] =>
  entries.filter(({ signature }) => signature === 'PX' || signature === 'TF');

/** Entries of the root's own record: SP must be the very first (SUSP 5.3). */
export function rootEntries(root: EntryAttributes): readonly SystemUseEntry[] {
  const reference = root.entries.find(({ signature }) => signature === 'ER');
  return [encodeSharingProtocol(), ...selfEntries(root), reference ?? encodeExtensionReference()];
}
