import type { FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { LONGEST_LINE } from './chain.ts';

/* Owns how lines of audit logs are read: in little memory, whichever bytes a file has. */

export type ReadLine = {
  /** Without its line break; absent for a line that is longer than any of ours. */
  readonly text?: string;
  /** False for a last line without its line break. */
  readonly isWhole: boolean;
};

const PIECE = 256 << 10;

/** Reads lines from the beginning. A file that logrotate has packed is read as what is in it. */
export async function* readLines(file: FileHandle): AsyncGenerator<ReadLine> {
  let rest = Buffer.alloc(0);
  for await (const piece of readPieces(file)) {
    const bytes = Buffer.concat([rest, piece]);
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      yield toLine(bytes.subarray(start, end), true);
      start = end + 1;
    }
    // A line that is too long is kept as far as that shows.
    rest = Buffer.from(bytes.subarray(start, start + LONGEST_LINE + 1));
  }
  if (rest.length > 0) yield toLine(rest, false);
}

/** First bytes of a gzip file (RFC 1952 2.3.1). */
const GZIP = Buffer.of(0x1f, 0x8b);

async function* readPieces(file: FileHandle): AsyncGenerator<Buffer> {
  const head = Buffer.alloc(GZIP.length);
  await file.read(head, 0, head.length, 0);
  const options = { start: 0, autoClose: false, highWaterMark: PIECE };
  const packed = file.createReadStream(options);
  if (!head.equals(GZIP)) {
    yield* packed as AsyncIterable<Buffer>;
    return;
  }
  const unpacked = createGunzip({ chunkSize: PIECE });
  const done = pipeline(packed, unpacked);
  done.catch(() => undefined); // the reader of `unpacked` gets the same error
  yield* unpacked as AsyncIterable<Buffer>;
}

const toLine = (bytes: Buffer, isWhole: boolean): ReadLine =>
  bytes.length > LONGEST_LINE ? { isWhole } : { text: bytes.toString('utf8'), isWhole };

export type FileEnd = {
  /** Last line that ends with a line break; absent if no line does. */
  readonly last?: ReadLine;
  /** Bytes up to the last line break. */
  readonly size: number;
  /** Bytes behind it. */
  readonly torn: number;
};

export async function readEnd(file: FileHandle): Promise<FileEnd> {
  const { size } = await file.stat();
  const length = Math.min(size, 4 * LONGEST_LINE);
  const bytes = Buffer.alloc(length);
  await file.read(bytes, 0, length, size - length);
  const end = bytes.lastIndexOf(10) + 1;
  const torn = length - end;
  if (end === 0)
    return length === size ? { size: 0, torn } : { last: { isWhole: true }, size, torn: 0 };
  const start = end === 1 ? 0 : bytes.lastIndexOf(10, end - 2) + 1;
  return { last: toLine(bytes.subarray(start, end - 1), true), size: size - torn, torn };
}
