// @ts-check
// A thread that unpacks one stream after the other. Plain JavaScript: a worker is loaded by file, and
// Node 20 cannot load TypeScript. It and its owner take turns: every message is the answer to one.
import { ReadableStream } from 'node:stream/web';
import { parentPort } from 'node:worker_threads';
import xz from 'xz-decompress';
import { ZSTDDecoder } from 'zstddec/stream';

/** @typedef {{ format?: 'zstd' | 'xz', input?: Uint8Array, isOver?: boolean }} Message */
/** @typedef {{ op: 'want' | 'end' } | { op: 'output', bytes: Uint8Array } | { op: 'error', reason: string }} Reply */

/** Bytes of one output, of which there may be fewer. */
const OUTPUT_SIZE = 256 * 1024;

/** @type {(message: Message) => void} */
let take = () => undefined;

/** @returns {Promise<Message>} */
const nextMessage = () =>
  new Promise((resolve) => {
    take = resolve;
  });

/** Ends with the last answer: the streams of xz read ahead, and ask while an output is under way. */
let turn = nextMessage();

/** @param {Reply} reply @returns {Promise<Message>} */
async function answer(reply) {
  turn = turn.then(() => {
    const next = nextMessage();
    const sent = reply.op === 'output' ? [/** @type {ArrayBuffer} */ (reply.bytes.buffer)] : [];
    parentPort?.postMessage(reply, sent);
    return next;
  });
  const message = await turn;
  if (message.isOver) throw new Error('no more is wanted of the stream');
  return message;
}

async function* readInput() {
  for (;;) {
    const { input } = await answer({ op: 'want' });
    if (input === undefined) return;
    yield input;
  }
}

/** @type {Record<'zstd' | 'xz', (input: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>>} */
const DECODERS = { zstd: decodeZstd, xz: (input) => gather(decodeXz(input)) };

async function serve() {
  let message = await turn;
  for (;;) {
    const { format } = message;
    if (format === undefined) throw new Error('a stream starts with its format');
    try {
      for await (const bytes of DECODERS[format](readInput()))
        await answer({ op: 'output', bytes });
      message = await answer({ op: 'end' });
    } catch (error) {
      message = await answer({ op: 'error', reason: /** @type {Error} */ (error).message });
    }
  }
}

/**
 * The exports of the WebAssembly module of zstddec. Its own loop around ZSTD_decompressStream does not look at
 * errors, and never ends after one.
 *
 * @typedef {{ memory: { readonly buffer: ArrayBuffer }, malloc: (size: number) => number, free: (at: number) => void,
 *   ZSTD_createDCtx: () => number, ZSTD_freeDCtx: (context: number) => void,
 *   ZSTD_decompressStream: (context: number, output: number, input: number) => number }} Zstd
 */

/** @type {Promise<Zstd> | undefined} */
let loading;

/** @returns {Promise<Zstd>} */
async function loadZstd() {
  const decoder = new ZSTDDecoder();
  /** @type {unknown} */
  let exports;
  const init = /** @type {(source: unknown) => void} */ (decoder._init.bind(decoder));
  decoder._init = (/** @type {unknown} */ source) => {
    init(source); // it follows the memory when that grows
    ({ exports } = /** @type {{ instance: { exports: unknown } }} */ (source).instance);
  };
  await decoder.init();
  return /** @type {Zstd} */ (exports);
}

/** zstd_errors.h: an error is the negative of its code, which is below 120, as a size_t. */
const FIRST_ERROR = 2 ** 32 - 120;

/** @param {AsyncIterable<Uint8Array>} input @returns {AsyncGenerator<Uint8Array>} */
async function* decodeZstd(input) {
  const zstd = await (loading ??= loadZstd());
  const context = zstd.ZSTD_createDCtx();
  const output = zstd.malloc(OUTPUT_SIZE);
  const buffers = zstd.malloc(24); // ZSTD_outBuffer and ZSTD_inBuffer: address, size, position
  let wanted = 0;
  /** @param {number} packed @param {number} size @param {number} position */
  const step = (packed, size, position) => {
    const before = new Uint32Array(zstd.memory.buffer, buffers, 6);
    before.set([output, OUTPUT_SIZE, 0, packed, size, position]);
    wanted = zstd.ZSTD_decompressStream(context, buffers, buffers + 12) >>> 0;
    if (wanted > FIRST_ERROR) throw new Error(`zstd ends with error ${2 ** 32 - wanted}`);
    // The memory may have grown, which leaves another buffer.
    const [, , made = 0, , , taken = 0] = new Uint32Array(zstd.memory.buffer, buffers, 6);
    return { made, taken };
  };
  try {
    for await (const bytes of input) {
      const packed = zstd.malloc(bytes.length);
      new Uint8Array(zstd.memory.buffer).set(bytes, packed);
      for (let position = 0, isDone = false; !isDone;) {
        const { made, taken } = step(packed, bytes.length, position);
        position = taken;
        isDone = taken === bytes.length && (made < OUTPUT_SIZE || wanted === 0);
        if (made > 0) yield new Uint8Array(zstd.memory.buffer.slice(output, output + made));
      }
      zstd.free(packed);
    }
    if (wanted !== 0) throw new Error('zstd ends within a frame');
  } finally {
    zstd.ZSTD_freeDCtx(context);
    zstd.free(output);
    zstd.free(buffers);
  }
}

/** enum xz_ret of xz.h, of XZ Embedded. @type {Record<string, string>} */
const XZ_ERRORS = {
  3: 'there is no memory for its window',
  4: 'its window is too large',
  5: 'it is not an xz stream',
  6: 'it has a filter or an option that is not supported',
  7: 'it is damaged',
  8: 'it is cut off',
};

/** @param {AsyncIterable<Uint8Array>} input */
async function* decodeXz(input) {
  const stream = new xz.XzReadableStream(ReadableStream.from(input));
  try {
    yield* /** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (stream));
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    const [, code = ''] = /error code (\d+)$/.exec(message) ?? [];
    throw new Error(XZ_ERRORS[code] ?? message, { cause: error });
  }
}

/** One output for many: each costs a message. @param {AsyncIterable<Uint8Array>} chunks */
async function* gather(chunks) {
  /** @type {Uint8Array[]} */
  let parts = [];
  let size = 0;
  const flush = () => {
    const bytes = new Uint8Array(size);
    for (let part = parts.pop(), end = size; part; end -= part.length, part = parts.pop()) {
      bytes.set(part, end - part.length);
    }
    size = 0;
    return bytes;
  };
  for await (const chunk of chunks) {
    parts.push(chunk);
    size += chunk.length;
    if (size >= OUTPUT_SIZE) yield flush();
  }
  if (size > 0) yield flush();
}

parentPort?.on('message', (/** @type {Message} */ message) => {
  take(message);
});
await serve();
