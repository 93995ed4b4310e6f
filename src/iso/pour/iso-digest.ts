import type { Digest } from '../../base/digest.ts';
import { BUFFER_SIZE, type BufferPool } from './buffer-pool.ts';
import type { Hasher, Slice } from './hasher.ts';
import type { OutputFile } from './output-file.ts';

/** A part of the output that one lane pours: its bytes are verified together. */
export type Span = { readonly offset: number; readonly size: number };

/**
 * The SHA-256 of the whole ISO, computed while lanes pour it in any order.
 *
 * Lanes give each buffer here after writing it. What lies at the frontier is hashed from memory; what
 * lies ahead is held, and when memory runs short the farthest is given up, to be read back later
 * (from the page cache: such lanes write through it). The frontier enters a span only after the span
 * before it was verified, so wrong bytes can be taken back to the span's start.
 */
export type IsoDigest = {
  /** Takes over a buffer whose bytes stand at `position` of the output. */
  offer: (slice: Slice, position: number) => void;
  /** The span's bytes match their digest. */
  verify: (span: number) => void;
  /** The span's bytes were wrong: forget them. */
  restart: (span: number) => void;
  /** Whether the frontier is in this span. */
  isFrontier: (span: number) => boolean;
  /** Whether buffers are being given up: lanes ahead then write through the page cache. */
  isSpilling: () => boolean;
  /** Bytes read back from the file. */
  readBack: () => number;
  /** Resolves when every span was offered and verified. */
  finished: Promise<Digest>;
};

/** Updates posted to the hashing thread and not yet answered; a few keep it busy. */
const MAX_OUTSTANDING = 4;
/** For so long after a buffer was given up, lanes ahead keep writing through the page cache. */
const SPILLING_MS = 2000;

export type IsoDigestOptions = {
  readonly spans: readonly Span[];
  readonly hasher: Hasher;
  readonly pool: BufferPool;
  readonly output: OutputFile;
};

export function createIsoDigest({ spans, hasher, pool, output }: IsoDigestOptions): IsoDigest {
  const stream = hasher.openAlone();
  const held = new Map<number, Slice>();
  const spilled = new Map<number, number>();
  const verified = new Set<number>();
  let finish: (digest: Digest) => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const finished = new Promise<Digest>((resolve, reject) => {
    finish = resolve;
    fail = reject;
  });
  finished.catch(() => undefined); // a pour that fails earlier never awaits it
  let span = 0;
  let frontier = spans[0]?.offset ?? 0;
  let outstanding = 0;
  let reading = false;
  let epoch = 0;
  let bytesReadBack = 0;
  let lastSpill = -Infinity;

  const hash = (slice: Slice): void => {
    frontier += slice.size;
    outstanding++;
    stream.update(slice).then(() => {
      outstanding--;
      pool.release(slice);
      pump();
    }, fail);
  };
  const readAtFrontier = async (size: number): Promise<void> => {
    reading = true;
    const from = { frontier, epoch };
    const buffer = await pool.acquire({ urgent: () => true });
    const slice = { start: buffer.start, size: Math.min(size, BUFFER_SIZE) };
    await output.read(slice, from.frontier);
    reading = false;
    if (epoch !== from.epoch) {
      pool.release(slice); // the span was restarted meanwhile
    } else {
      spilled.delete(frontier);
      bytesReadBack += slice.size;
      hash(slice);
    }
    pump();
  };
  const enterNext = (): void => {
    span++;
    if (span === spans.length) stream.digest().then(finish, fail);
    else stream.snapshot();
  };
  /** Hashes what stands at the frontier; false when it must wait for a lane. */
  const step = (): boolean => {
    const { offset, size } = spans[span] ?? { offset: 0, size: 0 };
    if (frontier === offset + size) {
      if (!verified.has(span)) return false;
      enterNext();
      return true;
    }
    const slice = held.get(frontier);
    const lost = spilled.get(frontier);
    if (slice) {
      held.delete(frontier);
      hash(slice);
    } else if (lost !== undefined) {
      readAtFrontier(lost).catch(fail);
    }
    return slice !== undefined || lost !== undefined;
  };
  const pump = (): void => {
    while (span < spans.length && outstanding < MAX_OUTSTANDING && !reading && step());
  };
  /** Gives up the buffer that would be needed last. Not while the thread is busy: it frees some soon. */
  const spill = (urgent: boolean): boolean => {
    if (!urgent && outstanding > 0) return false;
    let farthest = -1;
    for (const position of held.keys()) farthest = Math.max(farthest, position);
    const slice = held.get(farthest);
    if (!slice) return false;
    held.delete(farthest);
    spilled.set(farthest, slice.size);
    lastSpill = performance.now();
    pool.release(slice);
    return true;
  };
  pool.onPressure(spill);
  stream.snapshot();
  return {
    offer(slice, position) {
      held.set(position, slice);
      pump();
    },
    verify(index) {
      verified.add(index);
      pump();
    },
    restart(index) {
      const { offset, size } = spans[index] ?? { offset: 0, size: 0 };
      const isInside = (position: number): boolean =>
        position >= offset && position < offset + size;
      for (const [position, slice] of [...held].filter(([position]) => isInside(position))) {
        held.delete(position);
        pool.release(slice);
      }
      for (const position of [...spilled.keys()].filter(isInside)) spilled.delete(position);
      if (span !== index) return;
      epoch++;
      stream.restore();
      frontier = offset;
    },
    isFrontier: (index) => index === span,
    isSpilling: () => performance.now() - lastSpill < SPILLING_MS,
    readBack: () => bytesReadBack,
    finished,
  };
}
