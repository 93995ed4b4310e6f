import type { Digest } from '../../base/digest.ts';
import type { BufferPool } from './buffer-pool.ts';
import type { Hasher, HashStream, Slice } from './hasher.ts';
import type { OutputFile } from './output-file.ts';
import { RateMeter } from './rate.ts';

/** A part of the output that one lane pours: its bytes are verified together. */
export type Span = { readonly offset: number; readonly size: number };

/** Updates posted to the hashing thread and not yet answered; a few keep it busy. */
const MAX_OUTSTANDING = 4;
/** For so long after a buffer was given up, lanes ahead keep writing through the page cache. */
const SPILLING_MS = 2000;
/** Bytes a second of the frontier, above which lanes ahead rather wait: reading back costs more. */
const FAST = 100_000_000;
/** Bytes that a lane at the frontier has under way, at most. */
const NEAR = 8 * 1024 * 1024;

export type IsoDigestOptions = {
  readonly spans: readonly Span[];
  readonly hasher: Hasher;
  readonly pool: BufferPool;
  readonly output: OutputFile;
};

/**
 * The SHA-256 of the whole ISO, computed while lanes pour it in any order.
 *
 * Lanes give each buffer here after writing it. What lies at the frontier is hashed from memory; what
 * lies ahead is held, and when memory runs short the farthest is given up, to be read back later
 * (from the page cache: such lanes write through it). The frontier enters a span only after the span
 * before it was verified, so wrong bytes can be taken back to the span's start.
 */
export class IsoDigest {
  /** Resolves when every span was offered and verified. */
  readonly finished: Promise<Digest>;
  /** Bytes that were read back from the file. */
  readBack = 0;
  readonly #options: IsoDigestOptions;
  readonly #stream: HashStream;
  readonly #held = new Map<number, Slice>();
  readonly #spilled = new Map<number, number>();
  readonly #verified = new Set<number>();
  #finish: (digest: Digest) => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;
  #span = 0;
  #frontier: number;
  #outstanding = 0;
  #isReading = false;
  #restarts = 0;
  readonly #rate = new RateMeter();
  #lastSpill = -Infinity;
  #catchingUp = 0;

  constructor(options: IsoDigestOptions) {
    this.#options = options;
    this.#frontier = options.spans[0]?.offset ?? 0;
    this.#stream = options.hasher.openAlone();
    this.#stream.snapshot();
    this.finished = new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#fail = reject;
    });
    this.finished.catch(() => undefined); // a pour that fails earlier never awaits it
    options.pool.onPressure((urgent) => this.#spill(urgent));
  }

  /** Takes over a buffer whose bytes stand at `position` of the output. */
  offer(slice: Slice, position: number): void {
    this.#held.set(position, slice);
    this.#pump();
  }

  /** The span's bytes match their digest. */
  verify(span: number): void {
    this.#verified.add(span);
    this.#pump();
  }

  /** The span's bytes were wrong, or come again: forget them. */
  restart(span: number): void {
    const { offset, size } = this.#spanAt(span);
    const isInside = (position: number): boolean => position >= offset && position < offset + size;
    for (const [position, slice] of [...this.#held]) {
      if (!isInside(position)) continue;
      this.#held.delete(position);
      this.#options.pool.release(slice);
    }
    for (const position of [...this.#spilled.keys()].filter(isInside)) {
      this.#spilled.delete(position);
    }
    if (span !== this.#span) return;
    this.#restarts++;
    this.#stream.restore();
    this.#frontier = offset;
  }

  /**
   * Whether the digest waits for what stands at `position` of this span, or soon will. A lane whose
   * earlier buffers were given up does not hurry: those have to be read back first.
   */
  isAwaited(span: number, position: number): boolean {
    return span === this.#span && position - this.#frontier <= NEAR;
  }

  /**
   * While what stands from an earlier run is checked, the digest is far behind those who fetch what is
   * missing: they give up their buffers and go on, instead of waiting with their connections open.
   */
  async whileCatchingUp<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#catchingUp++;
    try {
      return await work();
    } finally {
      this.#catchingUp--;
    }
  }

  /** Whether buffers are being given up: lanes ahead then write through the page cache. */
  isSpilling(): boolean {
    return performance.now() - this.#lastSpill < SPILLING_MS;
  }

  #spanAt(index: number): Span {
    return this.#options.spans[index] ?? { offset: 0, size: 0 };
  }

  #pump(): void {
    const { length } = this.#options.spans;
    while (this.#span < length && this.#outstanding < MAX_OUTSTANDING && !this.#isReading) {
      if (!this.#step()) return;
    }
  }

  /** Hashes what stands at the frontier; false when it must wait for a lane. */
  #step(): boolean {
    const { offset, size } = this.#spanAt(this.#span);
    if (this.#frontier === offset + size) return this.#enterNext();
    const slice = this.#held.get(this.#frontier);
    if (slice) {
      this.#held.delete(this.#frontier);
      this.#hash(slice);
      return true;
    }
    const spilled = this.#spilled.get(this.#frontier);
    if (spilled === undefined) return false;
    this.#readBackAtFrontier(spilled).catch(this.#fail);
    return true;
  }

  #enterNext(): boolean {
    if (!this.#verified.has(this.#span)) return false;
    this.#span++;
    if (this.#span < this.#options.spans.length) this.#stream.snapshot();
    else this.#stream.digest().then(this.#finish, this.#fail);
    return true;
  }

  #hash(slice: Slice): void {
    this.#frontier += slice.size;
    this.#rate.add(slice.size);
    this.#outstanding++;
    this.#stream.update(slice).then(() => {
      this.#outstanding--;
      this.#options.pool.release(slice);
      this.#pump();
    }, this.#fail);
  }

  async #readBackAtFrontier(size: number): Promise<void> {
    this.#isReading = true;
    const position = this.#frontier;
    const restarts = this.#restarts;
    const { start } = await this.#options.pool.acquire({ urgent: () => true });
    const slice = { start, size };
    await this.#options.output.read(slice, position);
    this.#isReading = false;
    if (restarts === this.#restarts) {
      this.#spilled.delete(position);
      this.readBack += size;
      this.#hash(slice);
    } else {
      this.#options.pool.release(slice); // the span was restarted meanwhile
    }
    this.#pump();
  }

  /** Gives up the buffer that is needed last; not while the digest has work and soon frees some. */
  #spill(urgent: boolean): boolean {
    const isNear = this.#outstanding > 0 || (!urgent && this.#rate.read() > FAST);
    if (isNear && this.#catchingUp === 0) return false;
    const farthest = Math.max(-1, ...this.#held.keys());
    const slice = this.#held.get(farthest);
    if (!slice) return false;
    this.#held.delete(farthest);
    this.#spilled.set(farthest, slice.size);
    this.#lastSpill = performance.now();
    this.#options.pool.release(slice);
    return true;
  }
}
