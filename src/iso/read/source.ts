import { createBudget, type DecodeBudget } from '../../base/decode/limits.ts';
import { IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { ByteRange, RandomAccess } from '../../base/random-access.ts';
import { SECTOR_SIZE } from '../extent.ts';

/** The source of directories and system use entries, with a budget for all reads. */
export type StructureSource = Pick<RandomAccess, 'read'> & {
  readonly budget: DecodeBudget<keyof typeof LIMITS>;
  /** Reads a sector, together with those near it, because the areas of a directory follow each other. */
  readonly readContinued: (sector: number) => Promise<Uint8Array>;
};

export const TOO_MUCH_STRUCTURE = 'iso.too-much-structure';

/**
 * Limits of one reading of an image, directories that are read again included. A medium of 3,000 images has
 * 330,000 files and directories, and 650,000 records; its registry reads some directories several times.
 */
const LIMITS = {
  'bytes of directories': 1 << 30,
  'directory records': 750_000,
  'blocks with continuation areas': 3_000,
  'system use entries': 6_000_000,
  'characters of paths': 80_000_000,
};

/** Sectors that are read at once, and number of such blocks in the cache: 4 MiB. */
const BLOCK = 32;
const CACHED_BLOCKS = 64;

export function createStructureSource({
  read,
  size,
}: Pick<RandomAccess, 'read' | 'size'>): StructureSource {
  const budget = createBudget(
    LIMITS,
    (kind, limit) =>
      new IntegrityError(TOO_MUCH_STRUCTURE, `reading the image needs more than ${limit} ${kind}`, {
        expected: `at most ${limit}`,
        hint: 'use the image as its publisher made it',
      }),
  );
  const blocks = createBlocks({ read, size });
  return {
    read: (offset, size) => blocks.read({ offset, size }) ?? read(offset, size),
    budget,
    async readContinued(sector) {
      const range = { offset: sector * SECTOR_SIZE, size: SECTOR_SIZE };
      return (
        blocks.read(range, () => {
          budget.take('blocks with continuation areas', 1);
        }) ?? read(range.offset, range.size)
      );
    },
  };
}

/** A cache of blocks: directories and their areas follow each other, so one read brings many. */
function createBlocks({ read, size }: Pick<RandomAccess, 'read' | 'size'>) {
  const blocks = new Map<number, Promise<Buffer>>();
  const readBlock = (block: number): Promise<Buffer> => {
    const start = block * BLOCK * SECTOR_SIZE;
    return read(start, Math.min(BLOCK * SECTOR_SIZE, size - start));
  };
  let newest = -1;
  /** Blocks by number; recently used ones are last. */
  const use = (block: number): Promise<Buffer> => {
    const bytes = blocks.get(block) ?? readBlock(block);
    if (block === newest) return bytes;
    newest = block;
    blocks.delete(block);
    blocks.set(block, bytes);
    if (blocks.size > CACHED_BLOCKS) blocks.delete(blocks.keys().next().value ?? block);
    return bytes;
  };
  return {
    /** A view of a block; undefined if the range is not inside one block of the image. */
    read(range: ByteRange, onMiss = (): void => undefined): Promise<Buffer> | undefined {
      const block = Math.floor(range.offset / (BLOCK * SECTOR_SIZE));
      const at = range.offset - block * BLOCK * SECTOR_SIZE;
      const end = range.offset + range.size;
      if (at + range.size > BLOCK * SECTOR_SIZE || end > size || range.offset < 0) return undefined;
      if (!blocks.has(block)) onMiss();
      return use(block).then(
        (bytes) => bytes.subarray(at, at + range.size),
        () => read(range.offset, range.size), // a worn disc lost other sectors of the block
      );
    },
  };
}

/** Adds what was being read to an integrity error: one with the same code, whose cause is the original. */
export async function whileReading<Result>(
  what: string,
  work: () => Promise<Result> | Result,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw explainReading(what, error);
  }
}

/** The error to throw in place of `error`: unchanged if it is not an IntegrityError. */
export function explainReading(what: string, error: unknown): unknown {
  if (!(error instanceof IntegrityError)) return error;
  return new IntegrityError(error.code, `reading ${what}`, {
    cause: error,
    ...withoutUndefined({ hint: error.hint }),
  });
}

/** The messages of an error and its causes, outermost first, in one line. */
export function formatCauses(error: Error): string {
  const inner = error.cause instanceof Error ? `: ${formatCauses(error.cause)}` : '';
  return error.message + inner;
}
