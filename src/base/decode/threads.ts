import { Readable, type Transform } from 'node:stream';
import { Worker } from 'node:worker_threads';
import * as zlib from 'node:zlib';
import { formatDuration } from '../text/words.ts';
import { startTimer, waitFor, type Timer } from '../wait.ts';
import { DecodeError } from './limits.ts';

/*
 * Owns unpacking outside the main thread: the threads of decode-worker.mjs, the reader that takes
 * a stream apart, and the Zstandard frames that are measured before they are unpacked.
 */

/** Formats that decode-worker.mjs unpacks. */
export type ThreadFormat = 'zstd' | 'xz';

export type ThreadOptions = {
  readonly signal: AbortSignal;
  /**
   * Milliseconds for the answer to one message; default 30 s, and an answer takes some
   * milliseconds.
   */
  readonly limit?: number;
};

/** The thread's answer to a message: see decode-worker.mjs. */
type Reply =
  | { readonly op: 'want' }
  | { readonly op: 'output'; readonly bytes: Uint8Array }
  | { readonly op: 'end' }
  | { readonly op: 'error'; readonly reason: string };

type Message = {
  /** Starts a stream. */
  readonly format?: ThreadFormat;
  /** More of the stream; a message without it is the end of the stream, or asks for more output. */
  readonly input?: Uint8Array;
  /** Ends a stream that is no longer needed; the answer is an error. */
  readonly isOver?: true;
};

const STEP_LIMIT = 30_000;

/** Mebibytes, without the memory of WebAssembly, which is at most a window and a half. */
const LIMITS = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 64 };

/** A worker, and the caller that waits for its answer. */
type Thread = {
  readonly worker: Worker;
  settle?: { readonly resolve: (reply: Reply) => void; readonly reject: (error: unknown) => void };
};

/** A start takes a tenth of a second of processor time: threads that ended well wait for more. */
const idle: Thread[] = [];

/**
 * Unpacks a stream in a thread. No more is read than the thread asks for, and it makes no more
 * than is taken. A thread that does not answer in time is ended, as is one whose stream is not
 * read to its end.
 *
 * @throws DecodeError; errors of the source; the signal's reason
 */
export async function* decodeInThread(
  format: ThreadFormat,
  source: AsyncIterable<Uint8Array>,
  options: ThreadOptions,
): AsyncGenerator<Buffer> {
  options.signal.throwIfAborted();
  const input = source[Symbol.asyncIterator]();
  const thread = idle.pop() ?? startThread();
  thread.worker.ref();
  /** True if it waits for a message. */
  let isWaiting = false;
  let isFree = false;
  try {
    let message: Message = { format };
    for (;;) {
      isWaiting = false;
      const reply = await ask(thread, message, options);
      isWaiting = true;
      message = {};
      if (reply.op === 'want') message = await nextInput(input);
      else if (reply.op === 'output') yield Buffer.from(reply.bytes.buffer);
      else {
        isFree = true;
        if (reply.op === 'end') return;
        throw new DecodeError('malformed', reply.reason);
      }
    }
  } finally {
    if (isWaiting && !isFree) isFree = await endStream(thread, format, options);
    if (isFree) {
      thread.worker.unref();
      idle.push(thread);
    } else void thread.worker.terminate();
    await input.return?.();
  }
}

/** True if the thread is ready for another stream: a thread for xz may still read ahead. */
async function endStream(
  thread: Thread,
  format: ThreadFormat,
  options: ThreadOptions,
): Promise<boolean> {
  if (format === 'xz' || options.signal.aborted) return false;
  return ask(thread, { isOver: true }, options).then(
    ({ op }) => op === 'error',
    () => false,
  );
}

function startThread(): Thread {
  const worker = new Worker(new URL('./decode-worker.mjs', import.meta.url), {
    resourceLimits: LIMITS,
  });
  const thread: Thread = { worker };
  worker.on('message', (reply: Reply) => thread.settle?.resolve(reply));
  worker.on('error', (error) => {
    thread.settle?.reject(error);
    const at = idle.indexOf(thread);
    if (at !== -1) idle.splice(at, 1);
  });
  return thread;
}

async function nextInput(input: AsyncIterator<Uint8Array>): Promise<Message> {
  const next = await input.next();
  // A copy, because sent memory is gone, and a view would take along all the memory that it is a
  // part of.
  return next.done === true ? {} : { input: new Uint8Array(next.value) };
}

