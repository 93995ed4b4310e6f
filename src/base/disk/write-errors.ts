import { isErrno, DiskError } from '../errors.ts';

type Failure = { readonly code: string; readonly reason: string; readonly hint: string };

const AGAIN = 'free some space and run the same command again';
const LOOK = 'look for the device in the log of the kernel, or';

/** What the disk says of an output, which a repeated command continues. */
const OF_OUTPUTS: Readonly<Record<'full' | 'unwritable' | 'broken' | 'tooLarge', Failure>> = {
  full: {
    code: 'output.full',
    reason: 'the disk is full: there is no room for',
    hint: `${AGAIN}: it continues where it stopped`,
  },
  unwritable: {
    code: 'output.unwritable',
    reason: 'nothing can be written to',
    hint: 'name a writable place with --output',
  },
  broken: {
    code: 'output.broken',
    reason: 'the device answers with an error for',
    hint: `${LOOK} name another place with --output`,
  },
  tooLarge: {
    code: 'output.too-large',
    reason: 'the file system cannot store a file as large as',
    hint: 'use a file system without a 4 GiB limit',
  },
};

/** What it says of any other file. */
const OF_FILES: Readonly<Record<'full' | 'unwritable' | 'broken', Failure>> = {
  full: { code: 'disk.full', reason: 'the disk is full: there is no room for', hint: AGAIN },
  unwritable: {
    code: 'disk.not-writable',
    reason: 'nothing can be written to',
    hint: 'choose a place that may be written',
  },
  broken: {
    code: 'disk.broken',
    reason: 'the device answers with an error for',
    hint: `${LOOK} choose another place`,
  },
};

/** What the disk said of the output or of a file beside it, as DiskError; anything else as it is. */
export function explainOutputError(cause: unknown, path: string): unknown {
  const { full, unwritable, broken, tooLarge } = OF_OUTPUTS;
  const unnamed = isErrno(cause, 'ENOENT', 'EEXIST') ? unwritable : undefined;
  const large = isErrno(cause, 'EFBIG') ? tooLarge : undefined;
  return explain(cause, path, unnamed ?? large ?? choose(cause, { full, unwritable, broken }));
}

/** The same for any other file that is written. */
export const explainWriteError = (cause: unknown, path: string): unknown =>
  explain(cause, path, choose(cause, OF_FILES));

/** The same for what is stored in a directory of the work directory: `needed` bytes. */
export function explainDiskFailure(
  cause: unknown,
  { directory, needed }: { readonly directory: string; readonly needed: number },
): unknown {
  const full = {
    code: 'disk.full',
    reason: `there is no room for ${needed} bytes in`,
    hint: `${AGAIN}: what is cached stays`,
  };
  const hint = 'choose another directory with --work-dir';
  const unwritable = { ...OF_FILES.unwritable, hint };
  return explain(cause, directory, choose(cause, { ...OF_FILES, full, unwritable }));
}

/** Runs what touches the file of this path, and explains what the disk says of it as an output. */
export async function explaining<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw explainOutputError(error, path);
  }
}

function choose(cause: unknown, failures: typeof OF_FILES): Failure | undefined {
  if (isErrno(cause, 'ENOSPC', 'EDQUOT')) return failures.full;
  if (isErrno(cause, 'EIO')) return failures.broken;
  const denied = isErrno(cause, 'EACCES', 'EROFS', 'EPERM', 'EISDIR', 'ENOTDIR');
  return denied ? failures.unwritable : undefined;
}

const explain = (cause: unknown, path: string, failure: Failure | undefined): unknown =>
  failure
    ? new DiskError(failure.code, `${failure.reason} "${path}"`, { cause, hint: failure.hint })
    : cause;
