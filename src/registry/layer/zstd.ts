import { Decompress } from 'fzstd';
import { IntegrityError } from '../../base/errors.ts';
import { createByteReader, type ByteReader } from './byte-reader.ts';

/** RFC 8878 3.1.1: what a frame begins with, as a little-endian number. */
const FRAME_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;

/** What `zstd` itself takes without `--long`: the window is memory that the sender chooses. */
const MAX_WINDOW_SIZE = 128 * 1024 * 1024;

/** RFC 8878 3.1.1.2.4: no block is larger, packed or unpacked. */
const MAX_BLOCK_SIZE = 128 * 1024;

/** RFC 8878 3.1.1.1.1.5. */
const CHECKSUM_FLAG = 4;

/** `header` says there is no checksum: the decompressor would wait for one. */
type Frame = { readonly header: Buffer; readonly hasChecksum: boolean };

/**
 * Unpacks Zstandard frames (RFC 8878) one after the other. Frames and blocks are told apart here and
 * handed over one block at a time: the decompressor then never gives more than 128 KiB at once, and
 * never takes a window of more than 128 MiB. Checksums are not looked at: the blob's digest is.
 *
 * @throws IntegrityError `layer.malformed`, `layer.window-too-large`
 */
export async function* unzstd(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const reader = createByteReader(source);
  while (await reader.hasMore()) {
    const magic = await reader.take(4);
    const number = magic.readUInt32LE();
    if (number === FRAME_MAGIC) yield* unpackFrame(reader, await readFrame(reader, magic));
    else if ((number & 0xfffffff0) === SKIPPABLE_MAGIC) {
      await reader.skip((await reader.take(4)).readUInt32LE());
    } else {
      throw malformed(`0x${number.toString(16)} is no frame of zstd`);
    }
  }
}

async function* unpackFrame(reader: ByteReader, frame: Frame): AsyncGenerator<Buffer> {
  let output: Uint8Array[] = [];
  const decompressor = new Decompress((block) => output.push(block));
  decompressor.push(frame.header);
  for (let isLast = false; !isLast;) {
    const header = await reader.take(3);
    const number = header.readUIntLE(0, 3);
    isLast = (number & 1) === 1;
    const isRepeated = ((number >> 1) & 3) === 1; // one byte stands for all of the block
    const size = number >> 3;
    if (size > MAX_BLOCK_SIZE) throw malformed(`a zstd block has ${size} bytes`);
    const block = await reader.take(isRepeated ? 1 : size);
    decompressor.push(Buffer.concat([header, block]), isLast);
    for (const { buffer, byteOffset, length } of output)
      yield Buffer.from(buffer, byteOffset, length);
    output = [];
  }
  if (frame.hasChecksum) await reader.skip(4);
}

/** RFC 8878 3.1.1.1: descriptor, window descriptor, dictionary id, content size. */
async function readFrame(reader: ByteReader, magic: Buffer): Promise<Frame> {
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
    throw new IntegrityError(
      'layer.window-too-large',
      `zstd wants a window of ${windowSize} bytes, but at most ${MAX_WINDOW_SIZE} are given`,
      { expected: `at most ${MAX_WINDOW_SIZE} bytes`, found: `${windowSize} bytes` },
    );
  }
  const unchecked = Buffer.of(flags & ~CHECKSUM_FLAG);
  const header = Buffer.concat([magic, unchecked, window, dictionary, content]);
  return { header, hasChecksum: (flags & CHECKSUM_FLAG) !== 0 };
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

const malformed = (reason: string): IntegrityError =>
  new IntegrityError('layer.malformed', `layer cannot be unpacked: ${reason}`);
