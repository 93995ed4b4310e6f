import { createColumn, createTextColumn, type Column } from '../../base/columns.ts';
import type { DirectoryClaims, DirectoryEntry } from '../directory/claims.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { damage, type StructureProblem } from './structure-problem.ts';

/** Bytes of the image that something has. An image may have half a million: about 40 bytes are held of each. */
export type UsedExtents = {
  /** Directory entries that are added from here on are of this tree. */
  readonly beginTree: (tree: Tree) => void;
  /** `entry` is of a directory, or the name of what has no path. */
  readonly add: (extent: ByteRange, entry: DirectoryEntry | string) => void;
  /** Says which extents overlap; files that are exactly the same extent share it. */
  readonly overlaps: () => Generator<StructureProblem>;
};

type Tree = Pick<DirectoryClaims, 'pathOf'>;

/** What is held of an entry instead of its parent's number: that is 2 more. */
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

/** Indexes by sector. Numbers are sorted in their place; a function that compares takes 100 MiB. */
function* sortByOffset(offsets: Column): Generator<number> {
  const keys = new Float64Array(offsets.length());
  for (let index = 0; index < keys.length; index++) {
    keys[index] = (offsets.at(index) / SECTOR_SIZE) * INDEX_ROOM + index;
  }
  for (const key of keys.sort()) yield key % INDEX_ROOM;
}

const toCode = ({ parent }: DirectoryEntry): number =>
  parent === undefined ? ROOT : parent + FIRST_DIRECTORY;
