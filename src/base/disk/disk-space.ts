import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DiskError } from '../errors.ts';
import { makeDirectory } from './files.ts';
import { formatSize } from '../text/quantities.ts';

/** statfs(2): file systems whose files end before 4 GiB. */
const FAT_TYPES = new Set([0x4d44]);
const FAT_LIMIT = 2 ** 32 - 1;

export type SpaceNeeds = {
  /** Path of the output. */
  readonly output: string;
  /** Bytes of the ISO, or of what is known of it so far. */
  readonly isoSize: number;
  /** Bytes that an interrupted build has taken there already. */
  readonly allocated: number;
  /** Further bytes for the cache, when it is on the same file system; else 0. */
  readonly cacheSize: number;
};

/**
 * Fails before anything is downloaded that would not fit.
 *
 * @returns free bytes of the output's file system
 * @throws DiskError `disk.too-small`, `disk.file-too-large`
 */
export async function requireSpace(needs: SpaceNeeds): Promise<number> {
  const directory = dirname(needs.output);
  await makeDirectory(directory);
  const { bavail, bsize, type } = await statfs(directory);
  if (FAT_TYPES.has(type) && needs.isoSize > FAT_LIMIT) {
    throw new DiskError(
      'disk.file-too-large',
      `"${directory}" is on FAT, which holds no file of ${formatSize(needs.isoSize)}`,
      {
        expected: `at most ${FAT_LIMIT}`,
        found: String(needs.isoSize),
        hint: 'write to another file system',
      },
    );
  }
  const free = bavail * bsize;
  const needed = Math.max(0, needs.isoSize - needs.allocated) + needs.cacheSize;
  if (needed <= free) return free;
  throw new DiskError(
    'disk.too-small',
    `the build needs ${formatSize(needed)} in "${directory}", but only ${formatSize(free)} are free: ` +
      `${formatSize(needed - free)} are missing`,
    {
      expected: String(needed),
      found: String(free),
      hint: 'free some space, or name a larger disk with --output and --work-dir',
    },
  );
}
