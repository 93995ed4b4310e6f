import { constants } from 'node:fs';
import { type FileHandle, rm } from 'node:fs/promises';
import { setMode } from '../base/disk/mode.ts';
import { nameAside, sweepAside } from '../base/disk/aside.ts';
import { explainOutputError, explaining } from '../base/disk/disk-errors.ts';
import { openOwnFile, reopen, createFile } from '../base/disk/open-file.ts';
import { DiskError, isErrno } from '../base/errors.ts';
import type { Slice } from './hasher.ts';

/** Direct I/O needs offsets, lengths and memory at multiples of the device's block; 4096 suits all. */
export const DIRECT_ALIGNMENT = 4096;

/** The partial output. Slices are ranges of the shared memory. */
export type OutputFile = {
  /** `cached` keeps the pages: for bytes that will be read back soon. */
  write: (slice: Slice, position: number, cached: boolean) => Promise<void>;
  read: (slice: Slice, position: number) => Promise<void>;
  /** True if the range is zeros already; absent if that cannot be known, as on a device. */
  isHole?: (position: number, size: number) => Promise<boolean>;
  /** fdatasync(2). */
  sync: () => Promise<void>;
  /** The same open file again, to read. */
  duplicate: () => Promise<FileHandle>;
  close: () => Promise<void>;
};

type OpenOutputOptions = {
  readonly size: number;
  readonly memory: SharedArrayBuffer;
  /** True if bytes of an earlier run are reused. */
  readonly keep: boolean;
  /** Permission bits. */
  readonly mode: number;
  readonly direct: boolean;
};

/**
 * Opens or creates the partial output and gives it its final size (a hole until it is written).
 * Large aligned writes bypass the page cache, which takes a tenth of the CPU.
 */
export async function openOutputFile(
  path: string,
  options: OpenOutputOptions,
): Promise<OutputFile> {
  const buffered = await openOrExplain(path, options.mode);
  try {
    if (!options.keep) await buffered.truncate(0);
    await buffered.truncate(options.size);
    const direct = options.direct
      ? await reopen(buffered, constants.O_RDWR | constants.O_DIRECT)
      : undefined;
    const file = createOutputFile({
      path,
      buffered,
      direct,
      bytes: new Uint8Array(options.memory),
    });
    return { ...file, isHole: (...range) => isHole({ path, buffered, ...options }, range) };
  } catch (error) {
    await buffered.close();
    throw explainOutputError(error, path);
  }
}

/** A new output is one hole; bytes of an earlier run, or of a cloned ISO, are read. */
async function isHole(
  { path, buffered, keep }: Pick<Handles, 'path' | 'buffered'> & Pick<OpenOutputOptions, 'keep'>,
  [position, size]: readonly [position: number, size: number],
): Promise<boolean> {
  if (!keep) return true;
  const { buffer, bytesRead } = await explaining(path, () =>
    buffered.read(Buffer.alloc(size), 0, size, position),
  );
  return bytesRead === size && buffer.equals(Buffer.alloc(size));
}

type Handles = {
  readonly path: string;
  readonly buffered: FileHandle;
  readonly direct: FileHandle | undefined;
  readonly bytes: Uint8Array;
};

/** Reads and writes slices; large aligned writes use `direct`, if it is given. */
export function createOutputFile({ path, buffered, direct, bytes }: Handles): OutputFile {
  const writeAll = async (file: FileHandle, slice: Slice, position: number): Promise<void> => {
    let written = 0;
    while (written < slice.size) {
      const { start, size } = slice;
      const view = bytes.subarray(start + written, start + size);
      written += (await file.write(view, 0, view.length, position + written)).bytesWritten;
    }
  };
  return {
    async write(slice, position, cached) {
      await explaining(path, async () => {
        const aligned = direct && !cached && position % DIRECT_ALIGNMENT === 0;
        const body = aligned ? slice.size - (slice.size % DIRECT_ALIGNMENT) : 0;
        if (direct && body > 0)
          await writeAll(direct, { start: slice.start, size: body }, position);
        const rest = { start: slice.start + body, size: slice.size - body };
        if (rest.size > 0) await writeAll(buffered, rest, position + body);
      });
    },
    async read(slice, position) {
      let read = 0;
      while (read < slice.size) {
        const view = bytes.subarray(slice.start + read, slice.start + slice.size);
        const { bytesRead } = await explaining(path, () =>
          buffered.read(view, 0, view.length, position + read),
        );
        if (bytesRead === 0) throw new DiskError('output.shrunk', `"${path}" became shorter`);
        read += bytesRead;
      }
    },
    sync: () => explaining(path, () => buffered.datasync()),
    duplicate: () => explaining(path, () => reopen(buffered, constants.O_RDONLY)),
    async close() {
      await Promise.all([buffered.close(), direct?.close()]);
    },
  };
}

async function openOrExplain(path: string, mode: number): Promise<FileHandle> {
  return explaining(path, async () => {
    const file = await openOwnFile(path, { mode });
    await setMode(file, mode); // an earlier run may have made it for other inputs
    return file;
  });
}

/** Bytes of one buffer. Larger ones gained nothing, and a kill loses their contents. */
export const BUFFER_SIZE = 1024 * 1024;

/**
 * Cuts shared memory into free buffers, the first in memory last in the list: it is taken first, so that
 * a small pour touches little memory.
 *
 * @param alignment offset of the first buffer, which direct I/O must accept
 */
export const cutBuffers = (memory: SharedArrayBuffer, alignment: number): Slice[] =>
  Array.from({ length: Math.floor((memory.byteLength - alignment) / BUFFER_SIZE) }, (_, index) => ({
    start: alignment + index * BUFFER_SIZE,
    size: BUFFER_SIZE,
  })).reverse();

/**
 * Offset in the memory at which direct I/O may start. JavaScript cannot ask for page-aligned memory, but it can
 * try: a misaligned write is refused with EINVAL before anything is written. (A read does not help:
 * reading a hole is never refused.)
 *
 * @param beside a path in the same file system: a test file with an unused name is created and removed next to
 *   it. The caller must be the only writer: files left by killed processes are removed.
 * @returns bytes, or undefined if the file system refuses O_DIRECT (some FUSE, old tmpfs)
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
    throw explainOutputError(error, beside);
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
