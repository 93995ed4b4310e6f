import type { BaseDirectory, BaseNode } from '../read/base-tree.ts';
import { encodeBoth32 } from '../volume/numbers.ts';
import { FILE_FLAG } from './record.ts';
import {
  decodeRockRidge,
  encodeExtensionReference,
  encodeRockRidge,
  encodeSharingProtocol,
} from './rock-ridge.ts';
import type { SystemUseEntry } from './system-use.ts';

/** ECMA-119 7.5.1 with interchange level 3 (10.3): name and extension of a file together. */
const MAX_IDENTIFIER_LENGTH = 30;
/** Long extensions would leave no room for the name; the names that people look for have short ones. */
const MAX_EXTENSION_LENGTH = 8;
/** ECMA-119 7.4.1: d-characters are A-Z, 0-9 and the underscore. */
const NO_D_CHARACTERS = /[^A-Z0-9_]/g;

export type NewName = {
  /** Its Rock Ridge name. */
  readonly name: string;
  readonly kind: 'file' | 'directory';
};

type IdentifierParts = { readonly stem: string; readonly extension: string };

/**
 * ISO 9660 identifiers for the new entries of one directory: at most 30 d-characters (files: with the
 * dot and `;1`), none equal to another or to one of `taken`, and the same for the same names in any
 * order. Identifiers are strings of bytes (latin1), as everywhere in this folder.
 */
export function assignIdentifiers(
  taken: Iterable<string>,
  names: readonly NewName[],
): ReadonlyMap<string, string> {
  const used = new Set<string>();
  for (const identifier of taken) used.add(keyOf(splitIdentifier(identifier)));
  const counters = new Map<string, number>();
  const identifiers = new Map<string, string>();
  const sorted = [...names].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, kind } of sorted) {
    const wanted = kind === 'file' ? partsOfFile(name) : partsOfDirectory(name);
    const parts = makeUnique(wanted, used, counters);
    used.add(keyOf(parts));
    const suffix = kind === 'file' ? `.${parts.extension};1` : '';
    identifiers.set(name, `${parts.stem}${suffix}`);
  }
  return identifiers;
}

function partsOfDirectory(name: string): IdentifierParts {
  return { stem: toDCharacters(name).slice(0, MAX_IDENTIFIER_LENGTH), extension: '' };
}

function partsOfFile(name: string): IdentifierParts {
  const dot = name.lastIndexOf('.');
  const hasExtension = dot > 0 && dot < name.length - 1;
  const extension = hasExtension
    ? toDCharacters(name.slice(dot + 1)).slice(0, MAX_EXTENSION_LENGTH)
    : '';
  const stem = toDCharacters(hasExtension ? name.slice(0, dot) : name);
  return { stem: stem.slice(0, MAX_IDENTIFIER_LENGTH - extension.length), extension };
}

const toDCharacters = (text: string): string => text.toUpperCase().replace(NO_D_CHARACTERS, '_');

/** Ends the stem with a number when it is taken: `STEM`, `STEM_1`, `STEM_2`. */
function makeUnique(
  wanted: IdentifierParts,
  used: ReadonlySet<string>,
  counters: Map<string, number>,
): IdentifierParts {
  const wantedKey = keyOf(wanted);
  let parts = wanted;
  let counter = counters.get(wantedKey) ?? 0;
  while (used.has(keyOf(parts))) {
    counter += 1;
    const ending = `_${counter}`;
    const room = MAX_IDENTIFIER_LENGTH - wanted.extension.length - ending.length;
    parts = { ...wanted, stem: `${wanted.stem.slice(0, room)}${ending}` };
  }
  counters.set(wantedKey, counter);
  return parts;
}

/** ECMA-119 9.3 compares name and extension only, so `A` and `A.;1` are the same. */
const keyOf = ({ stem, extension }: IdentifierParts): string => `${stem}.${extension}`;

function splitIdentifier(identifier: string): IdentifierParts {
  const [name = ''] = identifier.split(';');
  const dot = name.indexOf('.');
  if (dot < 0) return { stem: name, extension: '' };
  return { stem: name.slice(0, dot), extension: name.slice(dot + 1) };
}

/** The order of directories with one parent in a path table (ECMA-119 6.9.1). */
export function compareFilled(a: string, b: string): number {
  const length = Math.max(a.length, b.length);
  const left = a.padEnd(length, ' ');
  const right = b.padEnd(length, ' ');
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** Attributes in a directory record, without the place of the data. */
export type EntryAttributes = {
  readonly flags: number;
  readonly recordedAt: Date | undefined;
  readonly entries: readonly SystemUseEntry[];
};

/** The time of new entries and, if the base has the form of PX with them, serial numbers. */
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

/** Attributes of a new entry, owned by root; `mode` with the file type, as in `st_mode`. */
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

/** Returns one object for equal entries: a tree of many files stays small. */
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
