import { UsageError } from '../base/errors.ts';
import { isErrno } from '../base/files.ts';
import { openIso, type IsoImage } from '../iso/open-iso.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is no directory',
  EISDIR: 'it is a directory',
  EACCES: 'reading it is not permitted',
  EPERM: 'reading it is not permitted',
  ELOOP: 'its symbolic links are a loop',
  ENAMETOOLONG: 'its name is too long',
};

/**
 * Opens an ISO that somebody named.
 *
 * @throws UsageError `iso.unreadable`; what `openIso` throws
 */
export async function openMedium(path: string): Promise<IsoImage> {
  try {
    return await openIso(path);
  } catch (cause) {
    const code = Object.keys(REASONS).find((code) => isErrno(cause, code));
    if (code === undefined) throw cause;
    throw new UsageError('iso.unreadable', `${path} cannot be read: ${REASONS[code] ?? code}`);
  }
}
