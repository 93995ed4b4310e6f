import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { digestFromHex, type Digest } from './digest.ts';
import { readDeviceSize } from './disk/block-device.ts';
import { explainReadError } from './disk/disk-errors.ts';
import { openToRead, reopen } from './disk/open-file.ts';
import { IntegrityError } from './errors.ts';

/** Bytes that are read at any offset: a file, a block device, or a remote object. */
export type RandomAccess = {
  /** A path of this machine, or the printable name of a remote object. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** True for a block device, which may be larger than what is written on it. */
  readonly isDevice?: boolean;
  /**
   * Reads exactly `size` bytes from `offset`, into `buffer` if one is given that has room for them.
   *
   * @throws IntegrityError `iso.out-of-bounds` if they are not all inside the file
   */
  readonly read: (offset: number, size: number, buffer?: Buffer) => Promise<Buffer>;
  /**
   * Reads like `read`, past the page cache where the system can: holes take a fifteenth of the time. Absent for
   * remote objects.
   */
  readonly readUncached?: (offset: number, size: number, buffer: Buffer) => Promise<Buffer>;
  readonly close: () => Promise<void>;
};

export type ByteRange = { readonly offset: number; readonly size: number };

/** A remote object that is read by ranges: a URL, an object, an artifact. */
export type RangeSource = {
  /** Printable, without credentials. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Changes when the bytes change (strong ETag, digest); absent if the source has no such value. */
  readonly version?: string;
  /** The bytes of the range, in order; may end early when the connection dies (the caller resumes). */
  readonly open: (
    range: { readonly offset: number; readonly size: number },
    signal?: AbortSignal,
  ) => Promise<AsyncIterable<Uint8Array>>;
};

/**
 * Opens a file or a block device that a user named, for reading.
 *
 * @throws ConfigError `iso.unreadable`; during reads, DiskError `disk.broken`
 */
export async function openRandomAccess(path: string): Promise<RandomAccess> {
  const explain = (error: unknown): never => {
    throw explainReadError(error, path);
  };
  const file = await openToRead(path).catch(explain);
  const stats = await file.stat();
  const fileSize = stats.isBlockDevice() ? await readDeviceSize(stats) : stats.size;
  const read: RandomAccess['read'] = async (offset, size, buffer = Buffer.allocUnsafe(size)) => {
    requireInside({ offset, size }, fileSize);
    const bytes = buffer.subarray(0, size);
    for (let done = 0; done < size;) {
      const reading = file.read(bytes, done, size - done, offset + done);
      const { bytesRead } = await reading.catch(explain);
      if (bytesRead === 0) requireInside({ offset, size }, offset + done);
      done += bytesRead;
    }
    return bytes;
  };
  let direct: Promise<FileHandle | undefined> | undefined;
  return {
    path,
    size: fileSize,
    isDevice: stats.isBlockDevice(),
    read,
    async readUncached(offset, size, buffer) {
      requireInside({ offset, size }, fileSize);
      const opened = await (direct ??= openDirect(file));
      const reading = opened?.read(buffer, 0, size, offset);
      // Refused for unaligned bytes; an error of the medium comes again, and with its explanation.
      const found = await reading?.catch(() => undefined);
      return found?.bytesRead === size ? buffer.subarray(0, size) : read(offset, size, buffer);
    },
    async close() {
      await (await direct)?.close();
      await file.close();
    },
  };
}

/** Undefined where the system has no direct I/O. */
const openDirect = (file: FileHandle): Promise<FileHandle | undefined> =>
  reopen(file, constants.O_RDONLY | constants.O_DIRECT).catch(() => undefined);

const PIECE = 4 * 2 ** 20;

/**
 * Computes the digest of a range, in pieces.
 *
 * @param options.onProgress called for every piece with the bytes of the range so far
 * @throws the signal's reason; errors of reading
 */
export async function digestRange(
  read: RandomAccess['read'],
  { offset, size }: ByteRange,
  {
    signal,
    onProgress,
  }: { readonly signal: AbortSignal; readonly onProgress?: (bytes: number) => void },
): Promise<Digest> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.min(PIECE, size)); // a new one for each piece costs more than the hash
  for (let done = 0; done < size;) {
    signal.throwIfAborted();
    const bytes = await read(offset + done, Math.min(PIECE, size - done), buffer);
    hash.update(bytes);
    done += bytes.length;
    onProgress?.(done);
  }
  return digestFromHex(hash.digest('hex'));
}

/** @throws IntegrityError `iso.out-of-bounds` */
export function requireInside(range: ByteRange, fileSize: number): void {
  if (range.offset >= 0 && range.size >= 0 && range.offset + range.size <= fileSize) return;
  throw new IntegrityError(
    'iso.out-of-bounds',
    `bytes ${range.offset} to ${range.offset + range.size} are outside of the image, which has ${fileSize} bytes`,
    { expected: `at most ${fileSize}`, found: String(range.offset + range.size) },
  );
}
