import type { Stats } from 'node:fs';
import { ConfigError, DiskError, isErrno, type ErrorDetails } from '../errors.ts';

/** What the system says of a path that the user can correct. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'a part of its path is not a directory',
  EISDIR: 'it is a directory',
  EACCES: 'reading it is not permitted',
  EPERM: 'reading it is not permitted',
  ELOOP: 'its symbolic links are a loop',
  ENAMETOOLONG: 'its name is too long',
  ENOMEDIUM: 'the drive is empty',
  ENXIO: 'it is a socket, or a device that the kernel does not have',
  ENODEV: 'the kernel does not have such a device',
};

const reasonOf = (error: unknown): string | undefined =>
  Object.entries(REASONS).find(([code]) => isErrno(error, code))?.[1];

/** Whether the system says that what a user named cannot be read. */
export const isUnreadable = (error: unknown): boolean => reasonOf(error) !== undefined;

/** What the system says of an ISO or a delta that a user named, as ConfigError or DiskError; anything else as it is. */
export function explainReadError(cause: unknown, path: string): unknown {
  if (isErrno(cause, 'EIO')) {
    return new DiskError('disk.broken', `the device answers with an error for "${path}"`, {
      cause,
      hint: 'look for the device in the log of the kernel, or name another copy',
    });
  }
  const reason = reasonOf(cause);
  return reason === undefined
    ? cause
    : unreadable(path, reason, { cause: inOurWords(cause as NodeJS.ErrnoException, reason) });
}

/** The system's own words say the same again. */
const inOurWords = ({ code, syscall, path }: NodeJS.ErrnoException, reason: string): Error =>
  Object.assign(new Error(reason), { code, syscall, path });

/** Whether the device answers with an error, by the system or as `explainReadError` has it. */
export const isBroken = (error: unknown): boolean => isErrno(error, 'EIO', 'disk.broken');

/** The refusal of a folder, and of a pipe or a terminal: to read one may take for ever, and none can be read twice. */
export const notReadable = (path: string, stats: Stats): ConfigError =>
  stats.isDirectory()
    ? unreadable(path, 'it is a directory')
    : unreadable(path, 'it is neither a regular file nor a block device', {
        hint: 'copy what it gives into a file, and give that',
      });

const unreadable = (path: string, reason: string, details: ErrorDetails = {}): ConfigError =>
  new ConfigError('iso.unreadable', `${path} cannot be read: ${reason}`, details);
