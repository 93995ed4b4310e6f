import { createBudget, type Budget } from '../base/budget.ts';
import { IntegrityError } from '../base/errors.ts';
import { SECTOR_SIZE } from './extent.ts';
import type { RandomAccess } from './random-access.ts';

/** Where directories and system use entries are read from, and what reading them may cost in all. */
export type StructureSource = Pick<RandomAccess, 'read'> & {
  readonly budget: Budget<keyof typeof LIMITS>;
  /** A sector; those near it are read with it, because the areas of a directory follow each other. */
  readonly readContinued: (sector: number) => Promise<Uint8Array>;
};

export const TOO_MUCH_STRUCTURE = 'iso.too-much-structure';

/**
 * For what one reading takes of an image, directories that are read again included. An image of a mirror
 * takes about 100 records, and no pass reads a directory more than twice.
 */
const LIMITS = {
  'bytes of directories': 1 << 30,
  'directory records': 600_000,
  'blocks with continuation areas': 3_000,
  'system use entries': 4_000_000,
  'characters of paths': 1 << 25,
};

/** Sectors that are read at once, and how many such blocks are cached. */
const BLOCK = 16;
const KEPT_BLOCKS = 8;

export function createStructureSource({
  read,
  size,
}: Pick<RandomAccess, 'read' | 'size'>): StructureSource {
  const budget = createBudget(
    LIMITS,
    (kind, limit) =>
      new IntegrityError(
        TOO_MUCH_STRUCTURE,
        `image makes its readers read more than ${limit} ${kind}`,
        { expected: `at most ${limit}`, hint: 'give an image from its maker' },
      ),
  );
  const blocks = new Map<number, Promise<Uint8Array>>();
  const readBlock = (block: number): Promise<Uint8Array> => {
    budget.take('blocks with continuation areas', 1);
    const start = block * BLOCK * SECTOR_SIZE;
    return read(start, Math.min(BLOCK * SECTOR_SIZE, size - start));
  };
  return {
    read,
    budget,
    async readContinued(sector) {
      const offset = sector * SECTOR_SIZE;
      if (offset + SECTOR_SIZE > size) return read(offset, SECTOR_SIZE); // which says so
      const block = Math.floor(sector / BLOCK);
      const bytes = blocks.get(block) ?? readBlock(block);
      blocks.set(block, bytes);
      const [oldest = block] = blocks.keys();
      if (blocks.size > KEPT_BLOCKS) blocks.delete(oldest);
      const at = (sector % BLOCK) * SECTOR_SIZE;
      return (await bytes).subarray(at, at + SECTOR_SIZE);
    },
  };
}
