import { Readable } from 'node:stream';
import { crc32, gzipSync, inflateRawSync, type InputType } from 'node:zlib';
import { createBudget, type DecodeBudget, explainDecodeError } from '../base/decode/limits.ts';
import { decodeInThread } from '../base/decode/threads.ts';
import { unzstdFrame } from '../base/decode/zstd.ts';
import { createByteReader } from '../base/decode/byte-reader.ts';
import { isErrno, IntegrityError, SealiftError } from '../base/errors.ts';
import { decodeCpio, encodeCpio, isCpio, type CpioMember } from './cpio.ts';

type InitrdBudget = DecodeBudget<keyof typeof LIMITS>;

/**
 * An archive as an initrd: gzip at its best level, padded with NUL to 4 bytes, because the kernel needs the
 * next archive aligned. The gzip header (RFC 1952, 2.3) has time 0 and system "unknown", so the same members
 * give the same bytes with the same zlib.
 */
export function encodeInitrd(members: readonly CpioMember[]): Uint8Array {
  const packed = gzipSync(encodeCpio(members), { level: 9 });
  packed.fill(0, 4, 8);
  packed[9] = 255;
  return Buffer.concat([packed, Buffer.alloc((4 - (packed.length % 4)) % 4)]);
}

/**
 * The regular files of an initrd or embed area, by name: any number of archives one after another, each plain,
 * gzip, xz or zstd, with zero bytes between and after them. Of several files with one name the last counts, as
 * in the kernel. An area of zeros has no files.
 *
 * @throws IntegrityError `initrd.compression`, `initrd.malformed`, `initrd.garbage`,
 * `initrd.too-large`, `initrd.window-too-large`, `initrd.too-slow`, `cpio.malformed`, `cpio.truncated`
 */
export async function decodeInitrd(bytes: Uint8Array): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  const budget = createInitrdBudget();
  for (let offset = skipZeros(bytes, 0); offset < bytes.length;) {
    budget.take('archives', 1);
    const { members, end } = await decodeArchive(bytes, offset, budget);
    for (const member of members) files.set(member.name, member.data);
    offset = skipZeros(bytes, end);
  }
  return files;
}

/** Limits for all archives of an area together: far above any configuration, far below memory. */
const LIMITS = { bytes: 32 << 20, files: 20_000, archives: 1_000 };

const createInitrdBudget = (): InitrdBudget =>
  createBudget(
    LIMITS,
    (what, limit) =>
      new IntegrityError(
        'initrd.too-large',
        `archives of the initrd hold more than ${limit} ${what}`,
        { expected: `at most ${limit} ${what}`, hint: 'embed a smaller configuration' },
      ),
  );

type Archive = { readonly members: readonly CpioMember[]; readonly end: number };

async function decodeArchive(
  bytes: Uint8Array,
  start: number,
  budget: InitrdBudget,
): Promise<Archive> {
  if (isCpio(bytes, start)) return readCpio(bytes, start, budget);
  const magic = Buffer.from(bytes.subarray(start, start + 6)).toString('hex');
  const rest = bytes.subarray(start);
  const { unpacked, size } = await unpack(magic, rest, budget);
  return { members: decodeWhole(unpacked, budget), end: start + size };
}

const readCpio = (bytes: Uint8Array, start: number, budget: InitrdBudget): Archive =>
  decodeCpio(bytes, start, () => {
    budget.take('files', 1);
  });

/** Magic of a stream of xz. */
const XZ = 'fd377a585a00';

type Unpacked = { readonly unpacked: Uint8Array; readonly size: number };

function unpack(
  magic: string,
  bytes: Uint8Array,
  budget: InitrdBudget,
): Unpacked | Promise<Unpacked> {
  if (magic.startsWith('1f8b')) return unpackGzip(bytes, budget);
  if (magic.startsWith('28b52ffd')) return unpackZstd(bytes, budget);
  if (magic === XZ) return unpackXz(bytes, budget);
  throw new IntegrityError(
    'initrd.compression',
    `archive starts with the bytes ${magic}, which are neither cpio, gzip, xz nor zstd`,
    { hint: 'embed the configuration again with a tool that writes gzip' },
  );
}

/** A compressed stream holds one archive and zeros; the kernel would fail on anything else. */
function decodeWhole(bytes: Uint8Array, budget: InitrdBudget): readonly CpioMember[] {
  const { members, end } = readCpio(bytes, 0, budget);
  const garbage = skipZeros(bytes, end);
  if (garbage < bytes.length) {
    throw new IntegrityError(
      'initrd.garbage',
      `compressed archive ends at byte ${end}, but more data follows at byte ${garbage}`,
    );
  }
  return members;
}

