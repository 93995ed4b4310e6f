import { createBudget, type Budget } from '../base/budget.ts';
import { IntegrityError } from '../base/errors.ts';
import { SECTOR_SIZE } from './extent.ts';
import type { RandomAccess } from './random-access.ts';

/** Where directories and system use entries are read from, and what reading them may cost in all. */
export type StructureSource = Pick<RandomAccess, 'read'> & {
  readonly budget: Budget<keyof typeof LIMITS>;
  /** A sector; the last one is not read again, because the areas of a directory follow each other. */
  readonly readContinued: (sector: number) => Promise<Uint8Array>;
};

export const TOO_MUCH_STRUCTURE = 'iso.too-much-structure';

/**
 * For everything that one command reads of an image, directories that are read again included. A
 * mirror of 4,000 images has 200,000 files; each directory takes a sector at least.
 */
const LIMITS = {
  'bytes of directories': 1 << 30,
  'directory records': 600_000,
  'sectors with continuation areas': 20_000,
  'system use entries': 4_000_000,
  'characters of paths': 1 << 25,
};

export function createStructureSource({ read }: Pick<RandomAccess, 'read'>): StructureSource {
  const budget = createBudget(
    LIMITS,
    (kind, limit) =>
      new IntegrityError(
        TOO_MUCH_STRUCTURE,
        `image makes its readers read more than ${limit} ${kind}`,
        { expected: `at most ${limit}`, hint: 'give an image from its maker' },
      ),
  );
  let last: { readonly sector: number; readonly bytes: Promise<Uint8Array> } | undefined;
  return {
    ...{ read, budget },
    readContinued(sector) {
      if (last?.sector === sector) return last.bytes;
      budget.take('sectors with continuation areas', 1);
      last = { sector, bytes: read(sector * SECTOR_SIZE, SECTOR_SIZE) };
      return last.bytes;
    },
  };
}