function ask(
  thread: Thread,
  message: Message,
  { signal, limit = STEP_LIMIT }: ThreadOptions,
): Promise<Reply> {
  let timer: Timer | undefined;
  return waitFor<Reply>(signal, (resolve, reject) => {
    thread.settle = { resolve, reject };
    timer = startTimer(limit, () => {
      reject(
        new DecodeError('too-slow', `the decoder did not answer for ${formatDuration(limit)}`),
      );
    });
    const { input } = message;
    thread.worker.postMessage(message, input ? [input.buffer as ArrayBuffer] : []);
  }).finally(() => timer?.stop());
}

/** Takes a stream apart at byte counts, regardless of the pieces it comes in. */
export type ByteReader = {
  /** Bytes taken and skipped so far. */
  readonly position: number;
  /** True if there is another byte. */
  hasMore: () => Promise<boolean>;
  /** @throws DecodeError when the stream ends before that. */
  take: (size: number) => Promise<Buffer>;
  /**
   * Skips so many bytes without holding them.
   *
   * @throws DecodeError if the stream ends before that.
   */
  skip: (size: number) => Promise<void>;
};

export function createByteReader(source: AsyncIterable<Uint8Array>): ByteReader {
  const chunks = source[Symbol.asyncIterator]();
  let chunk: Buffer = Buffer.alloc(0);
  let position = 0;
  const hasMore = async (): Promise<boolean> => {
    while (chunk.length === 0) {
      const next = await chunks.next();
      if (next.done === true) return false;
      chunk = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.length);
    }
    return true;
  };
  /** Takes at most so many of the bytes that have arrived. */
  const shift = async (size: number): Promise<Buffer> => {
    if (!(await hasMore())) {
      throw new DecodeError(
        'malformed',
        `it ends although at least ${size} more bytes should follow`,
      );
    }
    const head = chunk.subarray(0, size);
    chunk = chunk.subarray(size);
    position += head.length;
    return head;
  };
  return {
    get position() {
      return position;
    },
    hasMore,
    async take(size) {
      const parts: Buffer[] = [];
      for (let left = size; left > 0;) {
        const part = await shift(left);
        parts.push(part);
        left -= part.length;
      }
      return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
    },
    async skip(size) {
      for (let left = size; left > 0;) left -= (await shift(left)).length;
    },
  };
}

/** RFC 8878 3.1.1: the first bytes of a frame, as a little-endian number. */
const FRAME_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;

/**
 * The window is memory that the sender chooses. `zstd -19` takes 8 MiB, the packers of images no
 * more; only `--ultra` and `--long` take above 32 MiB.
 */
const MAX_WINDOW_SIZE = 32 * 1024 * 1024;

/** RFC 8878 3.1.1.2.4: no block is larger, packed or unpacked. */
const MAX_BLOCK_SIZE = 128 * 1024;

/** RFC 8878 3.1.1.1.1.5. */
const CHECKSUM_FLAG = 4;

/** Bytes that go to the decoder at once, if a frame has as many. */
const PIECE_SIZE = 256 * 1024;

/** Zstandard functions that came with Node 22.15 and 23.8; @types/node is for Node 20. */
type ZstdOfNode = {
  readonly createZstdDecompress?: (options: {
    readonly chunkSize: number;
    readonly params: Readonly<Record<number, number>>;
  }) => Transform;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number };
};

/**
 * Unpacks Zstandard frames (RFC 8878) one after the other, outside the main thread: with Node's
 * decoder if it has one, else with one in WebAssembly. Windows are measured before either sees a
 * frame.
 *
 * @throws DecodeError; the signal's reason
 */
export async function* unzstd(
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  yield* decodeFrames(readFrames(createByteReader(source)), signal);
}

/**
 * Unpacks the next frame alone, outside the main thread; the reader is then after it.
 *
 * @throws DecodeError; the signal's reason
 */
export async function* unzstdFrame(
  reader: ByteReader,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  yield* decodeFrames(readFrame(reader, await reader.take(4)), signal);
}

