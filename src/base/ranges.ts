import { RegistryError } from './errors.ts';
import { explainNetworkFailure, TransientError } from './http/network-failure.ts';
import {
  type RangeSource,
  type ByteRange,
  requireInside,
  type RandomAccess,
} from './random-access.ts';
import type { Budget } from './retry.ts';

/** Reads ranges to their end, in order, through any break in between. */
export type RangeReader = (
  range: ByteRange,
  take: (bytes: Uint8Array, at: number) => void,
) => Promise<void>;

export type RangeReading = {
  readonly signal: AbortSignal;
  /** Budget for repeated requests to a source that gives no byte. */
  readonly openBudget: (signal: AbortSignal) => Budget;
  /** Host that is asked, for errors of the network. */
  readonly host: string;
};

/**
 * Reads ranges from a source; a range that breaks off is requested again from that byte. `take`
 * gets each byte once.
 *
 * @throws RegistryError `source.range` for more bytes than were requested, `source.too-short` if a
 * source ends twice at one place without an error; the source's own errors; the signal's reason
 */
export function createRangeReader(
  source: RangeSource,
  { signal, openBudget, host }: RangeReading,
): RangeReader {
  return async ({ offset, size }, take) => {
    const budget = openBudget(signal);
    let endedAt: number | undefined;
    for (let done = 0; done < size;) {
      const rest = { offset: offset + done, size: size - done };
      try {
        for await (const bytes of await source.open(rest, signal)) {
          if (done + bytes.length > size) throw tooLong(source, rest);
          take(bytes, done);
          done += bytes.length;
          budget.progress();
        }
        if (done === size) return;
        if (endedAt === done) throw tooShort(source, rest);
        endedAt = done;
        throw new TransientError(
          'source.cut',
          `${source.name} broke off at byte ${offset + done}`,
          {
            host,
            answered: true,
          },
        );
      } catch (error) {
        signal.throwIfAborted();
        await budget.pause(explainNetworkFailure(host, error));
      }
    }
  };
}

const tooLong = ({ name }: RangeSource, { offset, size }: ByteRange): RegistryError =>
  new RegistryError('source.range', `${name} sent more bytes than were requested`, {
    expected: `${size} bytes from byte ${offset}`,
    found: `more than ${size} bytes`,
    hint: 'download it, and use the downloaded file',
  });

const tooShort = ({ name, size }: RangeSource, { offset }: ByteRange): RegistryError =>
  new RegistryError('source.too-short', `${name} ended at byte ${offset} twice`, {
    expected: `${size} bytes`,
    found: `${offset} bytes`,
    hint: 'upload it again, or name another copy',
  });

/** Unit of the cache. Small, because a manifest is read alone, and a large medium has thousands. */
const BLOCK = 4096;
/** 64 MiB. */
const CACHED = 16_384;
/** Longer reads bypass the cache: their readers hash the bytes, and do not read them again. */
const LARGEST_CACHED = 1 << 20;
/** Most bytes that are requested ahead of a reader. */
const AHEAD = 8 << 20;
/** Most readers that are followed at a time. */
const READERS = 32;

/** A reader that continues from the place at which it stopped. */
type Reader = {
  /** Bytes it has read in a row. */
  readonly total: number;
  /** Everything up to this byte has been requested. */
  readonly asked: number;
};

/**
 * The bytes of a source at any offset, through one cache of blocks: a block that several readers
 * want at a time is requested once. Ahead of a reader that continues from the place at which it
 * stopped, up to half as much as it has read is fetched.
 *
 * Memory: 64 MiB, besides the bytes that are being read.
 */
