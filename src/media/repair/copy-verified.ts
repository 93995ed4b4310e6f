import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { digestOf, type Digest } from '../../base/digest.ts';
import { isErrno } from '../../base/errors.ts';
import { writeWhole } from '../../base/disk/files.ts';
import { explaining } from '../../base/disk/disk-errors.ts';
import { openToRead } from '../../base/disk/open-file.ts';
import type { DamagedExtent } from '../verify-extents.ts';
import type { FilePosition } from '../../base/store/blob-source.ts';

export type Run = { readonly offset: number; readonly size: number; readonly digest: Digest };

/** What is repaired. */
export type OpenTarget = { readonly path: string; readonly file: FileHandle };

/** A damaged extent, and what was done for it. */
export type Repaired = {
  readonly damage: DamagedExtent;
  readonly source?: string;
  readonly read: number;
  readonly written: number;
};

/** Undefined where it has no bytes for the extent. */
export type Repair = (damage: DamagedExtent) => Promise<Omit<Repaired, 'damage'> | undefined>;

/** Bytes. */
export type Copied = { readonly read: number; readonly written: number };

/** What is compared, and written where it differs. */
const PIECE = 64 * 1024;

/** Reads bytes of a run, counted from its start; false where they cannot be had. */
export type RunReader = (piece: Buffer, at: number) => Promise<boolean>;

/**
 * Writes those pieces of a run that the target has not, out of a source that has the run. The whole of it is
 * digested before a byte is written, and each piece again when it is read to be written: a source that
 * changes meanwhile cannot make the target worse.
 *
 * @returns undefined where the source has other bytes than the digest says
 * @throws DiskError of writing; what the reader throws
 */
export async function copyVerified(
  target: OpenTarget,
  run: Run,
  { read: readSource, signal }: { readonly read: RunReader; readonly signal: AbortSignal },
): Promise<Copied | undefined> {
  const pieces = await digestPieces(readSource, run, signal);
  if (!pieces) return undefined;
  const buffer = Buffer.allocUnsafe(PIECE);
  let [read, written] = [run.size, 0];
  for (const [number, digest] of pieces.entries()) {
    signal.throwIfAborted();
    const at = number * PIECE;
    const piece = buffer.subarray(0, Math.min(PIECE, run.size - at));
    if ((await readPiece(target.file, piece, run.offset + at)) && digestOf(piece) === digest) {
      continue;
    }
    const isWhole = await readSource(piece, at);
    read += piece.length;
    if (!isWhole || digestOf(piece) !== digest) return undefined;
    await writeAt(target, piece, run.offset + at);
    written += piece.length;
  }
  return { read, written };
}

/** The same out of a file. @throws the system's errors of reading it, but EIO */
export async function copyFromFile(
  target: OpenTarget,
  run: Run,
  { from, signal }: { readonly from: FilePosition; readonly signal: AbortSignal },
): Promise<Copied | undefined> {
  const source = await openToRead(from.path);
  try {
    const read: RunReader = (piece, at) => readPiece(source, piece, from.position + at);
    return await copyVerified(target, run, { read, signal });
  } finally {
    await source.close();
  }
}

async function digestPieces(
  read: RunReader,
  { size, digest }: Run,
  signal: AbortSignal,
): Promise<readonly Digest[] | undefined> {
  const hash = createHash('sha256');
  const pieces: Digest[] = [];
  const buffer = Buffer.allocUnsafe(PIECE);
  for (let at = 0; at < size; at += PIECE) {
    signal.throwIfAborted();
    const piece = buffer.subarray(0, Math.min(PIECE, size - at));
    if (!(await read(piece, at))) return undefined;
    hash.update(piece);
    pieces.push(digestOf(piece));
  }
  return `sha256:${hash.digest('hex')}` === digest ? pieces : undefined;
}

/** False where the file ends before, or the device lost its bytes. */
export async function readPiece(
  file: FileHandle,
  piece: Buffer,
  position: number,
): Promise<boolean> {
  try {
    for (let done = 0; done < piece.length;) {
      const { bytesRead } = await file.read(piece, done, piece.length - done, position + done);
      if (bytesRead === 0) return false;
      done += bytesRead;
    }
    return true;
  } catch (error) {
    if (isErrno(error, 'EIO')) return false;
    throw error;
  }
}

/** @throws DiskError `output.full`, `output.unwritable`, `output.broken` */
export const writeAt = (
  { path, file }: OpenTarget,
  bytes: Uint8Array,
  position: number,
): Promise<void> => explaining(path, () => writeWhole(file, bytes, position));
