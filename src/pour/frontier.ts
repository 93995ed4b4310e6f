import type { Digest } from '../base/digest.ts';
import { maxOf } from '../base/lists.ts';
import type { HashStream, Slice } from './hasher.ts';
import { BUFFER_SIZE, type OutputFile } from './output-file.ts';
import { PourPace } from './pace.ts';

/** A part of the output that one lane pours: its bytes are verified together. */
export type Span = { readonly offset: number; readonly size: number };

/** Updates posted to the hashing thread and not yet answered; a few keep it busy. */
const MAX_OUTSTANDING = 4;
/** Milliseconds after a buffer was given up during which lanes ahead write through the page cache. */
const SPILLING_MS = 2000;
/** Bytes a second of the frontier above which lanes ahead wait: reading back would cost more. */
const FAST = 100_000_000;
/** Bytes that a lane at the frontier has under way, at most. */
const NEAR = 8 * 1024 * 1024;
/** Milliseconds that a lane ahead waits for a buffer before another one is given up for it. */
const PATIENCE_MS = 10;
/** Buffers that lanes ahead leave to the lane at the frontier, which would otherwise wait for them. */
const RESERVE = 12;

type Waiter = {
  readonly span: number;
  readonly position: number;
  readonly resolve: (slice: Slice) => void;
  readonly reject: (error: unknown) => void;
};

/** Interface of a frontier for lanes and the loop. */
export type PourFrontier = Omit<Pick<Frontier, keyof Frontier>, 'finished'> & {
  /** The digest of the whole output, or undefined if it is not computed. */
  readonly finished: Promise<Digest | undefined>;
};

export type FrontierOptions = {
  readonly spans: readonly Span[];
  /** Free buffers; the last one is taken first. */
  readonly buffers: Slice[];
  /** Hashes the whole ISO. */
  readonly stream: HashStream;
  readonly output: OutputFile;
  /** Ends every wait for a buffer. */
  readonly signal: AbortSignal;
};

/**
 * The SHA-256 of the whole ISO, computed while lanes pour it in any order, and the buffers that lanes
 * fill for it.
 *
 * Lanes hand over each buffer after writing it. A buffer at the frontier (the first byte that is not hashed
 * yet) is hashed from memory. A buffer ahead of it is held. When memory runs short, the buffer that is needed
 * last is given up and read back later from the page cache, through which its lane writes. The frontier enters
 * a span only after the span before it was verified, so wrong bytes can be taken back to the start of their
 * span.
 */
