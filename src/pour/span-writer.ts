import type { FileHandle } from 'node:fs/promises';
import type { Digest } from '../base/digest.ts';
import { openListed, openToRead } from '../base/disk/open-file.ts';
import type { Source } from '../base/download/sources.ts';
import { IntegrityError } from '../base/errors.ts';
import type { HashStream, Slice } from './hasher.ts';
import { BUFFER_SIZE, DIRECT_ALIGNMENT } from './output-file.ts';
import type { ExtentChunk, LaneTools, OpenExtent, Reused, PourSpan } from './spans.ts';

type SpanWriterOptions = {
  readonly index: number;
  readonly span: PourSpan;
  readonly tools: LaneTools;
  /** undefined for rendered bytes, which need no check. */
  readonly hash?: HashStream;
};

type OpenFile = Extract<OpenExtent, { kind: 'file' }>;

/** Milliseconds after which a buffer that still fills is written as it is: a kill loses its contents. */
const OLD_MS = 50;

/** One buffer of a span is hashed and written while the next one fills; a kill loses the contents of both. */
const MAX_UNDER_WAY = 1;

/**
 * Brings the bytes of one span into the output, front to back: each buffer is hashed and written at
 * the same time, noted in the journal, and handed to the digest of the whole ISO.
 */
export class SpanWriter {
  /** Bytes of the span that were passed on. */
  position = 0;
  /** True if bytes that were already in the output are among them. */
  hasPrefix = false;
  /** True if the bytes are not compared with the digest of the span. */
  isTrusted = false;
  /** The sources of the other bytes. */
  readonly used = new Set<Source>();
  readonly #index: number;
  readonly #span: PourSpan;
  readonly #tools: LaneTools;
  #hash: HashStream | undefined;
  #buffer: Slice | undefined;
  #filled = 0;
  #underWay: Promise<unknown>[] = [];
  #last: Promise<unknown> = Promise.resolve();
  /** Time at which the first byte came into the buffer, in milliseconds. */
  #since = 0;
  #isClosed = false;

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
      const buffer = (this.#buffer ??= await this.#begin());
      this.#throwIfClosed();
      const room = this.#roomIn(buffer);
      const size = Math.min(room - this.#filled, bytes.length - taken);
      const start = buffer.start + this.#filled;
      // `set` takes five times as long: it goes byte by byte if the two are aligned differently.
      this.#tools.memory.fill(bytes.subarray(taken, taken + size), start, start + size);
      this.#filled += size;
      taken += size;
      if (this.#filled === room) await this.#flush();
    }
    if (performance.now() - this.#since > OLD_MS) await this.#flushBlocks();
  }

  /** Takes bytes that are already in the output; false if they are wrong. */
  async reuse(reused: Reused): Promise<boolean> {
    const { output, frontier, counters } = this.#tools;
    this.hasPrefix = true;
    let digest: Digest | undefined;
    while (this.position < reused.size) {
      this.#tools.signal.throwIfAborted();
      const free = await this.#acquire();
      const size = Math.min(this.#roomIn(free), reused.size - this.position);
      const slice = { start: free.start, size };
      const position = this.#span.offset + this.position;
      await output.read(slice, position);
      this.#throwIfClosed();
      digest = await this.#hash?.update(slice, this.position + size === reused.size);
      frontier.offer(slice, position);
      this.position += size;
      counters.reused += size;
      this.#tools.onBytes(size);
    }
    return digest === reused.digest;
  }

  /** Accepts the bytes by a record: only the digest of the whole ISO is computed from them. */
  trust(): void {
    this.isTrusted = true;
    this.#hash = undefined;
  }

  /** Copies the rest of the span from a local file. */
  async copyFile(opened: OpenFile): Promise<void> {
    this.used.add(opened.source);
    const file = await (opened.isListed === true ? openListed : openToRead)(opened.path);
    try {
      const from = opened.position - this.position;
      while (this.position < this.#span.size) {
        this.#tools.signal.throwIfAborted();
        const free = await this.#acquire();
        const slice = { start: free.start, size: this.#roomIn(free) };
        const view = this.#tools.memory.subarray(slice.start, slice.start + slice.size);
        const read = await readFully(file, view, from + this.position);
        if (this.isTrusted && read < view.length) throw tooShort(this.#span, opened);
        view.fill(0, read); // a file that is too short has the wrong digest, too
        this.#tools.counters.copied += slice.size;
        await this.#handOn(slice);
      }
    } finally {
      await file.close();
    }
  }

  /** Copies the rest of the span from a stream. */
  async copyStream(chunks: AsyncIterable<ExtentChunk>): Promise<void> {
    const { waiting } = this.#tools;
    for await (const { offset, bytes, source } of chunks) {
      waiting.since = undefined;
      if (offset !== this.position + this.#filled) await this.#startOver();
      if (offset + bytes.length > this.#span.size) throw tooLong(this.#span, source);
      this.used.add(source);
      if (source.local) this.#tools.counters.copied += bytes.length;
      else this.#tools.counters.fetched += bytes.length;
      await this.add(bytes);
      waiting.since = performance.now();
    }
    waiting.since = undefined;
  }

  /** Ends the buffer here: padding in the next one may stay a hole. */
  async cut(): Promise<void> {
    await this.#flush();
  }

  async end(): Promise<void> {
    await this.#flush();
    await this.#settle();
  }

  /**
   * Ends the writer after an error: a source that still sends is ignored from then on. Waits for the disk and
   * gives the buffer back.
   *
   * @param salvage true to write the bytes so far: after an interruption, not after wrong bytes
   */
  async abandon({ salvage }: { readonly salvage: boolean }): Promise<void> {
    if (salvage) this.#flush().catch(() => undefined); // bytes that cannot be saved are fetched again
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay);
    this.#dropBuffer();
  }

  #throwIfClosed(): void {
    if (this.#isClosed) throw this.#tools.signal.reason;
  }

  async #begin(): Promise<Slice> {
    const buffer = await this.#acquire();
    if (this.#isClosed) this.#tools.frontier.release(buffer);
    this.#throwIfClosed();
    this.#since = performance.now();
    return buffer;
  }

  #acquire(): Promise<Slice> {
    return this.#tools.frontier.acquire(this.#index, this.#span.offset + this.position);
  }

  /** Bytes up to the next block boundary of the output, so that all further buffers suit direct I/O. */
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

  /** Writes the whole blocks of a buffer that fills slowly; the rest begins the next buffer. */
  async #flushBlocks(): Promise<void> {
    this.#since = performance.now();
    const end = this.#span.offset + this.position + this.#filled;
    const rest = end % DIRECT_ALIGNMENT;
    if (!this.#buffer || this.#filled <= rest) return;
    const from = this.#buffer.start + this.#filled - rest;
    const tail = Buffer.from(this.#tools.memory.subarray(from, from + rest));
    this.#filled -= rest;
    await this.#flush();
    if (rest > 0) await this.add(tail);
  }

  async #handOn(slice: Slice): Promise<void> {
    this.#throwIfClosed();
    const { frontier } = this.#tools;
    const at = this.position;
    const position = this.#span.offset + at;
    this.position += slice.size;
    const cached = frontier.isSpilling() && !frontier.isAwaited(this.#index, position);
    const work = Promise.all([
      this.#write(slice, position, cached),
      this.#hash?.update(slice, true),
      this.#last,
    ]).then(([written, digest]) => {
      this.#tools.counters.written += written;
      if (digest) this.#tools.notePrefix(this.#index, at + slice.size, digest);
      this.#tools.onBytes(slice.size);
      frontier.offer(slice, position);
    });
    work.catch(() => undefined); // awaited below, in #settle or in abandon; never unhandled in between
    this.#last = work;
    this.#underWay.push(work);
    if (this.#underWay.length > MAX_UNDER_WAY) await this.#underWay.shift();
  }

  /** Returns the bytes that were written: padding stays a hole where the output has one. */
  async #write(slice: Slice, position: number, cached: boolean): Promise<number> {
    const { output, memory } = this.#tools;
    const isPadding =
      this.#span.kind === 'rendered' &&
      slice.size >= HOLE_SIZE &&
      memory.subarray(slice.start, slice.start + slice.size).equals(ZEROS.subarray(0, slice.size));
    if (isPadding && (await output.isHole?.(position, slice.size)) === true) return 0;
    await output.write(slice, position, cached);
    return slice.size;
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
    this.hasPrefix = false;
    this.used.clear();
    this.#hash?.restore();
    this.#tools.frontier.restart(this.#index);
  }

  #dropBuffer(): void {
    if (this.#buffer) this.#tools.frontier.release(this.#buffer);
    this.#buffer = undefined;
    this.#filled = 0;
  }
}

/** Bytes of padding that are worth a hole: smaller ones would only scatter the file. */
export const HOLE_SIZE = 64 * 1024;

const ZEROS = Buffer.alloc(BUFFER_SIZE);

export function tooLong(span: Pick<PourSpan, 'offset' | 'size'>, { name }: Source): IntegrityError {
  return new IntegrityError(
    'extent.too-long',
    `${name} gave more than the ${span.size} bytes of the extent at byte ${span.offset}`,
    { expected: String(span.size) },
  );
}

const tooShort = ({ offset }: PourSpan, { path, source }: OpenFile): IntegrityError =>
  new IntegrityError(
    'seed.changed',
    `${source.name} ends before the extent at byte ${offset} does: "${path}" has changed`,
    { hint: 'run the same command again with --rehash' },
  );

/** Reads less than the view only at the end of the file; the digest then shows that the source is too short. */
async function readFully(file: FileHandle, view: Uint8Array, position: number): Promise<number> {
  let read = 0;
  while (read < view.length) {
    const { bytesRead } = await file.read(view, read, view.length - read, position + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return read;
}
