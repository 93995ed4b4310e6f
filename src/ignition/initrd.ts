import { crc32, gzipSync, inflateRawSync, type InputType } from 'node:zlib';
import { decompress as decompressZstd } from 'fzstd';
import { IntegrityError } from '../base/errors.ts';
import { decodeCpio, encodeCpio, isCpio, type CpioMember } from './cpio.ts';
import { decodeXz } from './xz.ts';
import { measureZstdFrame } from './zstd-frame.ts';

/** Bytes that one compressed archive may unpack to: far above any configuration, far below memory. */
const MAX_UNPACKED_SIZE = 1 << 29;

/**
 * An archive as an initrd: gzip at its best, padded with NUL to 4 bytes, because the kernel wants
 * whatever follows aligned. RFC 1952's clock is 0 and its system "unknown", so the same members give
 * the same bytes with the same zlib.
 */
export function encodeInitrd(members: readonly CpioMember[]): Uint8Array {
  const packed = gzipSync(encodeCpio(members), { level: 9 });
  packed.fill(0, 4, 8);
  packed[9] = 255;
  return Buffer.concat([packed, Buffer.alloc((4 - (packed.length % 4)) % 4)]);
}

/**
 * The regular files of an initrd or embed area, by name: any number of archives one after another,
 * each plain, gzip, xz or zstd, with zero bytes between and behind them. Of several files with one name
 * the last counts, as in the kernel. An area of zeros has no files.
 *
 * @throws IntegrityError `initrd.compression`, `initrd.malformed`,
 * `initrd.garbage`, `cpio.malformed`, `cpio.truncated`
 */
export function decodeInitrd(bytes: Uint8Array): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (let offset = skipZeros(bytes, 0); offset < bytes.length;) {
    const { members, end } = decodeArchive(bytes, offset);
    for (const member of members) files.set(member.name, member.data);
    offset = skipZeros(bytes, end);
  }
  return files;
}

type Archive = { readonly members: readonly CpioMember[]; readonly end: number };

function decodeArchive(bytes: Uint8Array, start: number): Archive {
  if (isCpio(bytes, start)) return decodeCpio(bytes, start);
  const magic = Buffer.from(bytes.subarray(start, start + 6)).toString('hex');
  const rest = bytes.subarray(start);
  const { unpacked, size } = unpack(magic, rest);
  return { members: decodeWhole(unpacked), end: start + size };
}

type Unpacked = { readonly unpacked: Uint8Array; readonly size: number };

function unpack(magic: string, bytes: Uint8Array): Unpacked {
  if (magic.startsWith('1f8b')) return unpackGzip(bytes);
  if (magic.startsWith('28b52ffd')) return unpackZstd(bytes);
  if (magic === 'fd377a585a00') return decodeXz(bytes, MAX_UNPACKED_SIZE);
  throw new IntegrityError(
    'initrd.compression',
    `archive starts with the bytes ${magic}, which are neither cpio, gzip, xz nor zstd`,
    { hint: 'embed the configuration again with a tool that writes gzip' },
  );
}

/** A compressed stream holds one archive and zeros; the kernel would stumble over anything else. */
function decodeWhole(bytes: Uint8Array): readonly CpioMember[] {
  const { members, end } = decodeCpio(bytes, 0);
  const garbage = skipZeros(bytes, end);
  if (garbage < bytes.length) {
    throw new IntegrityError(
      'initrd.garbage',
      `compressed archive ends at byte ${end}, but there is more at byte ${garbage}`,
    );
  }
  return members;
}

/** One gzip member by hand: node's own reader does not say where it ends. */
function unpackGzip(bytes: Uint8Array): Unpacked {
  const start = measureGzipHeader(bytes);
  const { buffer, engine } = inflate(bytes.subarray(start));
  const trailer = Buffer.from(bytes.subarray(start + engine.bytesWritten).subarray(0, 8));
  if (trailer.length < 8) throw malformed('gzip', 'is cut off');
  const expected = trailer.readUInt32LE(0);
  const found = crc32(buffer);
  if (expected !== found || trailer.readUInt32LE(4) !== buffer.length % 2 ** 32) {
    throw malformed('gzip', `has checksum ${found}, but should have ${expected}`);
  }
  return { unpacked: buffer, size: start + engine.bytesWritten + 8 };
}

function inflate(bytes: Uint8Array): { buffer: Buffer; engine: { bytesWritten: number } } {
  // `info` is documented, but @types/node does not know what it changes the result to.
  const inflateWithInfo = inflateRawSync as unknown as (
    input: InputType,
    options: { readonly info: true; readonly maxOutputLength: number },
  ) => { buffer: Buffer; engine: { bytesWritten: number } };
  try {
    return inflateWithInfo(bytes, { info: true, maxOutputLength: MAX_UNPACKED_SIZE });
  } catch (cause) {
    throw malformed('gzip', 'cannot be unpacked', cause);
  }
}

/** RFC 1952 2.3: ten bytes, then what the flags announce. */
function measureGzipHeader(bytes: Uint8Array): number {
  const flags = bytes[3] ?? 0;
  let offset = 10;
  if ((flags & 4) !== 0) offset += 2 + (bytes[offset] ?? 0) + 256 * (bytes[offset + 1] ?? 0);
  for (const flag of [8, 16]) {
    if ((flags & flag) === 0) continue;
    const end = bytes.indexOf(0, offset);
    if (end === -1) throw malformed('gzip', 'has a header without end');
    offset = end + 1;
  }
  return (flags & 2) === 0 ? offset : offset + 2;
}

function unpackZstd(bytes: Uint8Array): Unpacked {
  const frame = measureZstdFrame(bytes);
  if (frame.unpackedSize > MAX_UNPACKED_SIZE) {
    throw malformed('zstd', `announces ${frame.unpackedSize} bytes`);
  }
  try {
    return { unpacked: decompressZstd(bytes.subarray(0, frame.size)), size: frame.size };
  } catch (cause) {
    throw malformed('zstd', 'cannot be unpacked', cause);
  }
}

function skipZeros(bytes: Uint8Array, start: number): number {
  let offset = start;
  while (offset < bytes.length && bytes[offset] === 0) offset++;
  return offset;
}

const malformed = (format: string, reason: string, cause?: unknown): IntegrityError =>
  new IntegrityError('initrd.malformed', `${format} archive ${reason}`, { cause });
