import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Digest } from '../digest.ts';

/** A file that grows front to back, its bytes hashed as they come. */
export type ResumableFile = {
  /** Bytes so far: in the file, or on their way there. */
  readonly size: () => number;
  /**
   * Goes on behind the first `size` bytes of the file, which are read and hashed. What stands behind them
   * stays until it is written over or cut off.
   *
   * @throws the signal's reason, between two blocks
   */
  readonly rewind: (size: number, signal: AbortSignal) => Promise<void>;
  /** Takes the next bytes; the caller must not change them. */
  readonly append: (bytes: Uint8Array) => Promise<void>;
  /** Resolves when all bytes so far are in the file. */
  readonly flush: () => Promise<void>;
  /** Removes what stands behind the bytes so far. */
  readonly cutOff: () => Promise<void>;
  /** Of the bytes so far. */
  readonly digest: () => Digest;
};

/** Bytes that are read or written at once, and that wait while others are written. */
const BLOCK = 1 << 20;

/**
 * Writes what comes while nothing is written, and collects what comes meanwhile: over a slow line all bytes
 * are soon in the file, and over a fast one they are written in large blocks.
 *
 * @param file open to read and write, not to append; the caller closes it, and syncs it first
 */
export function createResumableFile(file: FileHandle): ResumableFile {
  let hash = createHash('sha256');
  let size = 0;
  let waiting: Uint8Array[] = [];
  let waitingSize = 0;
  /** Stays when it fails, so that whoever comes next meets the failure. */
  let writing: Promise<void> | undefined;

  const write = async (): Promise<void> => {
    while (waitingSize > 0) {
      const bytes = Buffer.concat(waiting, waitingSize);
      const position = size - waitingSize;
      waiting = [];
      waitingSize = 0;
      for (let written = 0; written < bytes.length;) {
        const { bytesWritten } = await file.write(bytes, written, undefined, position + written);
        written += bytesWritten;
      }
    }
    writing = undefined;
  };
  const flush = async (): Promise<void> => {
    await writing;
  };
  return {
    size: () => size,
    async rewind(to, signal) {
      await flush();
      hash = createHash('sha256');
      size = to;
      const buffer = Buffer.allocUnsafe(Math.min(to, BLOCK));
      for (let offset = 0; offset < to;) {
        signal.throwIfAborted();
        const length = Math.min(buffer.length, to - offset);
        const { bytesRead } = await file.read(buffer, 0, length, offset);
        if (bytesRead === 0) break; // shortened meanwhile: the digest will tell
        hash.update(buffer.subarray(0, bytesRead));
        offset += bytesRead;
      }
    },
    async append(bytes) {
      hash.update(bytes);
      size += bytes.length;
      waiting.push(bytes);
      waitingSize += bytes.length;
      writing ??= write();
      writing.catch(() => undefined); // thrown to whoever waits for it
      if (waitingSize >= BLOCK) await flush();
    },
    flush,
    async cutOff() {
      await flush();
      await file.truncate(size);
    },
    digest: () => `sha256:${hash.copy().digest('hex')}`,
  };
}