function decodeFrames(pieces: AsyncIterable<Buffer>, signal: AbortSignal): AsyncIterable<Buffer> {
  const { createZstdDecompress, constants } = zlib as unknown as ZstdOfNode;
  if (createZstdDecompress === undefined) return decodeInThread('zstd', pieces, { signal });
  const { ZSTD_d_windowLogMax: windowLogMax = 100 } = constants;
  const decoder = createZstdDecompress({
    chunkSize: PIECE_SIZE,
    params: { [windowLogMax]: Math.log2(MAX_WINDOW_SIZE) },
  });
  const source = Readable.from(pieces, { objectMode: false });
  return source.compose(decoder, { signal }) as AsyncIterable<Buffer>;
}

/** Frames as they are, small ones together in one piece; skippable frames are left out. */
async function* readFrames(reader: ByteReader): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let size = 0;
  while (await reader.hasMore()) {
    const magic = await reader.take(4);
    const number = magic.readUInt32LE();
    if ((number & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
      await reader.skip((await reader.take(4)).readUInt32LE());
      continue;
    }
    for await (const piece of readFrame(reader, magic)) {
      parts.push(piece);
      size += piece.length;
      if (size < PIECE_SIZE) continue;
      yield Buffer.concat(parts);
      parts = [];
      size = 0;
    }
  }
  if (size > 0) yield Buffer.concat(parts);
}

/** RFC 8878 3.1.1: a header, blocks, and a checksum if the header announces one. */
async function* readFrame(reader: ByteReader, magic: Buffer): AsyncGenerator<Buffer> {
  const number = magic.readUInt32LE();
  if (number !== FRAME_MAGIC)
    throw malformed(`0x${number.toString(16)} is not the start of a zstd frame`);
  const header = await readHeader(reader);
  let parts = [magic, header];
  let size = 0;
  for (let isLast = false; !isLast;) {
    const block = await reader.take(3);
    const field = block.readUIntLE(0, 3);
    isLast = (field & 1) === 1;
    const isRepeated = ((field >> 1) & 3) === 1; // one byte represents all of the block
    const blockSize = field >> 3;
    if (blockSize > MAX_BLOCK_SIZE) throw malformed(`a zstd block has ${blockSize} bytes`);
    const data = await reader.take(isRepeated ? 1 : blockSize);
    parts.push(block, data);
    size += 3 + data.length;
    if (size >= PIECE_SIZE && !isLast) {
      yield Buffer.concat(parts);
      parts = [];
      size = 0;
    }
  }
  const hasChecksum = (header.readUInt8() & CHECKSUM_FLAG) !== 0;
  if (hasChecksum) parts.push(await reader.take(4));
  yield Buffer.concat(parts);
}

/** RFC 8878 3.1.1.1: descriptor, window descriptor, dictionary id, content size. */
async function readHeader(reader: ByteReader): Promise<Buffer> {
  const descriptor = await reader.take(1);
  const flags = descriptor.readUInt8();
  const isSingleSegment = ((flags >> 5) & 1) === 1;
  const dictionarySize = [0, 1, 2, 4][flags & 3] ?? 0;
  const contentSizeSize = [isSingleSegment ? 1 : 0, 2, 4, 8][flags >> 6] ?? 0;
  const window = await reader.take(isSingleSegment ? 0 : 1);
  const dictionary = await reader.take(dictionarySize);
  const content = await reader.take(contentSizeSize);
  const windowSize = isSingleSegment ? decodeContentSize(content) : decodeWindowSize(window);
  if (windowSize > MAX_WINDOW_SIZE) {
    throw new DecodeError(
      'window-too-large',
      `zstd needs a window of ${windowSize} bytes, but at most ${MAX_WINDOW_SIZE} are allowed`,
      { expected: `at most ${MAX_WINDOW_SIZE} bytes`, found: `${windowSize} bytes` },
    );
  }
  return Buffer.concat([descriptor, window, dictionary, content]);
}

/** RFC 8878 3.1.1.1.2: a power of two and so many eighths of it. */
function decodeWindowSize(window: Buffer): number {
  const byte = window.readUInt8();
  const base = 2 ** (10 + (byte >> 3));
  return base + (base / 8) * (byte & 7);
}

/** RFC 8878 3.1.1.1.4: two bytes count from 256. */
function decodeContentSize(content: Buffer): number {
  if (content.length === 8) return Number(content.readBigUInt64LE());
  return content.readUIntLE(0, content.length) + (content.length === 2 ? 256 : 0);
}

const malformed = (reason: string): DecodeError => new DecodeError('malformed', reason);
