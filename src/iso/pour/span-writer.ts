import { open, type FileHandle } from 'node:fs/promises';
import type { Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { Extent } from '../extent.ts';
import type { BufferPool } from './buffer-pool.ts';
import type { HashStream, Hasher, Slice } from './hasher.ts';
import type { IsoDigest } from './iso-digest.ts';
import { DIRECT_ALIGNMENT, type OutputFile } from './output-file.ts';
import type { PourSpan } from './spans.ts';

/** Bytes of an extent as they arrive. */
export type ExtentChunk = {
  /** Bytes from the extent's start. An offset of 0 in the middle means that the source starts over. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  /** Name of the source, for errors. */
  readonly source: string;
  /** Whether the bytes cost no network. */
  readonly local: boolean;
};

/** An extent's bytes: in a local file, which is read without detours, or as a stream. */
export type OpenExtent =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly position: number;
      readonly source: string;
    }
  | { readonly kind: 'stream'; readonly chunks: AsyncIterable<ExtentChunk> };

export type OpenExtentOptions = {
  /** Where in the extent to start. */
  readonly offset: number;
  /** Sources that gave wrong bytes and are not to be asked again. */
  readonly refused: ReadonlySet<string>;
  readonly signal: AbortSignal;
};

/** Throws when no source (that is not refused) has the extent. */
export type ExtentOpener = (extent: Extent, options: OpenExtentOptions) => Promise<OpenExtent>;

/** Bytes, by where they came from and went. */
export type PourCounters = { fetched: number; copied: number; kept: number; written: number };

export type LaneTools = {
  readonly pool: BufferPool;
  readonly hasher: Hasher;
  readonly output: OutputFile;
  readonly isoDigest: IsoDigest;
  readonly openExtent: ExtentOpener;
  readonly counters: PourCounters;
  readonly notePrefix: (span: number, size: number, digest: Digest) => void;
  readonly signal: AbortSignal;
  readonly onBytes: (size: number) => void;
};

/** What an earlier run left of the span in the output: so many bytes with this digest. */
export type Kept = { readonly size: number; readonly digest: Digest };

type SpanWriterOptions = {
  readonly index: number;
  readonly span: PourSpan;
  readonly tools: LaneTools;
  /** undefined for rendered bytes, which need no check. */
  readonly hash?: HashStream;
};

/** Two buffers of a span are under way at a time: one is hashed and written while one fills. */
const MAX_UNDER_WAY = 2;

/**
 * Brings the bytes of one span into the output, front to back: each buffer is hashed and written at
 * the same time, noted in the journal, and handed to the digest of the whole ISO.
 */
export class SpanWriter {
  /** Bytes of the span that were handed on. */
  position = 0;
  readonly #index: number;
  readonly #span: PourSpan;
  readonly #tools: LaneTools;
  readonly #hash: HashStream | undefined;
  #buffer: Slice | undefined;
  #filled = 0;
  #underWay: Promise<unknown>[] = [];
  #last: Promise<unknown> = Promise.resolve();

  constructor({ index, span, tools, hash }: SpanWriterOptions) {
    this.#index = index;
    this.#span = span;
    this.#tools = tools;
    this.#hash = hash;
    hash?.snapshot();
  }

