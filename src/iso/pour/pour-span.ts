import { open } from 'node:fs/promises';
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

type StoredSpan = Extract<PourSpan, { kind: 'stored' }>;

/** What an earlier run left of the span in the output: so many bytes with this digest. */
export type Kept = { readonly size: number; readonly digest: Digest };

/** Writes rendered bytes and padding. */
export async function pourRendered(
  span: Extract<PourSpan, { kind: 'rendered' }>,
  index: number,
  tools: LaneTools,
): Promise<void> {
  const writer = createSpanWriter({ index, span, tools, hash: undefined, note: false });
  for (const { source, size } of span.extents) {
    await writer.add(source.kind === 'bytes' ? source.bytes : new Uint8Array(size));
  }
  await writer.end();
  tools.isoDigest.verify(index);
}

/**
 * Brings one blob or base extent into the output: what an earlier run left is hashed and compared,
 * the rest comes from the sources in order. A source that gives wrong bytes is not asked again.
 *
 * @throws IntegrityError `extent.wrong-digest`; whatever the opener throws
 */
export async function pourStored(
  options: { readonly span: StoredSpan; readonly index: number; readonly kept: Kept | undefined },
  tools: LaneTools,
): Promise<void> {
  const { span, index } = options;
  const refused = new Set<string>();
  let kept = options.kept;
  for (;;) {
    const found = await attempt({ span, index, kept, refused }, tools);
    if (found.digest === span.digest) {
      tools.isoDigest.verify(index);
      return;
    }
    tools.isoDigest.restart(index);
    tools.onBytes(-found.delivered);
    if (kept !== undefined) {
      kept = undefined; // the disk did not keep what the journal hoped; the sources are innocent
      continue;
    }
    if (found.source === undefined || refused.has(found.source)) throw explainWrong(span, found);
    refused.add(found.source);
  }
}

type Outcome = { readonly digest: Digest; readonly source?: string; readonly delivered: number };

async function attempt(
  options: {
    readonly span: StoredSpan;
    readonly index: number;
    readonly kept: Kept | undefined;
    readonly refused: ReadonlySet<string>;
  },
  tools: LaneTools,
): Promise<Outcome> {
  const { span, index, kept, refused } = options;
  const hash = tools.hasher.open();
  const writer = createSpanWriter({ index, span, tools, hash, note: true });
  try {
    if (kept && !(await writer.keep(kept))) {
      return { digest: await hash.digest(), delivered: writer.position() };
    }
    let source: string | undefined;
    if (writer.position() < span.size) {
      const { signal } = tools;
      const opened = await tools.openExtent(span.extent, {
        offset: writer.position(),
        refused,
        signal,
      });
      source =
        opened.kind === 'file'
          ? await writer.copyFile(opened)
          : await writer.copyStream(opened.chunks);
    }
    await writer.end();
    const delivered = writer.position();
    return { digest: await hash.digest(), delivered, ...(source !== undefined && { source }) };
  } catch (error) {
    await writer.abandon();
    hash.close();
    throw error;
  }
}

function explainWrong(span: StoredSpan, found: Outcome): IntegrityError {
  return new IntegrityError(
    'extent.wrong-digest',
    `${span.extent.paths[0] ?? `extent at byte ${span.offset}`} should be ${span.digest}, ` +
      `but ${found.source ?? 'its source'} gave ${found.digest}`,
    { expected: span.digest, found: found.digest },
  );
}

type SpanWriterOptions = {
  readonly index: number;
  readonly span: PourSpan;
  readonly tools: LaneTools;
  /** undefined for rendered bytes, which need no check. */
  readonly hash: HashStream | undefined;
  readonly note: boolean;
};

type SpanWriter = {
  /** Bytes of the span so far. */
  position: () => number;
  add: (bytes: Uint8Array) => Promise<void>;
  /** Takes what is in the output already; false when it is not what it should be. */
  keep: (kept: Kept) => Promise<boolean>;
  copyFile: (file: Extract<OpenExtent, { kind: 'file' }>) => Promise<string>;
  /** Returns the name of the source that gave the last byte. */
  copyStream: (chunks: AsyncIterable<ExtentChunk>) => Promise<string | undefined>;
  end: () => Promise<void>;
  /** Waits for what is under way and gives buffers back, after an error. */
  abandon: () => Promise<void>;
};

/** Two buffers of a span are under way at a time: one is hashed and written while one fills. */
const MAX_UNDER_WAY = 2;

