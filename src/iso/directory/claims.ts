import { IntegrityError } from '../../base/errors.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { SECTOR_SIZE } from '../extent.ts';

/*
 * Lists that are stored outside the heap: for a million objects the garbage collector needs as much memory
 * again, and each object takes more than its content.
 */

/** Numbers, in the order in which they were added. */
export type Column = {
  readonly length: () => number;
  readonly push: (value: number) => void;
  /** Value at an index, or 0. */
  readonly at: (index: number) => number;
};

/** @param wide true if numbers may have more than 32 bits: integers up to 2^53 */
export function createColumn({ wide = false } = {}): Column {
  const create = (length: number): Float64Array | Uint32Array =>
    wide ? new Float64Array(length) : new Uint32Array(length);
  let values = create(FIRST_ROOM);
  let length = 0;
  return {
    length: () => length,
    push(value) {
      if (length === values.length) {
        const larger = create(grow(length));
        larger.set(values);
        values = larger;
      }
      values[length++] = value;
    },
    at: (index) => (index < length ? (values[index] ?? 0) : 0),
  };
}

/** Texts, in the order in which they were added. */
export type TextColumn = {
  readonly push: (text: string) => void;
  /** Value at an index, or ''. */
  readonly at: (index: number) => string;
};

export function createTextColumn(): TextColumn {
  const ends = createColumn({ wide: true });
  let bytes = Buffer.allocUnsafeSlow(FIRST_ROOM);
  let used = 0;
  return {
    push(text) {
      const size = Buffer.byteLength(text);
      if (used + size > bytes.length) {
        const larger = Buffer.allocUnsafeSlow(grow(used + size));
        bytes.copy(larger, 0, 0, used);
        bytes = larger;
      }
      used += bytes.write(text, used);
      ends.push(used);
    },
    at: (index) => bytes.toString('utf8', index === 0 ? 0 : ends.at(index - 1), ends.at(index)),
  };
}

const FIRST_ROOM = 1024;
const grow = (length: number): number => Math.ceil(length * 1.5);

/** Sectors of directories: one that is reached twice, or overlaps another, would make endless paths. */
export type DirectoryClaims = {
  /**
   * Records that a directory has this extent, and returns its number. An image may have a quarter of a million
   * directories: each takes about 120 bytes, and no path is stored.
   */
  readonly claim: (entry: DirectoryEntry, extent: ByteRange) => number;
  readonly entryOf: (directory: number) => DirectoryEntry;
  readonly pathOf: (entry: DirectoryEntry) => string;
};

/** A name in a directory, which is given by its number; the root is in none, and has no name. */
export type DirectoryEntry = { readonly name: string; readonly parent: number | undefined };

export const ROOT_ENTRY: DirectoryEntry = { name: '', parent: undefined };

/** The longest path that Linux accepts (PATH_MAX). */
const MAX_PATH = 4096;

/**
 * @param options.isRepeatable true if a directory may be claimed again with the same path: for look-ups, not
 * for a walk, which reaches each directory once
 */
export function createClaims({ isRepeatable = false } = {}): DirectoryClaims {
  const names = createTextColumn();
  const parents = createColumn();
  const starts = createColumn({ wide: true });
  const lengths = createColumn();
  const owners = new Map<number, number>();
  const entryOf = (directory: number): DirectoryEntry =>
    directory === 0 ? ROOT_ENTRY : { name: names.at(directory), parent: parents.at(directory) };
  const pathOf = (entry: DirectoryEntry): string => {
    const parts: string[] = [];
    let at = entry;
    for (; at.parent !== undefined; at = entryOf(at.parent)) parts.push(at.name);
    return `/${parts.reverse().join('/')}`;
  };
  const isAt = (directory: number, { name, parent = 0 }: DirectoryEntry): boolean =>
    parents.at(directory) === parent && names.at(directory) === name;
  return {
    entryOf,
    pathOf,
    claim(entry, extent) {
      const { name, parent } = entry;
      const start = extent.offset / SECTOR_SIZE;
      const known = owners.get(start);
      if (isRepeatable && known !== undefined && starts.at(known) === start && isAt(known, entry)) {
        return known;
      }
      const length = parent === undefined ? 0 : lengths.at(parent) + 1 + name.length;
      if (length > MAX_PATH) throw createLengthError(pathOf(entry));
      const own = starts.length();
      const count = Math.max(1, Math.ceil(extent.size / SECTOR_SIZE));
      for (let sector = start; sector < start + count; sector++) {
        const before = owners.get(sector);
        if (before !== undefined) {
          const isSame = starts.at(before) === start;
          throw createConflict(isSame, [pathOf(entry), pathOf(entryOf(before))]);
        }
        owners.set(sector, own);
      }
      names.push(name);
      parents.push(parent ?? 0);
      starts.push(start);
      lengths.push(length);
      return own;
    },
  };
}

const createLengthError = (path: string): IntegrityError =>
  new IntegrityError(
    'iso.path-too-long',
    `directory ${path.slice(0, 100)}... has a path of more than ${MAX_PATH} characters`,
  );

function createConflict(
  isSame: boolean,
  [path, before]: readonly [string, string],
): IntegrityError {
  return isSame
    ? new IntegrityError(
        'iso.looping-directory',
        `directory ${path} has the same extent as directory ${before}`,
      )
    : new IntegrityError(
        'iso.overlapping-directory',
        `directory ${path} overlaps directory ${before}`,
      );
}
