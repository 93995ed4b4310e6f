import { createColumn, createTextColumn } from '../../base/columns.ts';
import { createClaims, type DirectoryClaims, type DirectoryEntry } from '../directory/claims.ts';
import type { ByteRange } from '../../base/random-access.ts';

/** A directory where it stands on the volume, Rock Ridge's relocations not undone. */
export type FoundDirectory = DirectoryEntry & {
  /** Bytes as latin1. */
  readonly identifier: string;
  /** Sector that its record names. */
  readonly sector: number;
  /** That of its parent. */
  readonly parentSector: number;
};

/** The directories of one tree: about 200 bytes are held of each. */
export type FoundDirectories = Pick<DirectoryClaims, 'pathOf'> & {
  /**
   * Returns the number of the directory.
   *
   * @throws what {@link DirectoryClaims.claim} throws
   */
  readonly add: (directory: FoundDirectory, extent: ByteRange) => number;
  readonly count: () => number;
  /** By its sector. */
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
