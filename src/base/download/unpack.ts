import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { decodeInThread } from '../decode/threads.ts';
import type { Digest } from '../digest.ts';
import { explainDiskFailure } from '../disk/disk-errors.ts';
import { makeDirectory } from '../disk/files.ts';
import { createFile } from '../disk/open-file.ts';
import { IntegrityError } from '../errors.ts';

export type Packing = 'gz' | 'xz';

export type Unpacking = {
  /** A gzip (RFC 1952) or .xz file. */
  readonly packed: string;
  readonly packing: Packing;
  /** Name in errors; default: its own name. */
  readonly shownAs?: string;
  /** Target of the bytes; no file exists there. */
  readonly path: string;
  /** Bytes; more are not unpacked. */
  readonly limit: number;
  readonly signal: AbortSignal;
  readonly onProgress?: (bytes: number) => void;
};

const PIECE = 1 << 20;

/** The packing of a file of this name; undefined if it is not packed. */
export function packingOf(name: string): Packing | undefined {
  const [, ending] = /\.(gz|xz)$/i.exec(name) ?? [];
  return ending?.toLowerCase() as Packing | undefined;
}

/**
 * Unpacks a file as a stream, regardless of its size, and digests the result.
 *
 * @throws IntegrityError `unpack.malformed`, `unpack.too-large`, after which nothing is left; DiskError
 */
export async function unpackFile(
  unpacking: Unpacking,
): Promise<{ readonly size: number; readonly digest: Digest }> {
  const { path } = unpacking;
  await makeDirectory(dirname(path));
  await rm(path, { force: true });
  try {
    return await writeUnpacked(unpacking);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

async function writeUnpacked({ path, limit, onProgress, ...source }: Unpacking) {
  const hash = createHash('sha256');
  let size = 0;
  const file = await createFile(path);
  try {
    for await (const piece of readUnpacked(source)) {
      size += piece.length;
      if (size > limit) throw tooLarge(source, limit);
      hash.update(piece);
      await file.writeFile(piece).catch((error: unknown) => {
        throw explainDiskFailure(error, { directory: dirname(path), needed: size });
      });
      onProgress?.(size);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { size, digest: `sha256:${hash.digest('hex')}` as const };
}

type Source = Omit<Unpacking, 'path' | 'limit' | 'onProgress'>;

/** Reads the unpacked bytes. Only errors of unpacking are the file's fault. */
async function* readUnpacked(wanted: Source): AsyncGenerator<Uint8Array> {
  const { packing, signal } = wanted;
  const reading: Reading = {};
  const packed = readPacked(wanted.packed, reading);
  const unpacked = packing === 'gz' ? gunzip(packed) : decodeInThread('xz', packed, { signal });
  try {
    for await (const piece of unpacked) {
      signal.throwIfAborted();
      yield piece;
    }
  } catch (cause) {
    signal.throwIfAborted();
    throw reading.failed ?? malformed(wanted, cause);
  }
}

type Reading = { failed?: Error };

/** A stream that its reader leaves early reports this as its own error: only a read that failed counts. */
async function* readPacked(path: string, reading: Reading): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path, { highWaterMark: PIECE }) as AsyncIterable<Uint8Array>;
  } catch (error) {
    reading.failed = error as Error;
    throw error;
  }
}

async function* gunzip(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = Readable.from(packed);
  const unpacked = createGunzip({ chunkSize: PIECE });
  source.on('error', (error) => unpacked.destroy(error));
  try {
    yield* source.pipe(unpacked) as AsyncIterable<Uint8Array>;
  } finally {
    source.destroy();
  }
}

const NAMES = { gz: 'gzip', xz: 'xz' } as const;

const malformed = (source: Source, cause: unknown): IntegrityError =>
  new IntegrityError(
    'unpack.malformed',
    `${nameOf(source)} is not a complete ${NAMES[source.packing]} file`,
    { cause, hint: 'download it again, or unpack it with another program and use the result' },
  );

const tooLarge = (source: Source, limit: number): IntegrityError =>
  new IntegrityError('unpack.too-large', `${nameOf(source)} unpacks to more than ${limit} bytes`, {
    expected: `at most ${limit}`,
    found: `more than ${limit}`,
  });

const nameOf = ({ packed, shownAs }: Source): string => shownAs ?? `"${packed}"`;