export function createCachedAccess(
  source: RangeSource,
  readRange: RangeReader,
  close: () => Promise<void>,
): RandomAccess {
  const { name, size: total } = source;
  const blocks = createBlocks(total, readRange);
  const readAhead = createReadAhead(total, (range) => {
    void blocks.request(range); // their readers get the failure
  });
  return {
    path: name,
    size: total,
    async read(offset, size, buffer = Buffer.allocUnsafe(size)) {
      requireInside({ offset, size }, total);
      const bytes = buffer.subarray(0, size);
      if (size > LARGEST_CACHED) {
        await readRange({ offset, size }, (piece, at) => {
          bytes.set(piece, at);
        });
        return bytes;
      }
      const found = blocks.request({ offset, size });
      readAhead({ offset, size });
      let at = Math.floor(offset / BLOCK) * BLOCK;
      for (const block of found) {
        const piece = await block;
        bytes.set(
          piece.subarray(Math.max(0, offset - at), offset + size - at),
          Math.max(0, at - offset),
        );
        at += BLOCK;
      }
      return bytes;
    },
    close,
  };
}

type Blocks = {
  readonly request: (range: ByteRange) => readonly Promise<Uint8Array>[];
};

/** Blocks by number; the most recently used are last. */
function createBlocks(total: number, readRange: RangeReader): Blocks {
  const known = new Map<number, Promise<Uint8Array>>();
  const remember = (number: number, block: Promise<Uint8Array>): void => {
    known.delete(number);
    known.set(number, block);
  };
  const fetchRun = (first: number, end: number): void => {
    const settlers: Settler[] = [];
    for (let number = first; number < end; number += 1) {
      const block = new Promise<Uint8Array>((resolve, reject) => {
        settlers.push({ resolve, reject });
      });
      // The waiting reader gets the error; the next one asks again.
      block.catch(() => known.get(number) === block && known.delete(number));
      remember(number, block);
    }
    const offset = first * BLOCK;
    fillBlocks({ offset, size: Math.min(end * BLOCK, total) - offset }, settlers, readRange);
  };
  return {
    request({ offset, size }) {
      const [first, end] = [Math.floor(offset / BLOCK), Math.ceil((offset + size) / BLOCK)];
      for (let number = first; number < end; number += 1) {
        const missing = number;
        while (number < end && !known.has(number)) number += 1;
        if (number > missing) fetchRun(missing, number);
      }
      const found: Promise<Uint8Array>[] = [];
      for (let number = first; number < end; number += 1) {
        const block = known.get(number);
        if (!block) throw new Error(`block ${number} was not requested`);
        remember(number, block);
        found.push(block);
      }
      for (const number of known.keys()) {
        if (known.size <= CACHED) break;
        known.delete(number);
      }
      return found;
    },
  };
}

type Settler = {
  readonly resolve: (block: Uint8Array) => void;
  readonly reject: (error: unknown) => void;
};

/** Settles a block as soon as it is whole: its reader does not wait for the end of the run. */
function fillBlocks(run: ByteRange, settlers: readonly Settler[], readRange: RangeReader): void {
  let block = new Uint8Array();
  readRange(run, (bytes, at) => {
    for (let done = 0; done < bytes.length;) {
      const filled = (at + done) % BLOCK;
      const start = at + done - filled;
      if (filled === 0) block = new Uint8Array(Math.min(BLOCK, run.size - start));
      const piece = bytes.subarray(done, done + block.length - filled);
      block.set(piece, filled);
      done += piece.length;
      if (filled + piece.length === block.length) settlers[start / BLOCK]?.resolve(block);
    }
  }).catch((error: unknown) => {
    for (const { reject } of settlers) reject(error); // settled blocks stay as they are
  });
}

/** Decides what to request ahead of each reader, in pieces worth a request. */
function createReadAhead(
  total: number,
  request: (range: ByteRange) => void,
): (range: ByteRange) => void {
  /** Keyed by the byte that each reader reads next, if it continues. */
  const readers = new Map<number, Reader>();
  return ({ offset, size }) => {
    const end = offset + size;
    const reader = readers.get(offset) ?? { total: 0, asked: 0 };
    readers.delete(offset);
    const window = Math.min(AHEAD, Math.floor(reader.total / 2));
    const goal = Math.min(total, end + window);
    const asked = Math.max(end, reader.asked);
    const isWorthIt = goal - asked > window / 2;
    if (isWorthIt) request({ offset: asked, size: goal - asked });
    readers.set(end, { total: reader.total + size, asked: isWorthIt ? goal : asked });
    for (const oldest of readers.keys()) {
      if (readers.size <= READERS) break;
      readers.delete(oldest);
    }
  };
}
