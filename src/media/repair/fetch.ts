import { createHash } from 'node:crypto';
import { type FileHandle, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, type Digest, hexOf } from '../../base/digest.ts';
import { explaining } from '../../base/disk/disk-errors.ts';
import { writeWhole } from '../../base/disk/files.ts';
import { openToRead, openOwnFile } from '../../base/disk/open-file.ts';
import type { Lease } from '../../base/disk/succession.ts';
import {
  createResumableFile,
  type ResumableFile,
  fillFile,
} from '../../base/download/fill-file.ts';
import { isErrno, SealiftError } from '../../base/errors.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { type FilePosition, type BlobSource, describeBlob } from '../../base/store/blob-source.ts';
import type { Reference, RegistryClient } from '../../registry/index.ts';
import { readImageContents } from '../contents.ts';
import type { IndexExtent, IndexImage, MediaIndex } from '../media-index.ts';
import type { DamagedExtent } from '../verify-extents.ts';

/* Repairs of single extents from verified copies: a local file, or the registries of the images. */

export type DamagedRun = ByteRange & { readonly digest: Digest };

export type OpenTarget = {
  readonly path: string;
  readonly file: FileHandle;
  /** Rejects if another run has taken over: its ISO must not get the bytes of this one. */
  readonly requireHeld: Lease['requireHeld'];
};

export type Repaired = {
  readonly damage: DamagedExtent;
  readonly source?: string;
  readonly read: number;
  readonly written: number;
};

/** Repairs an extent from a source; undefined if the source lacks its bytes. */
export type Repair = (damage: DamagedExtent) => Promise<Omit<Repaired, 'damage'> | undefined>;

/** Bytes. */
export type Copied = { readonly read: number; readonly written: number };

/** Bytes that are compared, and written if they differ. */
const COMPARED_PIECE = 64 * 1024;

/** Reads bytes at an offset in a run; false if they cannot be read. */
export type RunReader = (piece: Buffer, at: number) => Promise<boolean>;

/**
 * Writes the pieces of a run that differ in the target. The whole run is digested before the first write, and
 * each piece again when it is read for writing: a source that changes meanwhile cannot damage the target.
 *
 * @returns undefined if the source does not match the digest
 */
