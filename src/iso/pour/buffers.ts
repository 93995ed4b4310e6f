import { constants } from 'node:fs';
import { rm, type FileHandle } from 'node:fs/promises';
import { nameAside, sweepAside } from '../../base/disk/aside.ts';
import { isErrno } from '../../base/errors.ts';
import { createFile } from '../../base/disk/open-file.ts';
import type { Slice } from './hasher.ts';
import { DIRECT_ALIGNMENT } from './output-file.ts';

/** Bytes of one buffer. Larger ones gained nothing, and a kill loses what is in them. */
export const BUFFER_SIZE = 1024 * 1024;

/**
 * Cuts shared memory into free buffers, the first in memory last in the list: it is taken first, so that
 * a small pour touches little memory.
 *
 * @param alignment where direct I/O accepts the first one
 */
export const cutBuffers = (memory: SharedArrayBuffer, alignment: number): Slice[] =>
  Array.from({ length: Math.floor((memory.byteLength - alignment) / BUFFER_SIZE) }, (_, index) => ({
    start: alignment + index * BUFFER_SIZE,
    size: BUFFER_SIZE,
  })).reverse();

/**
 * Where in the memory direct I/O may start. JavaScript cannot ask for page-aligned memory, but it can
 * try: a misaligned write is refused with EINVAL before anything is written. (A read would not do:
 * one of a hole is never refused.)
 *
 * @param beside a file of the same file system: another is made and removed beside it, under a name that
 *   nobody uses. Only who alone may write it may call this: what killed processes left is removed.
 * @returns bytes, or undefined where the file system refuses O_DIRECT (some FUSE, old tmpfs)
 */
export async function probeAlignment(
  beside: string,
  memory: SharedArrayBuffer,
): Promise<number | undefined> {
  const bytes = new Uint8Array(memory);
  await sweepAside(beside);
  const path = await nameAside(beside);
  let file;
  try {
    file = await createFile(path, 0o600, constants.O_DIRECT);
    for (let start = 0; start < DIRECT_ALIGNMENT; start += 8) {
      const block = bytes.subarray(start, start + DIRECT_ALIGNMENT);
      if (await isWritable(file, block)) return start;
    }
    return undefined;
  } catch (error) {
    if (isErrno(error, 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP')) return undefined;
    throw error;
  } finally {
    await file?.close();
    await rm(path, { force: true });
  }
}

async function isWritable(file: FileHandle, block: Uint8Array): Promise<boolean> {
  try {
    await file.write(block, 0, block.length, 0);
    return true;
  } catch (error) {
    if (isErrno(error, 'EINVAL')) return false;
    throw error;
  }
}
