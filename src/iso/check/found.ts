import { IntegrityError, type ImageProblem } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { ByteRange } from '../../base/random-access.ts';
import {
  createColumn,
  createTextColumn,
  createClaims,
  type DirectoryClaims,
  type DirectoryEntry,
  type Column,
} from '../directory/claims.ts';
import type { SystemUseEntry } from '../directory/system-use.ts';
import { SECTOR_SIZE } from '../extent.ts';
import { TOO_MUCH_STRUCTURE, formatCauses } from '../read/source.ts';
import { isBothEqual16, isBothEqual32 } from '../volume/numbers.ts';

/** A deviation of an image from its standard: an error, or a warning if no reader is known to fail on it. */
export type StructureProblem = ImageProblem;

export type Where = { readonly path?: string; readonly range?: ByteRange };

export const damage = (problem: string, where: Where = {}): StructureProblem =>
  describe('error', problem, where);

export const oddity = (problem: string, where: Where = {}): StructureProblem =>
  describe('warning', problem, where);

const describe = (
  severity: StructureProblem['severity'],
  problem: string,
  { path, range }: Where,
): StructureProblem => ({
  severity,
  code: 'verify.structure',
  kind: 'structure',
  problem,
  ...withoutUndefined({ path }),
  ...range,
});

/** Rethrows all but integrity errors, and an exhausted budget, after which no check is possible. */
export function damageOf(error: unknown, where: Where): StructureProblem {
  if (!(error instanceof IntegrityError) || error.code === TOO_MUCH_STRUCTURE) throw error;
  return damage(formatCauses(error), where);
}

/** A directory at its place on the volume, before Rock Ridge's relocations are undone. */
export type FoundDirectory = DirectoryEntry & {
  /** Bytes as latin1. */
  readonly identifier: string;
  /** Sector that its record names. */
  readonly sector: number;
  readonly parentSector: number;
};

/** The directories of one tree; each takes about 200 bytes of memory. */
export type FoundDirectories = Pick<DirectoryClaims, 'pathOf'> & {
  /** Returns the number of the directory. */
  readonly add: (directory: FoundDirectory, extent: ByteRange) => number;
  readonly count: () => number;
  readonly find: (sector: number) => FoundDirectory | undefined;
};

export function createFoundDirectories(): FoundDirectories {
  const claims = createClaims();
  const identifiers = createTextColumn();
  const parentSectors = createColumn();
  const numbers = new Map<number, number>();
  return {
    pathOf: claims.pathOf,
    count: () => numbers.size,
    add(directory, extent) {
      const number = claims.claim(directory, extent);
      identifiers.push(directory.identifier);
      parentSectors.push(directory.parentSector);
      numbers.set(directory.sector, number);
      return number;
    },
    find(sector) {
      const number = numbers.get(sector);
      if (number === undefined) return undefined;
      return {
        ...claims.entryOf(number),
        identifier: identifiers.at(number),
        sector,
        parentSector: parentSectors.at(number),
      };
    },
  };
}

/** The extents in use: an image may have half a million, and each takes about 40 bytes of memory. */
export type UsedExtents = {
  /** Directory entries that are added from now on belong to this tree. */
  readonly beginTree: (tree: Tree) => void;
  /** `entry` is a directory entry, or the name of something without a path. */
  readonly add: (extent: ByteRange, entry: DirectoryEntry | string) => void;
  /** Reports extents that overlap; files with exactly the same extent share it. */
  readonly overlaps: () => Generator<StructureProblem>;
};

type Tree = Pick<DirectoryClaims, 'pathOf'>;

/** Value for an entry without a path; stored parent numbers are 2 more. */
const NO_PATH = 0;
const ROOT = 1;
const FIRST_DIRECTORY = 2;