export async function copyVerified(
  target: OpenTarget,
  run: DamagedRun,
  { read: readSource, signal }: { readonly read: RunReader; readonly signal: AbortSignal },
): Promise<Copied | undefined> {
  const pieces = await digestPieces(readSource, run, signal);
  if (!pieces) return undefined;
  const buffer = Buffer.allocUnsafe(COMPARED_PIECE);
  let [read, written] = [run.size, 0];
  for (const [number, digest] of pieces.entries()) {
    signal.throwIfAborted();
    const at = number * COMPARED_PIECE;
    const piece = buffer.subarray(0, Math.min(COMPARED_PIECE, run.size - at));
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

/** Undefined if the file does not match the digest. */
export async function copyFromFile(
  target: OpenTarget,
  run: DamagedRun,
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
  { size, digest }: DamagedRun,
  signal: AbortSignal,
): Promise<readonly Digest[] | undefined> {
  const hash = createHash('sha256');
  const pieces: Digest[] = [];
  const buffer = Buffer.allocUnsafe(COMPARED_PIECE);
  for (let at = 0; at < size; at += COMPARED_PIECE) {
    signal.throwIfAborted();
    const piece = buffer.subarray(0, Math.min(COMPARED_PIECE, size - at));
    if (!(await read(piece, at))) return undefined;
    hash.update(piece);
    pieces.push(digestOf(piece));
  }
  return `sha256:${hash.digest('hex')}` === digest ? pieces : undefined;
}

/** False if the file ends before the piece, or if the device lost its bytes. */
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

export const writeAt = (
  { path, file, requireHeld }: OpenTarget,
  bytes: Uint8Array,
  position: number,
): Promise<void> =>
  explaining(path, async () => {
    await requireHeld();
    await writeWhole(file, bytes, position);
  });

export type RemoteOptions = {
  readonly client: Pick<RegistryClient, 'fetchManifest' | 'sourcesOf'>;
  /** References that may have an image: its origin, or the given registries. */
  readonly referencesOf: (image: IndexImage) => readonly Reference[];
  /** Directory that holds a fetched blob until it is copied. */
  readonly workDir: string;
  /** Called with the reason why a source lacks an extent. */
  readonly warn: (message: string) => void;
  readonly index: MediaIndex;
  readonly signal: AbortSignal;
};

/** Manifests are repaired before blobs, because they name the image that a blob belongs to. */
export const repairFromManifests =
  (target: OpenTarget, { index, client, referencesOf, signal, warn }: RemoteOptions): Repair =>
  async ({ extent: { digest, offset, size } }) => {
    if (digest === undefined) return undefined;
    const images = index.images.filter(({ manifests }) => manifests.includes(digest));
    for (const { registry, repository } of images.flatMap(referencesOf)) {
      const found = await unlessFailed(warn, () =>
        client.fetchManifest({ registry, repository, digest }, { signal }),
      );
      if (found?.bytes.length !== size || digestOf(found.bytes) !== digest) continue;
      await writeAt(target, found.bytes, offset);
      return { source: registry, read: size, written: size };
    }
    return undefined;
  };

/** Fetches blobs from the repositories of the images whose manifests name them. */
export async function openBlobRepair(target: OpenTarget, options: RemoteOptions): Promise<Repair> {
  const sources = await listSources(target, options);
  const { signal, warn } = options;
  return async ({ extent, unreadable }) => {
    const { digest, offset, size } = extent;
    const list = [...(sources.get(extent) ?? [])];
    if (digest === undefined || list.length === 0) return undefined;
    const path = join(options.workDir, `repair-${hexOf(digest)}`);
    const run = { offset, size, digest };
    const isCut = unreadable !== undefined;
    const fetched = await unlessFailed(warn, () =>
      stage({ target, run, path, signal, sources: list, isCut }),
    );
    if (fetched === undefined) return undefined;
    const from = { path, position: 0 };
    const copied = await copyFromFile(target, run, { from, signal });
    await rm(path, { force: true });
    if (!copied) return undefined;
    return { source: list[0]?.name ?? '', read: fetched, written: copied.written };
  };
}

async function listSources(
  { file }: OpenTarget,
  { index, client, referencesOf }: RemoteOptions,
): Promise<ReadonlyMap<IndexExtent, ReadonlySet<BlobSource>>> {
  const sources = new Map<IndexExtent, Set<BlobSource>>();
  const known = new Map<string, readonly BlobSource[]>();
  const readBytes = async (offset: number, size: number): Promise<Buffer> => {
    const bytes = Buffer.alloc(size);
    await readPiece(file, bytes, offset); // a lost manifest names no blobs
    return bytes;
  };
  for await (const { image, extents } of readImageContents({ readBytes }, index)) {
    for (const reference of referencesOf(image)) {
      const name = `${reference.registry}/${reference.repository}`;
      const found = known.get(name) ?? client.sourcesOf(reference);
      known.set(name, found);
      for (const extent of extents) {
        const all = sources.get(extent) ?? new Set();
        for (const source of found) all.add(source);
        sources.set(extent, all);
      }
    }
  }
  return sources;
}

type Staging = {
  readonly target: OpenTarget;
  readonly run: DamagedRun;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly sources: readonly BlobSource[];
  /** True if bytes at the end are lost and those before them may be valid. */
  readonly isCut: boolean;
};

/** @returns the number of bytes fetched */
async function stage({ target, run, path, signal, sources, isCut }: Staging): Promise<number> {
  const { digest, size } = run;
  const file = await openOwnFile(path);
  try {
    const staged = createResumableFile(file);
    const earlier = (await file.stat()).size;
    const isNew = earlier === 0 && isCut;
    const prefix = isNew ? await copyFront(target, run, staged) : Math.min(earlier, size);
    let [fetched, before] = [0, prefix];
    await fillFile(staged, {
      sources,
      wanted: describeBlob({ digest, size }),
      prefix,
      cutsOff: true,
      signal,
      onProgress(bytes) {
        fetched += Math.max(0, bytes - before);
        before = bytes;
      },
    });
    await file.sync();
    return fetched;
  } finally {
    await file.close();
  }
}

const PIECE = 1 << 20;

/** Copies the remaining front of a truncated run: if it is valid, only the rest is fetched. */
async function copyFront(
  { file }: OpenTarget,
  { offset, size }: DamagedRun,
  staged: ResumableFile,
): Promise<number> {
  let at = 0;
  for (; at + PIECE <= size; at += PIECE) {
    const piece = Buffer.allocUnsafe(PIECE); // append takes ownership
    if (!(await readPiece(file, piece, offset + at))) break;
    await staged.append(piece);
  }
  await staged.flush();
  return at;
}

/** An error that another source may not have is a warning, and the result is undefined. */
export async function unlessFailed<T>(
  warn: (message: string) => void,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    warn(error.message);
    return undefined;
  }
}
