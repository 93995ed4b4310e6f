import { read, readSync } from 'node:fs';
import { requireInside } from '../../base/random-access.ts';

/* Owns how the bytes of a local file are read while they are served. */

/** @param file descriptor */
export function createFill(
  file: number,
): (bytes: Buffer, offset: number) => Promise<void> | undefined {
  const read = createFileReader(file);
  return (bytes, offset) => {
    const check = (count: number): void => {
      requireInside({ offset, size: bytes.length }, offset + count);
    };
    const count = read(bytes, offset);
    if (typeof count === 'object') return count.then(check);
    check(count);
    return undefined;
  };
}

/** Milliseconds after which a read may have waited, for a disk or for other processes. */
const LONG_MS = 4;
/** Milliseconds that only a disk takes. */
const LONGEST_MS = 50;
/** Milliseconds during which all reads are left to other threads. */
const REST_MS = 250;

/**
 * Reads cached data in place: passing 64 KiB to another thread and back takes several times as long. After a
 * read that waited for the disk, the reads of the next quarter of a second go to other threads, so that other
 * clients do not wait for them.
 *
 * @returns a function that reads until the buffer is full or the file ends, and returns the number of bytes
 */
function createFileReader(
  file: number,
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
    if (began < slowUntil) return readElsewhere(file, bytes, offset);
    let done = 0;
    while (done < bytes.length) {
      const count = readSync(file, bytes, done, bytes.length - done, offset + done);
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

/** Reads with less overhead than `FileHandle.read`. */
const readOnce = (fd: number, bytes: Buffer, offset: number): Promise<number> =>
  new Promise((resolve, reject) => {
    read(fd, bytes, 0, bytes.length, offset, (error, count) => {
      if (error) reject(error);
      else resolve(count);
    });
  });
