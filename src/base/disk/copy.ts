import { type FileHandle, rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { isErrno } from '../errors.ts';
import { nameAside } from './aside.ts';
import { createFile, openForeign, openForeignSole, cloneToNew } from './open-file.ts';

/**
 * Copies a file that others may change to a new one that only we can. The source may be a link.
 *
 * @throws DiskError `file.not-regular`; the system's errors
 */
export const copyToNew = async (from: string, to: string, signal: AbortSignal): Promise<void> =>
  copyOpen(await openForeign(from), to, { signal });

/**
 * Copies a path that was listed as a file in a folder that others write to. An entry that another
 * user put there under this name may lead to a file that only we may read: no link is followed,
 * and a file with other names is not taken.
 */
export const copyListedToNew = async (
  from: string,
  to: string,
  options: { readonly limit: number; readonly signal: AbortSignal },
): Promise<void> => copyOpen(await openForeignSole(from), to, options);

/** Closes the source. */
async function copyOpen(
  source: FileHandle,
  to: string,
  { limit = Infinity, signal }: { readonly limit?: number; readonly signal: AbortSignal },
): Promise<void> {
  const target = await createFile(to).catch(async (error: unknown) => {
    await source.close();
    throw error;
  });
  const reading = source.createReadStream({ end: limit - 1, highWaterMark: 1 << 20 });
  await pipeline(reading, target.createWriteStream(), { signal });
}

/**
 * Gives `path` the bytes of another file by sharing its blocks, which takes no time and no room, as
 * on XFS and btrfs. Any file at `path` is replaced. Not synced.
 *
 * @returns false, and nothing has changed, if the file system does not clone
 */
export async function cloneFile(from: string, path: string): Promise<boolean> {
  const aside = await nameAside(path);
  try {
    await cloneToNew(from, aside);
    await rename(aside, path);
    return true;
  } catch (error) {
    await rm(aside, { force: true });
    if (isErrno(error, ...NO_CLONES)) return false;
    throw error;
  }
}

/** Errors of ioctl_ficlone(2) if the files cannot share blocks, or for an argument it does not accept. */
const NO_CLONES = [
  'ENOTSUP',
  'EOPNOTSUPP',
  'EXDEV',
  'EINVAL',
  'ENOTTY',
  'ENOSYS',
  'ENOENT',
  'EACCES',
  'EPERM',
];
