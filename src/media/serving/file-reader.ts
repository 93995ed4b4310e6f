import { read, readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

/** A read that takes longer in place may have waited for a disk, or for other processes. */
const LONG_MS = 4;
/** Nothing else takes so long. */
const LONGEST_MS = 50;
/** So long all reads are left to other threads then. */
const REST_MS = 250;

/**
 * Fills buffers from an open file. What is in memory is read in place: to hand 64 KiB to another thread and back
 * takes several times as long. Where a read had to wait for the disk, those of the next quarter of a second
 * are handed over, so that nobody else waits with it.
 *
 * @returns reads until the buffer is full or the file ends, and resolves to the bytes
 */
export function createFileReader(
  file: Pick<FileHandle, 'fd'>,
): (bytes: Buffer, offset: number) => number | Promise<number> {
  let slowUntil = 0;
  let blocks = process.resourceUsage().fsRead;
  const hasWaited = (milliseconds: number): boolean => {
    if (milliseconds < LONG_MS) return false;
    const before = blocks;
    blocks = process.resourceUsage().fsRead;
    return blocks > before || milliseconds > LONGEST_MS;
  };
  return (bytes, offset) => {
    const began = performance.now();
    if (began < slowUntil) return readElsewhere(file.fd, bytes, offset);
    let done = 0;
    while (done < bytes.length) {
      const count = readSync(file.fd, bytes, done, bytes.length - done, offset + done);
      if (count === 0) break;
      done += count;
    }
    const ended = performance.now();
    if (hasWaited(ended - began)) slowUntil = ended + REST_MS;
    return done;
  };
}

async function readElsewhere(fd: number, bytes: Buffer, offset: number): Promise<number> {
  let done = 0;
  while (done < bytes.length) {
    const count = await readOnce(fd, bytes.subarray(done), offset + done);
    if (count === 0) break;
    done += count;
  }
  return done;
}

/** With less around it than `FileHandle.read`. */
const readOnce = (fd: number, bytes: Buffer, offset: number): Promise<number> =>
  new Promise((resolve, reject) => {
    read(fd, bytes, 0, bytes.length, offset, (error, count) => {
      if (error) reject(error);
      else resolve(count);
    });
  });
