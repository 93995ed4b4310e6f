import { crc32 } from 'node:zlib';
import { IntegrityError } from '../base/errors.ts';
import {
  createLzmaDecoder,
  decodeLzma,
  LzmaError,
  resetState,
  setProperties,
  type LzmaDecoder,
} from './lzma.ts';

const HEADER_SIZE = 12;
/** What one byte of the index can count. Each block takes a decoder with its tables, even an empty one. */
const MAX_BLOCKS = 127;

/**
 * Unpacks the xz stream at the start of `bytes` (the .xz file format 1.1.0) and says how many bytes
 * it takes. As in the kernel: one filter, LZMA2, and no check but CRC32. `onChunk` gets 0 for each
 * block, and the bytes of each chunk before any of its block is unpacked; it may throw.
 *
 * @throws IntegrityError `initrd.malformed`, `initrd.compression` (other filters and checks)
 */
export function decodeXz(
  bytes: Uint8Array,
  onChunk: OnChunk,
): { readonly unpacked: Uint8Array; readonly size: number } {
  const input = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  verifyChecksum(input, 6, 8);
  const check = (input[7] ?? 0) & 15;
  if (check > 1) {
    throw unsupported(`check ${check}, but the kernel knows only CRC32`);
  }
  const blocks: Uint8Array[] = [];
  let offset = HEADER_SIZE;
  while (byteAt(input, offset) !== 0) {
    if (blocks.length === MAX_BLOCKS) throw tooManyBlocks();
    onChunk(0);
    const block = decodeBlock(input, offset, onChunk);
    offset = block.end;
    if (check === 1 && readUInt32(input, offset) !== crc32(block.unpacked)) {
      throw malformed('has a block with a wrong checksum');
    }
    offset += check * 4;
    blocks.push(block.unpacked);
  }
  const size = measureIndex(input, offset) + HEADER_SIZE;
  if (input.toString('latin1', size - 2, size) !== 'YZ') throw malformed('has no footer');
  return { unpacked: Buffer.concat(blocks), size };
}

type OnChunk = (size: number) => void;

type Block = { readonly unpacked: Uint8Array; readonly end: number };

function decodeBlock(input: Buffer, start: number, onChunk: OnChunk): Block {
  const headerSize = (byteAt(input, start) + 1) * 4;
  verifyChecksum(input, start, start + headerSize - 4);
  const flags = byteAt(input, start + 1);
  let offset = start + 2;
  for (const flag of [0x40, 0x80]) {
    if ((flags & flag) !== 0) offset = skipInteger(input, offset);
  }
  if ((flags & 3) !== 0 || byteAt(input, offset) !== 0x21) {
    throw unsupported('a filter that is not LZMA2');
  }
  const { chunks, end } = findChunks(input, start + headerSize, onChunk);
  const size = chunks.reduce((sum, chunk) => sum + chunk.size, 0);
  return { unpacked: decodeChunks(chunks, size), end: align4(end) };
}

/** LZMA2: see the .xz file format, 5.3.1. `control` has the kind and the resets. */
type Chunk = {
  readonly control: number;
  readonly properties: number;
  readonly data: Uint8Array;
  readonly size: number;
};

/** All chunks of a block before any is unpacked: then the size of the output is known. */
function findChunks(
  input: Buffer,
  start: number,
  onChunk: OnChunk,
): { readonly chunks: readonly Chunk[]; readonly end: number } {
  const chunks: Chunk[] = [];
  let offset = start;
  for (let control = byteAt(input, offset); control !== 0; control = byteAt(input, offset)) {
    if (offset + 6 > input.length) throw malformed('is cut off');
    if (control > 2 && control < 0x80) throw malformed(`has a chunk of unknown kind ${control}`);
    const isLzma = control >= 0x80;
    const low = input.readUInt16BE(offset + 1) + 1;
    const size = isLzma ? ((control & 0x1f) << 16) + low : low;
    const packedSize = isLzma ? input.readUInt16BE(offset + 3) + 1 : low;
    const hasProperties = control >= 0xc0;
    const properties = hasProperties ? byteAt(input, offset + 5) : 0;
    const dataStart = offset + (isLzma ? 5 : 3) + Number(hasProperties);
    const data = input.subarray(dataStart, dataStart + packedSize);
    if (data.length < packedSize) throw malformed('is cut off');
    onChunk(size);
    chunks.push({ control, properties, data, size });
    offset = dataStart + packedSize;
  }
  return { chunks, end: offset + 1 };
}

function decodeChunks(chunks: readonly Chunk[], size: number): Uint8Array {
  const decoder = createLzmaDecoder(new Uint8Array(size));
  try {
    for (const chunk of chunks) decodeChunk(decoder, chunk);
  } catch (cause) {
    if (cause instanceof LzmaError) throw malformed('cannot be unpacked', cause);
    throw cause;
  }
  return decoder.output;
}

function decodeChunk(decoder: LzmaDecoder, chunk: Chunk): void {
  const { control, data } = chunk;
  if (control === 1 || control >= 0xe0) decoder.dictionaryStart = decoder.position;
  if (control < 0x80) {
    decoder.output.set(data, decoder.position);
    decoder.position += data.length;
    return;
  }
  if (control >= 0xc0) setProperties(decoder, chunk.properties);
  if (control >= 0xa0) resetState(decoder);
  decodeLzma(decoder, data, chunk.size);
}

/** Where the index ends: number of records, two sizes each, padding, CRC32. */
function measureIndex(input: Buffer, start: number): number {
  let offset = start + 1;
  const count = byteAt(input, offset);
  if (count > MAX_BLOCKS) throw tooManyBlocks();
  offset++;
  for (let integer = 0; integer < count * 2; integer++) offset = skipInteger(input, offset);
  const end = start + align4(offset - start);
  verifyChecksum(input, start, end);
  return end + 4;
}

/** Seven bits a byte, lowest first; the highest bit says that more follow. */
function skipInteger(input: Buffer, start: number): number {
  let offset = start;
  while (byteAt(input, offset) >= 0x80) offset++;
  return offset + 1;
}

function verifyChecksum(input: Buffer, start: number, end: number): void {
  if (readUInt32(input, end) !== crc32(input.subarray(start, end))) {
    throw malformed('has a header with a wrong checksum');
  }
}

function readUInt32(input: Buffer, offset: number): number {
  if (offset + 4 > input.length) throw malformed('is cut off');
  return input.readUInt32LE(offset);
}

function byteAt(input: Buffer, offset: number): number {
  const byte = input[offset];
  if (byte === undefined) throw malformed('is cut off');
  return byte;
}

const align4 = (size: number): number => Math.ceil(size / 4) * 4;

const tooManyBlocks = (): IntegrityError => malformed(`has more than ${MAX_BLOCKS} blocks`);

const malformed = (reason: string, cause?: unknown): IntegrityError =>
  new IntegrityError('initrd.malformed', `xz archive ${reason}`, { cause });

const unsupported = (what: string): IntegrityError =>
  new IntegrityError('initrd.compression', `xz archive uses ${what}`, {
    hint: 'embed the configuration again with xz --check=crc32 --lzma2, or with gzip',
  });