export function createUsedExtents(): UsedExtents {
  const offsets = createColumn({ wide: true });
  const sizes = createColumn({ wide: true });
  const names = createTextColumn();
  const parents = createColumn();
  const trees: { readonly tree: Tree; readonly from: number }[] = [];
  const endOf = (index: number): number => offsets.at(index) + sizes.at(index);
  const nameOf = (index: number): string => {
    const name = names.at(index);
    const parent = parents.at(index);
    const { tree } = trees.findLast(({ from }) => from <= index) ?? {};
    if (parent === NO_PATH || !tree) return name;
    return tree.pathOf({ name, parent: parent === ROOT ? undefined : parent - FIRST_DIRECTORY });
  };
  const overlap = (index: number, furthest: number): StructureProblem | undefined => {
    const [offset, size] = [offsets.at(index), sizes.at(index)];
    const [before, end] = [offsets.at(furthest), endOf(furthest)];
    const isShared = offset === before && size === sizes.at(furthest);
    if (offset >= end || isShared) return undefined;
    return damage(
      `bytes ${offset} to ${offset + size} overlap bytes ${before} to ${end} of ${nameOf(furthest)}`,
      { path: nameOf(index), range: { offset, size } },
    );
  };
  return {
    beginTree(tree) {
      trees.push({ tree, from: offsets.length() });
    },
    add({ offset, size }, entry) {
      if (size === 0) return;
      const isPlain = typeof entry === 'string';
      offsets.push(offset);
      sizes.push(size);
      names.push(isPlain ? entry : entry.name);
      parents.push(isPlain ? NO_PATH : toCode(entry));
    },
    *overlaps() {
      let furthest: number | undefined;
      for (const index of sortByOffset(offsets)) {
        furthest ??= index;
        const problem = overlap(index, furthest);
        if (problem) yield problem;
        if (endOf(index) > endOf(furthest)) furthest = index;
      }
    },
  };
}

/** Above the number of records that a reading may have. */
const INDEX_ROOM = 2 ** 21;

/** Indexes by sector. Numbers are sorted in place; a function that compares takes 100 MiB. */
function* sortByOffset(offsets: Column): Generator<number> {
  const keys = new Float64Array(offsets.length());
  for (let index = 0; index < keys.length; index++) {
    keys[index] = (offsets.at(index) / SECTOR_SIZE) * INDEX_ROOM + index;
  }
  for (const key of keys.sort()) yield key % INDEX_ROOM;
}

const toCode = ({ parent }: DirectoryEntry): number =>
  parent === undefined ? ROOT : parent + FIRST_DIRECTORY;

/** Offsets of numbers of 32 bits, and of 16. */
type BothFields = { readonly longs: readonly number[]; readonly shorts: readonly number[] };

const RECORD: BothFields = { longs: [2, 10], shorts: [28] };
const DESCRIPTOR: BothFields = { longs: [80, 132, 158, 166], shorts: [120, 124, 128, 184] };

/** Offsets of the numbers in a raw directory record whose two copies differ (ECMA-119 9.1). */
export const findUnequalInRecord = (raw: Uint8Array): number[] => findUnequal(raw, RECORD);

/** Offsets of unequal both-byte-order numbers in a primary or supplementary volume descriptor (ECMA-119 8.4, 8.5). */
export const findUnequalInDescriptor = (raw: Uint8Array): number[] => findUnequal(raw, DESCRIPTOR);

/** Signatures of the system use entries with a number whose two copies differ (RRIP 4.1). */
export function findUnequalInEntries(entries: readonly SystemUseEntry[]): string[] {
  return entries.filter((entry) => hasUnequal(entry)).map((entry) => entry.signature);
}

function hasUnequal({ signature, data }: SystemUseEntry): boolean {
  const count = COUNT_OF_LONGS[signature] ?? 0;
  for (let at = 0; at < count * 8 && at + 8 <= data.length; at += 8) {
    if (!isBothEqual32(data, at)) return true;
  }
  return false;
}

const COUNT_OF_LONGS: Readonly<Record<string, number>> = { PX: 5, CE: 3, CL: 1, PL: 1, PN: 2 };

function findUnequal(raw: Uint8Array, fields: BothFields): number[] {
  return [
    ...fields.longs.filter((at) => !isBothEqual32(raw, at)),
    ...fields.shorts.filter((at) => !isBothEqual16(raw, at)),
  ];
}