export class Frontier {
  /** Resolves when every span was offered and verified; rejects when the output cannot be read. */
  readonly finished: Promise<Digest>;
  /** Bytes that were read back from the file. */
  readBack = 0;
  readonly #options: FrontierOptions;
  readonly #reserve: number;
  readonly #waiters: Waiter[] = [];
  readonly #held = new Map<number, Slice>();
  readonly #spilled = new Map<number, number>();
  readonly #verified = new Set<number>();
  readonly #rate = new PourPace();
  #finish: (digest: Digest) => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;
  #span = 0;
  #position: number;
  #outstanding = 0;
  #isReading = false;
  #restarts = 0;
  #lastSpill = -Infinity;
  #catchingUp = 0;
  #short = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FrontierOptions) {
    this.#options = options;
    this.#reserve = Math.min(RESERVE, Math.floor(options.buffers.length / 4));
    this.#position = options.spans[0]?.offset ?? 0;
    options.stream.snapshot();
    this.finished = new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#fail = reject;
    });
    this.finished.catch(() => undefined); // a pour that fails earlier never awaits it
    options.signal.addEventListener('abort', () => {
      clearTimeout(this.#timer);
      for (const { reject } of this.#waiters.splice(0)) reject(options.signal.reason);
    });
  }

  /** A free buffer for the bytes at `position` of this span, at once or as soon as there is one. */
  acquire(span: number, position: number): Promise<Slice> {
    return new Promise((resolve, reject) => {
      if (this.#options.signal.aborted) {
        reject(this.#options.signal.reason as Error);
        return;
      }
      this.#waiters.push({ span, position, resolve, reject });
      this.#grant();
      if (this.#waiters.length === 0) return;
      this.#short = true;
      if (this.isAwaited(span, position)) this.#spill(true);
      this.#timer ??= setTimeout(this.#press, PATIENCE_MS);
    });
  }

  release({ start }: Slice): void {
    // A slice may have been shortened; its start identifies its buffer.
    this.#options.buffers.push({ start, size: BUFFER_SIZE });
    this.#grant();
  }

  /** True if lanes have waited for a buffer since the last call. */
  wasShort(): boolean {
    const was = this.#short || this.#waiters.length > 0;
    this.#short = false;
    return was;
  }

  /** Takes over a buffer whose bytes are at `position` of the output. */
  offer(slice: Slice, position: number): void {
    this.#held.set(position, slice);
    this.#pump();
  }

  /** Notes that the bytes of a span match their digest. */
  verify(span: number): void {
    this.#verified.add(span);
    this.#pump();
  }

  /** Forgets the bytes of a span: they were wrong, or come again. */
  restart(span: number): void {
    const { offset, size } = this.#spanAt(span);
    const isInside = (position: number): boolean => position >= offset && position < offset + size;
    for (const [position, slice] of [...this.#held]) {
      if (!isInside(position)) continue;
      this.#held.delete(position);
      this.release(slice);
    }
    for (const position of [...this.#spilled.keys()].filter(isInside)) {
      this.#spilled.delete(position);
    }
    if (span !== this.#span) return;
    this.#restarts++;
    this.#options.stream.restore();
    this.#position = offset;
  }

  /**
   * True if the digest waits for the bytes at `position` of this span, or soon will. A lane whose earlier
   * buffers were given up is not urgent: they must be read back first.
   */
  isAwaited(span: number, position: number): boolean {
    return span === this.#span && position - this.#position <= NEAR;
  }

  /**
   * Runs work that checks bytes of an earlier run. The digest is then far behind the lanes that fetch missing
   * bytes: they give up their buffers and continue, instead of waiting with open connections.
   */
  async whileCatchingUp<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#catchingUp++;
    try {
      return await work();
    } finally {
      this.#catchingUp--;
    }
  }

  /** True while buffers are being given up: lanes ahead then write through the page cache. */
  isSpilling(): boolean {
    return performance.now() - this.#lastSpill < SPILLING_MS;
  }

  /** Grants buffers: the lane at the frontier takes any, the others leave some for it. */
  #grant(): void {
    const { buffers } = this.#options;
    while (this.#waiters.length > 0 && buffers.length > 0) {
      const urgent = this.#waiters.findIndex(({ span, position }) =>
        this.isAwaited(span, position),
      );
      if (urgent === -1 && buffers.length <= this.#reserve) return;
      const [waiter] = this.#waiters.splice(Math.max(urgent, 0), 1);
      const slice = buffers.pop();
      if (waiter && slice) waiter.resolve(slice);
    }
  }

  readonly #press = (): void => {
    this.#timer = undefined;
    this.#grant(); // a waiter may have reached the frontier, and may then take reserved buffers
    if (this.#waiters.length === 0) return;
    this.#spill(this.#waiters.some(({ span, position }) => this.isAwaited(span, position)));
    if (this.#waiters.length > 0) this.#timer ??= setTimeout(this.#press, PATIENCE_MS);
  };

  /** Gives up the buffer that is needed last, unless the digest has work and soon frees others. */
  #spill(urgent: boolean): void {
    const isNear = this.#outstanding > 0 || (!urgent && this.#rate.read() > FAST);
    if (isNear && this.#catchingUp === 0) return;
    const farthest = maxOf(this.#held.keys(), -1);
    const slice = this.#held.get(farthest);
    if (!slice) return;
    this.#held.delete(farthest);
    this.#spilled.set(farthest, slice.size);
    this.#lastSpill = performance.now();
    this.release(slice);
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

  /** Hashes the bytes at the frontier; false if it must wait for a lane. */
  #step(): boolean {
    const { offset, size } = this.#spanAt(this.#span);
    if (this.#position === offset + size) return this.#enterNext();
    const slice = this.#held.get(this.#position);
    if (slice) {
      this.#held.delete(this.#position);
      this.#hash(slice);
      return true;
    }
    const spilled = this.#spilled.get(this.#position);
    if (spilled === undefined) return false;
    this.#readAgain(spilled).catch(this.#fail);
    return true;
  }

  #enterNext(): boolean {
    if (!this.#verified.has(this.#span)) return false;
    this.#span++;
    if (this.#span < this.#options.spans.length) this.#options.stream.snapshot();
    else this.#options.stream.digest().then(this.#finish, this.#fail);
    return true;
  }

  #hash(slice: Slice): void {
    this.#position += slice.size;
    this.#rate.add(slice.size);
    this.#outstanding++;
    this.#options.stream.update(slice).then(() => {
      this.#outstanding--;
      this.release(slice);
      this.#pump();
    }, this.#fail);
  }

  async #readAgain(size: number): Promise<void> {
    this.#isReading = true;
    const position = this.#position;
    const restarts = this.#restarts;
    const { start } = await this.acquire(this.#span, position);
    const slice = { start, size };
    await this.#options.output.read(slice, position);
    this.#isReading = false;
    if (restarts === this.#restarts) {
      this.#spilled.delete(position);
      this.readBack += size;
      this.#hash(slice);
    } else {
      this.release(slice); // the span was restarted meanwhile
    }
    this.#pump();
  }
}
