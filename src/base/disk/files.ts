import { createHash } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  fstatSync,
  readSync,
  realpathSync,
  type ReadStream,
} from 'node:fs';
import { mkdir, stat, statfs, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../digest.ts';
import { isErrno, ConfigError } from '../errors.ts';
import { isUnreadable, explainWriteError } from './disk-errors.ts';
import { openDirectory, openForeign, openToReadSync } from './open-file.ts';
import { publishNew } from './publish.ts';

/*
 * Owns whole files: atomic writes, directories, bounded reads of files that a user named, digests, and sizes.
 */

/**
 * Writes aside, syncs, renames: a reader sees the old file or the whole new one. Mode applies to
 * the new file; 0o600 is the default because most of our files may carry secrets.
 *
 * @throws DiskError `disk.full`, `disk.not-writable`, `disk.broken`
 */
export async function writeFileAtomic(path: string, data: FileData, mode = 0o600): Promise<void> {
  await placeFile(path, data, mode);
  try {
    await syncDirectory(dirname(path));
  } catch (error) {
    throw explainWriteError(error, path);
  }
}

type FileData = string | Uint8Array | readonly Uint8Array[];

/** Like {@link writeFileAtomic}, but a power cut may take the whole file again: for what can be fetched. */
export async function placeFile(path: string, data: FileData, mode = 0o600): Promise<void> {
  const parts = typeof data === 'string' || data instanceof Uint8Array ? [data] : data;
  const write = (): Promise<void> =>
    publishNew(path, { mode }, async (file) => {
      for (const part of parts) await file.writeFile(part);
    });
  try {
    // Mostly the directory is there.
    await write().catch(async (error: unknown) => {
      if (!isErrno(error, 'ENOENT')) throw error;
      await makeDirectory(dirname(path));
      await write();
    });
  } catch (error) {
    throw explainWriteError(error, path);
  }
}

/**
 * Makes a directory and those above it that are missing. Node's own `recursive` never returns if
 * the kernel denies that a new name could exist at all, as in /proc.
 *
 * @param mode permission bits of the directories that are made
 */
export async function makeDirectory(path: string, mode = 0o777): Promise<void> {
  try {
    await makeOne(path, mode);
  } catch (error) {
    const parent = dirname(path);
    if (!isErrno(error, 'ENOENT') || parent === path) throw error;
    // Another call may have made the parent since; if it already existed, this fails again.
    if (!(await isDirectory(parent))) await makeDirectory(parent, mode);
    await makeOne(path, mode);
  }
}

async function makeOne(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, mode);
  } catch (error) {
    if (!(await isDirectory(path))) throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

/** Makes a rename durable: on Linux the directory itself must be synced. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await openDirectory(path, { follow: true });
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/**
 * Reads a whole file, also through a link. Never waits for a pipe's writer.
 *
 * @param most bytes of a file that is read; a larger one counts as absent
 * @throws DiskError `file.not-regular`; the system's errors
 */
export async function readFileIfPresent(
  path: string,
  most = Infinity,
): Promise<Buffer | undefined> {
  try {
    const file = await openForeign(path);
    try {
      return most < Infinity && (await file.stat()).size > most ? undefined : await file.readFile();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

export type InputFileRules = {
  /** The domain of the codes of refusals, e.g. `config` for `config.unreadable`. */
  readonly domain: string;
  /** Bytes. Default: 64 MiB. */
  readonly limit?: number;
  /** Default: to correct or remove the file. */
  readonly hint?: string;
};

/**
 * The bytes of a file that a user named. No pipe, device or file of the kernel is read: to read
 * one may block, or have no end. If a file grows meanwhile, no more than the limit is read.
 *
 * @throws ConfigError `<domain>.unreadable` if it is not a regular file, `<domain>.too-large`; the
 * system's error if there is no file, for folders and if reading is not permitted
 */
export function readInputFile(path: string, { domain, limit = 64 << 20 }: InputFileRules): Buffer {
  const file = openWithoutWaiting(path, domain);
  try {
    const stats = fstatSync(file);
    const isPlain = stats.isFile() && !/^\/(?:proc|sys)\//.test(realpathSync(path));
    if (!isPlain && !stats.isDirectory()) throw explainKind(path, domain);
    const chunks: Buffer[] = [];
    for (let size = stats.size, read = 0; ; size = read) {
      if (size > limit) throw explainSize(path, { domain, limit, size });
      const chunk = Buffer.allocUnsafe(Math.min(limit + 1 - read, Math.max(stats.size + 1, 4096)));
      const count = readSync(file, chunk);
      if (count === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, count));
      read += count;
    }
  } finally {
    closeSync(file);
  }
}

/**
 * Reads a file or folder whose name was found, not given: the user must also correct a link to
 * nothing, or a folder in place of a file.
 *
 * @throws ConfigError `<domain>.unreadable` for a path that the system does not let us read; errors of `read`
 */
export function readListed<T>(path: string, rules: InputFileRules, read: () => T): T {
  const { domain, hint = 'correct or remove it' } = rules;
  try {
    return read();
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError(`${domain}.unreadable`, `${path} cannot be read`, {
      cause,
      hint,
    });
  }
}

function openWithoutWaiting(path: string, domain: string): number {
  try {
    return openToReadSync(path);
  } catch (error) {
    throw isErrno(error, 'ENXIO') ? explainKind(path, domain) : error; // a socket
  }
}

const explainKind = (path: string, domain: string): ConfigError =>
  new ConfigError(`${domain}.unreadable`, `${path} is not a regular file`, {
    hint: 'name a regular file',
  });

const explainSize = (
  path: string,
  { domain, limit, size }: Required<Omit<InputFileRules, 'hint'>> & { readonly size: number },
): ConfigError =>
  new ConfigError(
    `${domain}.too-large`,
    `${path} has ${size} bytes, but at most ${limit} are allowed`,
    {
      expected: `at most ${limit}`,
      found: String(size),
      hint: 'name a smaller file',
    },
  );

export function unlessAbsent<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG')) return undefined;
    throw error;
  }
}

export async function hasFile(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

/** SHA-256 of a whole file, read in 1 MiB pieces. Throws the signal's reason between two of them. */
export const digestFile = (path: string, signal?: AbortSignal): Promise<Digest> =>
  digestStream(createReadStream(path, { highWaterMark: PIECE }), signal);

/** SHA-256 of an open file, which stays open; otherwise like {@link digestFile}. */
export const digestOpenFile = (file: FileHandle, signal?: AbortSignal): Promise<Digest> =>
  digestStream(file.createReadStream({ start: 0, autoClose: false, highWaterMark: PIECE }), signal);

const PIECE = 1 << 20;

async function digestStream(stream: ReadStream, signal?: AbortSignal): Promise<Digest> {
  const hash = createHash('sha256');
  for await (const chunk of stream) {
    signal?.throwIfAborted();
    hash.update(chunk as Buffer);
  }
  return `sha256:${hash.digest('hex')}`;
}

/** SHA-256 of a small file, read synchronously, in a thread that no other code waits for. */
export function digestFileSync(path: string): Digest {
  const hash = createHash('sha256');
  const file = openToReadSync(path);
  try {
    const chunk = Buffer.allocUnsafe(1 << 18);
    for (let read = -1; read !== 0;) {
      read = readSync(file, chunk);
      hash.update(chunk.subarray(0, read));
    }
  } finally {
    closeSync(file);
  }
  return `sha256:${hash.digest('hex')}`;
}

/** Bytes of disk that a file has taken, holes not counted; 0 if there is no file. */
export async function readAllocated(path: string): Promise<number> {
  try {
    return (await stat(path)).blocks * 512; // POSIX leaves the unit open; on Linux it is 512 bytes
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return 0;
    throw error;
  }
}

/** Bytes an unprivileged process may still write on the file system that holds `path`. */
export async function readFreeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** Bytes; 0 if there is no file, or another process removed it first. */
export async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return 0;
    throw error;
  }
}

/** Writes all of the bytes: one call may write less. */
export async function writeWhole(
  file: Pick<FileHandle, 'write'>,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}
