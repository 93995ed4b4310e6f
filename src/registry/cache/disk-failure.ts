import { DiskError } from '../../base/errors.ts';
import { isErrno } from '../../base/errno.ts';

/** What the disk said, as an error that says what to do; anything else as it is. */
export function explainDiskFailure(
  cause: unknown,
  { directory, needed }: { readonly directory: string; readonly needed: number },
): unknown {
  if (isErrno(cause, 'ENOSPC', 'EDQUOT')) {
    return new DiskError('disk.full', `${directory} has no room for a blob of ${needed} bytes`, {
      cause,
      hint: 'free some space and run the same command again: what is cached stays',
    });
  }
  if (isErrno(cause, 'EROFS', 'EACCES', 'EPERM')) {
    return new DiskError('disk.not-writable', `${directory} cannot be written to`, {
      cause,
      hint: 'choose another directory with --work-dir',
    });
  }
  return cause;
}