/** Unpacks one gzip member by hand: Node's own reader does not report its end. */
function unpackGzip(bytes: Uint8Array, budget: InitrdBudget): Unpacked {
  const start = measureGzipHeader(bytes);
  const { buffer, engine } = inflate(bytes.subarray(start), budget);
  budget.take('bytes', buffer.length);
  const trailer = Buffer.from(bytes.subarray(start + engine.bytesWritten).subarray(0, 8));
  if (trailer.length < 8) throw malformed('gzip', 'is cut off');
  const expected = trailer.readUInt32LE(0);
  const found = crc32(buffer);
  if (expected !== found || trailer.readUInt32LE(4) !== buffer.length % 2 ** 32) {
    throw malformed('gzip', `has checksum ${found}, but should have ${expected}`);
  }
  return { unpacked: buffer, size: start + engine.bytesWritten + 8 };
}

function inflate(
  bytes: Uint8Array,
  budget: InitrdBudget,
): { buffer: Buffer; engine: { bytesWritten: number } } {
  // `info` is documented, but @types/node does not have the result that it gives.
  const inflateWithInfo = inflateRawSync as unknown as (
    input: InputType,
    options: { readonly info: true; readonly maxOutputLength: number },
  ) => { buffer: Buffer; engine: { bytesWritten: number } };
  try {
    return inflateWithInfo(bytes, {
      info: true,
      maxOutputLength: Math.max(1, budget.left('bytes')),
    });
  } catch (cause) {
    if (isErrno(cause, 'ERR_BUFFER_TOO_LARGE')) budget.take('bytes', Infinity);
    throw malformed('gzip', 'cannot be unpacked', cause);
  }
}

/** RFC 1952 2.3: ten bytes, then the fields that the flags announce. */
function measureGzipHeader(bytes: Uint8Array): number {
  const flags = bytes[3] ?? 0;
  const isUnknown = bytes[2] !== 8 || (flags & 0xe0) !== 0;
  if (isUnknown) throw malformed('gzip', 'has an unknown method or flag');
  const [low = 0, high = 0] = bytes.subarray(10);
  let offset = (flags & 4) === 0 ? 10 : 12 + low + 256 * high;
  for (const flag of [8, 16]) if ((flags & flag) !== 0) offset = skipText(bytes, offset);
  return (flags & 2) === 0 ? offset : offset + 2;
}

function skipText(bytes: Uint8Array, offset: number): number {
  const end = bytes.indexOf(0, offset);
  if (end === -1) throw malformed('gzip', 'has an unterminated header');
  return end + 1;
}

async function unpackZstd(bytes: Uint8Array, budget: InitrdBudget): Promise<Unpacked> {
  const reader = createByteReader(Readable.from([bytes], { objectMode: false }));
  const unpacked = await gather('zstd', unzstdFrame(reader, NEVER), budget);
  return { unpacked, size: reader.position };
}

/** One stream, as the kernel takes it: with CRC32 or no check at all. */
async function unpackXz(bytes: Uint8Array, budget: InitrdBudget): Promise<Unpacked> {
  const size = measureXz(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const check = (bytes[7] ?? 0) & 15;
  if (check > 1) {
    throw new IntegrityError(
      'initrd.compression',
      `xz archive uses check ${check}, but the kernel knows only CRC32`,
      { hint: 'embed the configuration again with xz --check=crc32 --lzma2, or with gzip' },
    );
  }
  const stream = Readable.from([bytes.subarray(0, size)], { objectMode: false });
  const unpacked = await gather('xz', decodeInThread('xz', stream, { signal: NEVER }), budget);
  return { unpacked, size };
}

/** True for one archive of xz, with a checksum of every byte, and zeros behind it. */
export function isCheckedXz(bytes: Uint8Array): boolean {
  const magic = Buffer.from(bytes.subarray(0, 6)).toString('hex');
  if (magic !== XZ || ((bytes[7] ?? 0) & 15) !== 1) return false;
  const size = measureXz(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  return skipZeros(bytes, size) === bytes.length;
}

/** The .xz file format 1.1.0, 2.1.2: a stream ends after its first footer, at a multiple of four. */
function measureXz(bytes: Buffer): number {
  for (let at = bytes.indexOf('YZ', 24); at >= 0; at = bytes.indexOf('YZ', at + 1)) {
    const start = at - 10;
    const isFooter =
      start % 4 === 0 &&
      bytes.readUInt32LE(start) === crc32(bytes.subarray(start + 4, at)) &&
      bytes.compare(bytes, start + 8, at, 6, 8) === 0;
    if (isFooter) return at + 2;
  }
  throw malformed('xz', 'has no footer');
}

async function gather(
  format: string,
  pieces: AsyncIterable<Buffer>,
  budget: InitrdBudget,
): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  try {
    for await (const piece of pieces) {
      budget.take('bytes', piece.length);
      parts.push(piece);
    }
  } catch (cause) {
    if (cause instanceof SealiftError) throw cause;
    throw explainDecodeError('initrd', `${format} archive`, cause);
  }
  return Buffer.concat(parts);
}

/** A signal that never aborts: the thread's own time limit ends the work before a user could. */
const NEVER = new AbortController().signal;

function skipZeros(bytes: Uint8Array, start: number): number {
  let offset = start;
  while (offset < bytes.length && bytes[offset] === 0) offset++;
  return offset;
}

const malformed = (format: string, reason: string, cause?: unknown): IntegrityError =>
  new IntegrityError('initrd.malformed', `${format} archive ${reason}`, { cause });
