import { Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { DecodeError } from './limits.ts';
import { type ByteReader, createByteReader } from './byte-reader.ts';
import { decodeInThread } from './threads.ts';

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
 * Unpacks Zstandard frames (RFC 8878) one after the other, outside the main thread: with Node's decoder if it
 * has one, else with one in WebAssembly. Windows are measured before either sees a frame.
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
