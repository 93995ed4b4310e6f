import { statfsSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError, DiskError, isErrno, SealiftError, type ErrorDetails } from '../errors.ts';

/*
 * Owns what an error of the system for a file means: its code, sentence and hint. Other code asks
 * here and keeps no list of its own.
 */

/** The system's codes for files, by what is wrong; any other code is a bug unless its place knows better. */
const CODES = {
  full: ['ENOSPC', 'EDQUOT'],
  unwritable: ['EACCES', 'EROFS', 'EPERM', 'EISDIR', 'ENOTDIR'],
  broken: ['EIO', 'ESTALE'],
  tooLarge: ['EFBIG'],
  openFiles: ['EMFILE', 'ENFILE'],
  memory: ['ENOMEM'],
  /** fork(2) */
  processes: ['EAGAIN'],
} as const;

type Kind = keyof typeof CODES;

/** Code and hint by kind of failure. A failure of any other kind keeps its original error. */
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

export const isUnreadable = (error: unknown): boolean => reasonOf(error) !== undefined;

/** The system's error for a named ISO or delta, as ConfigError or DiskError; any other error as it is. */
export function explainReadError(cause: unknown, path: string): unknown {
  const reason = reasonOf(cause);
  return reason === undefined
    ? explain(cause, { kind: kindOf(cause), what: `"${path}"`, answers: OF_INPUTS })
    : unreadable(path, reason, { cause: inOurWords(cause as NodeJS.ErrnoException, reason) });
}

/** The system's error with our words: its own would only repeat the message. */
const inOurWords = ({ code, syscall, path }: NodeJS.ErrnoException, reason: string): Error =>
  Object.assign(new Error(reason), { code, syscall, path });

const reasonOf = (error: unknown): string | undefined =>
  Object.entries(REASONS).find(([code]) => isErrno(error, code))?.[1];

/** True if the device answers with an error, in the system's form or that of `explainReadError`. */
export const isBroken = (error: unknown): boolean =>
  isErrno(error, 'disk.broken') || kindOf(error) === 'broken';

/** Refuses a folder, and a pipe or a terminal: reading one may take forever, and is possible once. */
export const notReadable = (path: string, stats: Stats): ConfigError =>
  stats.isDirectory()
    ? unreadable(path, 'it is a directory')
    : unreadable(path, 'it is neither a regular file nor a block device', {
        hint: 'copy its contents to a file, and name that file',
      });

const unreadable = (path: string, reason: string, details: ErrorDetails = {}): ConfigError =>
  new ConfigError('iso.unreadable', `${path} cannot be read: ${reason}`, details);

const AGAIN = 'free some space and run the same command again';
const LARGER = 'use a file system for files of this size, or raise ulimit -f';
const LOOK = 'look for the device in the kernel log, or';

const REASONS_ERRORS: Readonly<Record<Kind, string>> = {
  full: 'the disk is full: no space left for',
  unwritable: 'nothing can be written to',
  broken: 'the device answers with an error for',
  tooLarge: 'the file system cannot store a file as large as',
  openFiles: 'too many files are open to open',
  memory: 'the system has no memory left for',
  processes: 'too many processes run to start',
};

/** The words for a failure: some codes and states of the disk say more than their kind. */
function describeReason(kind: Kind, cause: unknown, place: string | undefined): string {
  if (isErrno(cause, 'EDQUOT')) return 'the disk quota is used up: no space left for';
  if (isErrno(cause, 'EROFS')) return 'the file system is read-only: nothing can be written to';
  if (isErrno(cause, 'ENOSPC') && place !== undefined && hasNoInodes(place)) {
    return 'the file system has no inodes left, though it has free bytes: no file can be made for';
  }
  return REASONS_ERRORS[kind];
}

/** True if a file system counts its files (statfs(2)), and can have no more. */
function hasNoInodes(path: string): boolean {
  try {
    const { files, ffree, bavail } = statfsSync(path);
    return files > 0 && ffree === 0 && bavail > 0;
  } catch {
    return dirname(path) !== path && hasNoInodes(dirname(path)); // it does not exist
  }
}

/** Answers for limits of the process, which are the same for every file. */
const OF_LIMITS: Answers = {
  openFiles: {
    code: 'system.open-files',
    hint: 'raise the limit of open files (ulimit -n), and run the same command again',
  },
  memory: { code: 'system.memory', hint: 'free some memory and run the same command again' },
  processes: {
    code: 'system.processes',
    hint: 'raise the limit of processes (ulimit -u, or that of the container), and run the same command again',
  },
};

/** Explains a limit of the process or the machine; undefined for any other error. */
export function explainLimit(cause: unknown, what: string): DiskError | undefined {
  const kind = kindOf(cause);
  const answer = kind && OF_LIMITS[kind];
  if (!answer) return undefined;
  const { code, hint } = answer;
  return new DiskError(code, `${REASONS_ERRORS[kind]} ${what}`, { cause, hint });
}

/** Answers for a file that is read; one that cannot be read at all has a reason of its own. */
const OF_INPUTS: Answers = {
  ...OF_LIMITS,
  broken: { code: 'disk.broken', hint: `${LOOK} name another copy` },
};

/** Answers for an output, which a repeated command continues. */
const OF_OUTPUTS: Answers = {
  ...OF_LIMITS,
  full: { code: 'output.full', hint: `${AGAIN}: it continues where it stopped` },
  unwritable: { code: 'output.unwritable', hint: 'name a writable place with --output' },
  broken: { code: 'output.broken', hint: `${LOOK} name another place with --output` },
  tooLarge: { code: 'output.too-large', hint: LARGER },
};

