import type { Stats } from 'node:fs';
import { ConfigError, DiskError, isErrno, type ErrorDetails } from '../errors.ts';

type Kind = 'full' | 'unwritable' | 'broken' | 'tooLarge';

/**
 * The code and hint for a kind of failure; if there is no entry, the cause is passed on as it is.
 */
type Answers = Readonly<Partial<Record<Kind, { readonly code: string; readonly hint: string }>>>;

/** Errors of the system for a path that the user can correct. */
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

/** True if the system reports that a path named by a user cannot be read. */
export const isUnreadable = (error: unknown): boolean => reasonOf(error) !== undefined;

/**
 * Turns an error of the system for an ISO or a delta that a user named into a ConfigError or
 * DiskError; anything else is returned as it is.
 */
export function explainReadError(cause: unknown, path: string): unknown {
  if (isErrno(cause, 'EIO')) {
    return new DiskError('disk.broken', `the device answers with an error for "${path}"`, {
      cause,
      hint: 'look for the device in the kernel log, or name another copy',
    });
  }
  const reason = reasonOf(cause);
  return reason === undefined
    ? cause
    : unreadable(path, reason, { cause: inOurWords(cause as NodeJS.ErrnoException, reason) });
}

/** The system's error with our words: its own would only repeat the message. */
const inOurWords = ({ code, syscall, path }: NodeJS.ErrnoException, reason: string): Error =>
  Object.assign(new Error(reason), { code, syscall, path });

const reasonOf = (error: unknown): string | undefined =>
  Object.entries(REASONS).find(([code]) => isErrno(error, code))?.[1];

/**
 * True if the device answers with an error, in the system's form or as `explainReadError` has it.
 */
export const isBroken = (error: unknown): boolean => isErrno(error, 'EIO', 'disk.broken');

/**
 * The refusal of a folder, and of a pipe or a terminal: reading one may take forever, and neither
 * can be read twice.
 */
export const notReadable = (path: string, stats: Stats): ConfigError =>
  stats.isDirectory()
    ? unreadable(path, 'it is a directory')
    : unreadable(path, 'it is neither a regular file nor a block device', {
        hint: 'copy its contents to a file, and name that file',
      });

const unreadable = (path: string, reason: string, details: ErrorDetails = {}): ConfigError =>
  new ConfigError('iso.unreadable', `${path} cannot be read: ${reason}`, details);

const AGAIN = 'free some space and run the same command again';
const LOOK = 'look for the device in the kernel log, or';

const REASONS_ERRORS: Readonly<Record<Kind, string>> = {
  full: 'the disk is full: no space left for',
  unwritable: 'nothing can be written to',
  broken: 'the device answers with an error for',
  tooLarge: 'the file system cannot store a file as large as',
};

/** Answers for an output, which a repeated command continues. */
const OF_OUTPUTS: Answers = {
  full: { code: 'output.full', hint: `${AGAIN}: it continues where it stopped` },
  unwritable: { code: 'output.unwritable', hint: 'name a writable place with --output' },
  broken: { code: 'output.broken', hint: `${LOOK} name another place with --output` },
  tooLarge: { code: 'output.too-large', hint: 'use a file system without a 4 GiB limit' },
};

/** Answers for any other file. */
const OF_FILES: Answers = {
  full: { code: 'disk.full', hint: AGAIN },
  unwritable: { code: 'disk.not-writable', hint: 'choose a writable place' },
  broken: { code: 'disk.broken', hint: `${LOOK} choose another place` },
};

/** Answers for files in the work directory. */
const OF_WORK: Answers = {
  ...OF_FILES,
  full: { code: 'disk.full', hint: `${AGAIN}: the cache is kept` },
  unwritable: { code: 'disk.not-writable', hint: 'choose another directory with --work-dir' },
};

/**
 * Turns an error of the disk for the output or a file next to it into a DiskError; anything else
 * is returned as it is.
 */
export function explainOutputError(cause: unknown, path: string): unknown {
  const kind = isErrno(cause, 'ENOENT', 'EEXIST') ? 'unwritable' : kindOf(cause);
  return explain(cause, { kind, what: `"${path}"`, answers: OF_OUTPUTS });
}

/**
 * Turns an error of the disk for any other file that is written into a DiskError; anything else is
 * returned as it is.
 */
export const explainWriteError = (cause: unknown, path: string): unknown =>
  explain(cause, { kind: kindOf(cause), what: `"${path}"`, answers: OF_FILES });

/**
 * Turns an error of the disk for files in a directory of the work directory, with `needed` bytes,
 * into a DiskError; anything else is returned as it is.
 */
export function explainDiskFailure(
  cause: unknown,
  { directory, needed }: { readonly directory: string; readonly needed: number },
): unknown {
  const kind = kindOf(cause);
  const what = kind === 'full' ? `${needed} bytes in "${directory}"` : `"${directory}"`;
  return explain(cause, { kind, what, answers: OF_WORK });
}

/** Runs work on the file of this path, and explains errors of the disk as those of an output. */
export async function explaining<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw explainOutputError(error, path);
  }
}

function kindOf(cause: unknown): Kind | undefined {
  if (isErrno(cause, 'ENOSPC', 'EDQUOT')) return 'full';
  if (isErrno(cause, 'EIO')) return 'broken';
  if (isErrno(cause, 'EFBIG')) return 'tooLarge';
  const denied = isErrno(cause, 'EACCES', 'EROFS', 'EPERM', 'EISDIR', 'ENOTDIR');
  return denied ? 'unwritable' : undefined;
}

function explain(
  cause: unknown,
  { kind, what, answers }: { kind: Kind | undefined; what: string; answers: Answers },
): unknown {
  const answer = kind && answers[kind];
  if (!answer) return cause;
  return new DiskError(answer.code, `${REASONS_ERRORS[kind]} ${what}`, {
    cause,
    hint: answer.hint,
  });
}
