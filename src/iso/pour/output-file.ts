import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { DiskError } from '../../base/errors.ts';
import { explainOutputError, explaining } from '../../base/disk/disk-errors.ts';
import { openOwnFile, reopen } from '../../base/disk/open-file.ts';
import type { Slice } from './hasher.ts';

/** Direct I/O wants offsets, lengths and memory at multiples of the device's block; 4096 suits all. */
export const DIRECT_ALIGNMENT = 4096;

/** The partial output. Slices are ranges of the shared memory. */
export type OutputFile = {
  /** `cached` keeps the pages: for bytes that will be read back soon. */
  write: (slice: Slice, position: number, cached: boolean) => Promise<void>;
  read: (slice: Slice, position: number) => Promise<void>;
  /** fdatasync(2). */
  sync: () => Promise<void>;
  close: () => Promise<void>;
};

type OpenOutputOptions = {
  readonly size: number;
  readonly memory: SharedArrayBuffer;
  /** Whether an earlier run's bytes are reused. */
  readonly keep: boolean;
  /** Permission bits. */
  readonly mode: number;
  /** Whether direct I/O may be used. */
  readonly direct: boolean;
};

/**
 * Opens or creates the partial output and gives it its final size (a hole where nothing is written
 * yet). Large aligned writes go past the page cache: here that takes a tenth of the CPU.
 *
 * @throws DiskError `output.unwritable`, `output.full`, `output.too-large`, `output.broken`
 */
export async function openOutputFile(
  path: string,
  options: OpenOutputOptions,
): Promise<OutputFile> {
  const buffered = await openOrExplain(path, options.mode);
  try {
    if (!options.keep) await buffered.truncate(0);
    await buffered.truncate(options.size);
  } catch (error) {
    await buffered.close();
    throw explainOutputError(error, path);
  }
  const direct = options.direct
    ? await reopen(buffered, constants.O_RDWR | constants.O_DIRECT)
    : undefined;
  return createOutputFile({ path, buffered, direct, bytes: new Uint8Array(options.memory) });
}

type Handles = {
  readonly path: string;
  readonly buffered: FileHandle;
  readonly direct: FileHandle | undefined;
  readonly bytes: Uint8Array;
};

/** Slices of what is open: large aligned writes go by `direct`, where that is given. */
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
    async close() {
      await Promise.all([buffered.close(), direct?.close()]);
    },
  };
}

async function openOrExplain(path: string, mode: number): Promise<FileHandle> {
  return explaining(path, async () => {
    const file = await openOwnFile(path, { mode });
    await file.chmod(mode); // an earlier run may have made it for other inputs
    return file;
  });
}