  async add(bytes: Uint8Array): Promise<void> {
    let taken = 0;
    while (taken < bytes.length) {
      this.#buffer ??= await this.#acquire();
      const room = this.#roomIn(this.#buffer);
      const size = Math.min(room - this.#filled, bytes.length - taken);
      const target = this.#buffer.start + this.#filled;
      this.#tools.pool.bytes.set(bytes.subarray(taken, taken + size), target);
      this.#filled += size;
      taken += size;
      if (this.#filled === room) await this.#flush();
    }
  }

  /** Takes what stands in the output already; false when it is not what it should be. */
  async keep(kept: Kept): Promise<boolean> {
    const { output, isoDigest, counters } = this.#tools;
    let digest: Digest | undefined;
    while (this.position < kept.size) {
      this.#tools.signal.throwIfAborted();
      const free = await this.#acquire();
      const size = Math.min(this.#roomIn(free), kept.size - this.position);
      const slice = { start: free.start, size };
      const position = this.#span.offset + this.position;
      await output.read(slice, position);
      digest = await this.#hash?.update(slice, this.position + size === kept.size);
      isoDigest.offer(slice, position);
      this.position += size;
      counters.kept += size;
      this.#tools.onBytes(size);
    }
    return digest === kept.digest;
  }

  /** The rest of the span out of a local file. */
  async copyFile(opened: Extract<OpenExtent, { kind: 'file' }>): Promise<string> {
    const file = await open(opened.path);
    try {
      const from = opened.position - this.position;
      while (this.position < this.#span.size) {
        this.#tools.signal.throwIfAborted();
        const free = await this.#acquire();
        const slice = { start: free.start, size: this.#roomIn(free) };
        const view = this.#tools.pool.bytes.subarray(slice.start, slice.start + slice.size);
        const read = await readFully(file, view, from + this.position);
        view.fill(0, read); // a file that is too short has the wrong digest, too
        this.#tools.counters.copied += slice.size;
        await this.#handOn(slice);
      }
    } finally {
      await file.close();
    }
    return opened.source;
  }

  /** The rest of the span out of a stream. Returns the name of the source that gave the last byte. */
  async copyStream(chunks: AsyncIterable<ExtentChunk>): Promise<string | undefined> {
    let source: string | undefined;
    for await (const chunk of chunks) {
      if (chunk.offset !== this.position + this.#filled) await this.#startOver();
      source = chunk.source;
      const end = chunk.offset + chunk.bytes.length;
      if (end > this.#span.size) throw tooLong(this.#span, source);
      if (chunk.local) this.#tools.counters.copied += chunk.bytes.length;
      else this.#tools.counters.fetched += chunk.bytes.length;
      await this.add(chunk.bytes);
    }
    return source;
  }

  async end(): Promise<void> {
    await this.#flush();
    await this.#settle();
  }

  /** Waits for what is under way and gives the buffer back, after an error. */
  async abandon(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    this.#dropBuffer();
  }

  #acquire(): Promise<Slice> {
    return this.#tools.pool.acquire({ urgent: () => this.#isAwaited(this.position) });
  }

  #isAwaited(position: number): boolean {
    return this.#tools.isoDigest.isAwaited(this.#index, this.#span.offset + position);
  }

  /** Up to the next block boundary of the output, so that all further buffers suit direct I/O. */
  #roomIn(buffer: Slice): number {
    const behind = (this.#span.offset + this.position) % DIRECT_ALIGNMENT;
    const room = behind === 0 ? buffer.size : DIRECT_ALIGNMENT - behind;
    return Math.min(room, this.#span.size - this.position);
  }

  async #flush(): Promise<void> {
    if (!this.#buffer || this.#filled === 0) return;
    const slice = { start: this.#buffer.start, size: this.#filled };
    this.#buffer = undefined;
    this.#filled = 0;
    await this.#handOn(slice);
  }

  async #handOn(slice: Slice): Promise<void> {
    const { isoDigest } = this.#tools;
    const at = this.position;
    this.position += slice.size;
    const cached = !this.#isAwaited(at) && isoDigest.isSpilling();
    const work = Promise.all([
      this.#tools.output.write(slice, this.#span.offset + at, cached),
      this.#hash?.update(slice, true),
      this.#last,
    ]).then(([, digest]) => {
      this.#tools.counters.written += slice.size;
      if (digest) this.#tools.notePrefix(this.#index, at + slice.size, digest);
      this.#tools.onBytes(slice.size);
      isoDigest.offer(slice, this.#span.offset + at);
    });
    work.catch(() => undefined); // awaited below, in #settle or in abandon; never unhandled in between
    this.#last = work;
    this.#underWay.push(work);
    if (this.#underWay.length > MAX_UNDER_WAY) await this.#underWay.shift();
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#underWay);
    this.#underWay = [];
  }

  async #startOver(): Promise<void> {
    await this.#settle();
    this.#dropBuffer();
    this.#tools.onBytes(-this.position);
    this.position = 0;
    this.#hash?.restore();
    this.#tools.isoDigest.restart(this.#index);
  }

  #dropBuffer(): void {
    if (this.#buffer) this.#tools.pool.release(this.#buffer);
    this.#buffer = undefined;
    this.#filled = 0;
  }
}

function tooLong(span: PourSpan, source: string): IntegrityError {
  return new IntegrityError(
    'extent.too-long',
    `${source} gave more than the ${span.size} bytes of the extent at byte ${span.offset}`,
    { expected: String(span.size) },
  );
}

/** Short only at the end of the file: the digest then tells that the source is too short. */
async function readFully(file: FileHandle, view: Uint8Array, position: number): Promise<number> {
  let read = 0;
  while (read < view.length) {
    const { bytesRead } = await file.read(view, read, view.length - read, position + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return read;
}