function createSpanWriter({ index, span, tools, hash, note }: SpanWriterOptions): SpanWriter {
  const { pool, output, isoDigest, counters } = tools;
  const urgent = (): boolean => isoDigest.isFrontier(index);
  let position = 0; // bytes handed on
  let buffer: Slice | undefined;
  let filled = 0;
  let underWay: Promise<unknown>[] = [];
  let before: Promise<unknown> = Promise.resolve();

  /** Up to the next block boundary of the output, so that all further buffers suit direct I/O. */
  const roomAt = (at: number, buffer: Slice): number => {
    const behind = (span.offset + at) % DIRECT_ALIGNMENT;
    return Math.min(behind === 0 ? buffer.size : DIRECT_ALIGNMENT - behind, span.size - at);
  };
  const handOn = async (slice: Slice, write: boolean): Promise<void> => {
    const at = position;
    position += slice.size;
    const isNetwork = note && write;
    const cached = !urgent() && isoDigest.isSpilling();
    const previous = before;
    const work = Promise.all([
      write ? output.write(slice, span.offset + at, cached) : undefined,
      hash?.update(slice, isNetwork),
      previous,
    ]).then(([, digest]) => {
      if (write) counters.written += slice.size;
      if (digest) tools.notePrefix(index, at + slice.size, digest);
      tools.onBytes(slice.size);
      isoDigest.offer(slice, span.offset + at);
    });
    work.catch(() => undefined); // awaited below or in end(); never unhandled in between
    before = work;
    underWay.push(work);
    if (underWay.length > MAX_UNDER_WAY) await underWay.shift();
  };
  const flush = async (): Promise<void> => {
    if (!buffer || filled === 0) return;
    const slice = { start: buffer.start, size: filled };
    buffer = undefined;
    filled = 0;
    await handOn(slice, true);
  };
  const settle = async (): Promise<void> => {
    const work = underWay;
    underWay = [];
    await Promise.all(work);
  };
  const add = async (bytes: Uint8Array): Promise<void> => {
    let taken = 0;
    while (taken < bytes.length) {
      buffer ??= await pool.acquire({ urgent });
      const size = Math.min(roomAt(position, buffer) - filled, bytes.length - taken);
      pool.bytes.set(bytes.subarray(taken, taken + size), buffer.start + filled);
      filled += size;
      taken += size;
      if (filled === roomAt(position, buffer)) await flush();
    }
  };
  const startOver = async (): Promise<void> => {
    await settle();
    if (buffer) pool.release(buffer);
    buffer = undefined;
    filled = 0;
    tools.onBytes(-position);
    position = 0;
    hash?.restore();
    isoDigest.restart(index);
  };
  hash?.snapshot();

  return {
    position: () => position,
    add,
    async keep(kept) {
      let digest: Digest | undefined;
      while (position < kept.size) {
        tools.signal.throwIfAborted();
        const free = await pool.acquire({ urgent });
        const size = Math.min(roomAt(position, free), kept.size - position);
        const slice = { start: free.start, size };
        await output.read(slice, span.offset + position);
        digest = await hash?.update(slice, position + size === kept.size);
        isoDigest.offer(slice, span.offset + position);
        position += size;
        counters.kept += size;
        tools.onBytes(size);
      }
      return digest === kept.digest;
    },
    async copyFile({ path, position: start, source }) {
      const file = await open(path);
      try {
        const from = start - position;
        while (position < span.size) {
          tools.signal.throwIfAborted();
          const free = await pool.acquire({ urgent });
          const slice = { start: free.start, size: roomAt(position, free) };
          const view = pool.bytes.subarray(slice.start, slice.start + slice.size);
          const read = await readFully(file, view, from + position);
          if (read < slice.size) pool.bytes.fill(0, slice.start + read, slice.start + slice.size);
          counters.copied += slice.size;
          await handOn(slice, true);
        }
      } finally {
        await file.close();
      }
      return source;
    },
    async copyStream(chunks) {
      let source: string | undefined;
      for await (const chunk of chunks) {
        if (chunk.offset !== position + filled) await startOver();
        source = chunk.source;
        if (chunk.offset + chunk.bytes.length > span.size) throw tooLong(span, source);
        if (chunk.local) counters.copied += chunk.bytes.length;
        else counters.fetched += chunk.bytes.length;
        await add(chunk.bytes);
      }
      return source;
    },
    async end() {
      await flush();
      await settle();
    },
    async abandon() {
      await Promise.allSettled(underWay);
      if (buffer) pool.release(buffer);
    },
  };
}

function tooLong(span: PourSpan, source: string): IntegrityError {
  return new IntegrityError(
    'extent.too-long',
    `${source} gave more than the ${span.size} bytes of the extent at byte ${span.offset}`,
    { expected: String(span.size) },
  );
}

/** Short only at the end of the file: the digest then tells that the source is too short. */
async function readFully(
  file: Awaited<ReturnType<typeof open>>,
  view: Uint8Array,
  position: number,
): Promise<number> {
  let read = 0;
  while (read < view.length) {
    const { bytesRead } = await file.read(view, read, view.length - read, position + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return read;
}
