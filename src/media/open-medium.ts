import { stat } from 'node:fs/promises';
import { ConfigError, isErrno } from '../base/errors.ts';
import { withoutUndefined } from '../base/members.ts';
import { openIso, type IsoImage } from '../iso/open-iso.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is not a directory',
  EACCES: 'reading it is not permitted',
  EPERM: 'reading it is not permitted',
  ELOOP: 'its symbolic links are a loop',
  ENAMETOOLONG: 'its name is too long',
};

/**
 * Opens an ISO that somebody named.
 *
 * @throws ConfigError `iso.unreadable`; what `openIso` throws
 */
export async function openMedium(path: string): Promise<IsoImage> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) throw unreadable(path, 'it is a directory');
    if (!found.isFile()) throw unreadable(path, 'it is not a regular file', COPY);
    return await openIso(path);
  } catch (cause) {
    const code = Object.keys(REASONS).find((code) => isErrno(cause, code));
    throw code === undefined ? cause : unreadable(path, REASONS[code] ?? code);
  }
}

/** A device has no size that a file system tells. */
const COPY = 'copy the device or pipe into a file, and give that';

const unreadable = (path: string, reason: string, hint?: string): ConfigError =>
  new ConfigError('iso.unreadable', `${path} cannot be read: ${reason}`, {
    ...withoutUndefined({ hint }),
  });
