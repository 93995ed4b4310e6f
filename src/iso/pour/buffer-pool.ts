import { constants } from 'node:fs';
import { open, rm, type FileHandle } from 'node:fs/promises';
import { isErrno } from '../../base/errno.ts';
import type { Slice } from './hasher.ts';
import { DIRECT_ALIGNMENT } from './output-file.ts';

/** Bytes of one buffer. Larger ones gained nothing, and a kill loses what is in them. */
export const BUFFER_SIZE = 1024 * 1024;

/** Shared memory cut into buffers at an alignment that direct I/O accepts. */
export type BufferPool = {
  readonly memory: SharedArrayBuffer;
  readonly bytes: Uint8Array;
  /** A free buffer, at once or as soon as there is one; `spill` may be asked to free one. */
  acquire: (options: { readonly urgent: () => boolean }) => Promise<Slice>;
  release: (slice: Slice) => void;
  /** Whether lanes have waited for a buffer since the last call. */
  wasShort: () => boolean;
  /** Whoever waits for a buffer, now or later, gets this error. */
  fail: (error: unknown) => void;
  /** Whoever holds buffers that can be given up: returns false when there is none to give. */
  onPressure: (spill: (urgent: boolean) => boolean) => void;
};

/** How long a lane that runs ahead waits for a buffer before it asks for one to be given up. */
const PATIENCE_MS = 10;
/** Buffers that lanes ahead leave to the one at the frontier: else it waits for what they hold. */
const RESERVE = 12;

type Waiter = {
  readonly urgent: () => boolean;
  readonly resolve: (slice: Slice) => void;
  readonly reject: (error: unknown) => void;
};

export function createBufferPool(memory: SharedArrayBuffer, alignment: number): BufferPool {
  const free = cutBuffers(memory, alignment);
  const reserve = Math.min(RESERVE, Math.floor(free.length / 4));
  const waiters: Waiter[] = [];
  let spill: (urgent: boolean) => boolean = () => false;
  let timer: NodeJS.Timeout | undefined;
  let short = false;
  let failure: { readonly error: unknown } | undefined;
  /** Who is at the frontier takes any buffer, others leave some for it. */
  const grant = (): void => {
    while (waiters.length > 0 && free.length > 0) {
      const urgent = waiters.findIndex((waiter) => waiter.urgent());
      if (urgent === -1 && free.length <= reserve) return;
      const [waiter] = waiters.splice(Math.max(urgent, 0), 1);
      const slice = free.pop();
      if (waiter && slice) waiter.resolve(slice);
    }
  };
  const press = (): void => {
    timer = undefined;
    grant(); // who waits may be at the frontier by now, and may have what others have to leave
    if (waiters.length === 0) return;
    spill(waiters.some((waiter) => waiter.urgent()));
    if (waiters.length > 0) timer ??= setTimeout(press, PATIENCE_MS);
  };
  return {
    memory,
    bytes: new Uint8Array(memory),
    acquire({ urgent }) {
      return new Promise((resolve, reject) => {
        if (failure) {
          reject(failure.error);
          return;
        }
        waiters.push({ urgent, resolve, reject });
        grant();
        if (waiters.length === 0) return;
        short = true;
        if (urgent()) spill(true);
        timer ??= setTimeout(press, PATIENCE_MS);
      });
    },
    release({ start }) {
      // A slice may have been shortened; its buffer is known by where it starts.
      free.push({ start, size: BUFFER_SIZE });
      grant();
    },
    wasShort() {
      const was = short || waiters.length > 0;
      short = false;
      return was;
    },
    fail(error) {
      failure = { error };
      for (const waiter of waiters.splice(0)) waiter.reject(error);
      clearTimeout(timer);
    },
    onPressure(handler) {
      spill = handler;
    },
  };
}

/** The first in memory is the last in the list, and is taken first. */
const cutBuffers = (memory: SharedArrayBuffer, alignment: number): Slice[] =>
  Array.from({ length: Math.floor((memory.byteLength - alignment) / BUFFER_SIZE) }, (_, index) => ({
    start: alignment + index * BUFFER_SIZE,
    size: BUFFER_SIZE,
  })).reverse();

/**
 * Where in the memory direct I/O may start. JavaScript cannot ask for page-aligned memory, but it can
 * try: a misaligned write is refused with EINVAL before anything is written. (A read would not do:
 * one of a hole is never refused.)
 *
 * @param path a file of the same file system that may be made and removed
 * @returns bytes, or undefined where the file system refuses O_DIRECT (some FUSE, old tmpfs)
 */
export async function probeAlignment(
  path: string,
  memory: SharedArrayBuffer,
): Promise<number | undefined> {
  const bytes = new Uint8Array(memory);
  const { O_RDWR, O_CREAT, O_DIRECT } = constants;
  let file;
  try {
    file = await open(path, O_RDWR | O_CREAT | O_DIRECT, 0o600);
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