/** Answers for any other file. */
const OF_FILES: Answers = {
  ...OF_LIMITS,
  full: { code: 'disk.full', hint: AGAIN },
  unwritable: { code: 'disk.not-writable', hint: 'choose a writable place' },
  broken: { code: 'disk.broken', hint: `${LOOK} choose another place` },
  tooLarge: { code: 'disk.file-too-large', hint: LARGER },
};

const OF_WORK: Answers = {
  ...OF_FILES,
  full: { code: 'disk.full', hint: `${AGAIN}: the cache is kept` },
  unwritable: { code: 'disk.not-writable', hint: 'choose another directory with --work-dir' },
};

/** An error of the disk for the output or a file next to it, as DiskError; any other error as it is. */
export function explainOutputError(cause: unknown, path: string): unknown {
  const kind = isErrno(cause, 'ENOENT', 'EEXIST') ? 'unwritable' : kindOf(cause);
  return explain(cause, { kind, what: `"${path}"`, answers: OF_OUTPUTS, place: path });
}

/** An error of the disk for any other written file, as DiskError; any other error as it is. */
export const explainWriteError = (cause: unknown, path: string): unknown =>
  explain(cause, { kind: kindOf(cause), what: `"${path}"`, answers: OF_FILES, place: path });

/** An error of the disk for files in the work directory, with `needed` bytes, as DiskError. */
export function explainDiskFailure(
  cause: unknown,
  { directory, needed }: { readonly directory: string; readonly needed: number },
): unknown {
  const kind = kindOf(cause);
  const what = kind === 'full' ? `${needed} bytes in "${directory}"` : `"${directory}"`;
  return explain(cause, { kind, what, answers: OF_WORK, place: directory });
}

/** Runs work on the file of this path, and explains errors of the disk as those of an output. */
export async function explaining<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw explainOutputError(error, path);
  }
}

/**
 * True if the system's error is an obstacle on the way to a file that will be written: the place is
 * full, broken, not writable, or its path leads nowhere.
 */
export const isObstacle = (error: unknown): boolean =>
  ['full', 'unwritable', 'broken'].includes(kindOf(error) ?? '') ||
  isErrno(error, 'ENOENT', 'EEXIST', 'ELOOP', 'ENAMETOOLONG');

/**
 * Turns an error of the system that no other code explained into a DiskError; anything else, and a
 * chain with a foreseen failure in it, is returned as it is. The net of the command line: removing,
 * renaming or closing a file can fail at any place, and none of them is a bug.
 */
export function explainSystemError(error: unknown): unknown {
  const chain = listLinks(error);
  if (chain.some((link) => link instanceof SealiftError)) return error;
  if (hasNoMemory(chain)) return noAddressSpace(error);
  const said = chain.find((link) => link instanceof Error && 'syscall' in link);
  const { syscall = '', path } = (said ?? {}) as NodeJS.ErrnoException;
  const kind = kindOf(said);
  // Firewalls refuse connections with EACCES and EPERM.
  if (kind === 'unwritable' && /^(?:connect|bind|listen|spawn)/.test(syscall)) return error;
  const what = path === undefined ? 'a file' : `"${path}"`;
  return explain(error, { kind, what, answers: OF_FILES, place: path });
}

function listLinks(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  for (let link = error; link instanceof Error && chain.length < 16; link = link.cause)
    chain.push(link);
  return chain;
}

/**
 * V8 has no code for memory that it does not get: a RangeError counts as one if a small module of
 * WebAssembly, for which V8 reserves gigabytes of addresses, does not get its memory either.
 */
function hasNoMemory(chain: readonly unknown[]): boolean {
  if (chain.some((link) => isErrno(link, 'ERR_MEMORY_ALLOCATION_FAILED'))) return true;
  return chain.some((link) => link instanceof RangeError) && !hasAddresses();
}

type MemoryType = new (size: { readonly initial: number }) => { readonly buffer: ArrayBuffer };

function hasAddresses(): boolean {
  const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: { Memory: MemoryType } };
  try {
    return new WebAssembly.Memory({ initial: 1 }).buffer.byteLength > 0;
  } catch {
    return false; // another RangeError
  }
}

const noAddressSpace = (cause: unknown): DiskError =>
  new DiskError('system.memory', 'the system gives this process no more memory', {
    cause,
    expected: 'no limit of addresses (ulimit -v unlimited), and enough memory',
    hint: 'limit its memory by a control group instead: systemd-run --scope -p MemoryMax=1G',
  });

const kindOf = (cause: unknown): Kind | undefined =>
  (Object.keys(CODES) as Kind[]).find((kind) => isErrno(cause, ...CODES[kind]));

type Explained = {
  readonly kind: Kind | undefined;
  readonly what: string;
  readonly answers: Answers;
  /** Path whose file system is asked. */
  readonly place?: string | undefined;
};

function explain(cause: unknown, { kind, what, answers, place }: Explained): unknown {
  const answer = kind && answers[kind];
  if (!answer) return cause;
  return new DiskError(answer.code, `${describeReason(kind, cause, place)} ${what}`, {
    cause,
    hint: answer.hint,
  });
}

export const notRegular = (path: string, cause?: unknown): DiskError =>
  new DiskError('file.not-regular', `"${path}" is not a regular file`, {
    cause,
    expected: 'a regular file, or nothing',
    hint: 'remove it, or name another place',
  });

export const otherNames = (path: string, count: number): DiskError =>
  new DiskError('file.other-names', `"${path}" has ${count} names (hard links)`, {
    expected: 'a file with one name',
    found: `${count} hard links`,
    hint: 'replace it with a copy, or name another place',
  });
