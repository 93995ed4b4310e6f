import { rename, rm } from 'node:fs/promises';
import { isErrno } from '../errors.ts';
import { nameAside } from './aside.ts';
import { cloneToNew } from './open-file.ts';

/**
 * Gives `path` the bytes of another file by sharing its blocks, which takes no time and no room: XFS and btrfs
 * do. What is at `path` is replaced. Not synced.
 *
 * @returns false, and nothing has changed, where the file system does not clone
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

/** What ioctl_ficlone(2) answers where the two files cannot share blocks, and what it was not given. */
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
