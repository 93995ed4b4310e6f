import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import type { IndexExtent } from '../openshift/media/media-index.ts';

export type DamagedExtent = {
  readonly extent: IndexExtent;
  readonly found: string;
};

export type VerifyExtentsOptions = {
  readonly signal: AbortSignal;
  /** Bytes read so far. */
  readonly onProgress: (bytes: number) => void;
};

const PIECE = 4 * 1024 * 1024;

/**
 * Hashes every extent of the index and yields those that are not what they should be. Reads the file
 * from front to end; the next piece is read while one is hashed. Memory: two pieces.
 */
export async function* verifyExtents(
  path: string,
  extents: readonly IndexExtent[],
  { signal, onProgress }: VerifyExtentsOptions,
): AsyncGenerator<DamagedExtent> {
  const file = await open(path);
  const buffers = [Buffer.alloc(PIECE), Buffer.alloc(PIECE)] as const;
  let bytes = 0;
  try {
    for (const extent of [...extents].sort((a, b) => a.offset - b.offset)) {
      if (extent.digest === undefined) continue;
      signal.throwIfAborted();
      const found = await hashRange(file, extent, buffers);
      bytes += extent.size;
      onProgress(bytes);
      if (found !== extent.digest) yield { extent, found };
    }
  } finally {
    await file.close();
  }
}

async function hashRange(
  file: FileHandle,
  { offset, size }: IndexExtent,
  buffers: readonly [Buffer, Buffer],
): Promise<string> {
  const hash = createHash('sha256');
  const readPiece = (at: number, turn: number): Promise<Buffer> =>
    readAt(
      file,
      buffers[turn % 2 === 0 ? 0 : 1].subarray(0, Math.min(PIECE, size - at)),
      offset + at,
    );
  let next = readPiece(0, 0);
  for (let at = 0, turn = 1; at < size; at += PIECE, turn++) {
    const piece = await next;
    if (at + PIECE < size) next = readPiece(at + PIECE, turn);
    hash.update(piece);
    if (piece.length < Math.min(PIECE, size - at)) break; // the file ends early: the digest tells
  }
  return `sha256:${hash.digest('hex')}`;
}

async function readAt(file: FileHandle, view: Buffer, position: number): Promise<Buffer> {
  let read = 0;
  while (read < view.length) {
    const { bytesRead } = await file.read(view, read, view.length - read, position + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return view.subarray(0, read);
}
