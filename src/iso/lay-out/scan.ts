import { createHash } from 'node:crypto';
import { digestOf, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { locateBackupGpt, readPartitionTables, SYSTEM_AREA_SIZE } from '../boot/hybrid.ts';
import { SECTOR_SIZE, type Extent, zeroExtent } from '../extent.ts';
import { readBaseTree, type BaseDirectory, type BaseNode } from '../read/base-tree.ts';
import { openIso, type IsoImage } from '../read/open.ts';
import type { VolumeDescriptor } from '../volume/descriptor.ts';

/** The data of a file, or bytes between files. */
export type BasePiece = {
  /** Bytes from the start of the base ISO. */
  readonly offset: number;
  /** Bytes, more than 0. */
  readonly size: number;
  readonly digest: Digest;
  /** Rock Ridge paths of the files that consist of this piece, sorted. */
  readonly paths: readonly string[];
  /** Present for pieces of up to 1 MiB. */
  readonly bytes?: Uint8Array;
};

/** A base ISO in the form that a layout needs: all bytes in pieces, and its structures. */
export type BaseImage = {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Digest of the whole file. */
  readonly digest: Digest;
  /** Sorted, covering the whole file. */
  readonly pieces: readonly BasePiece[];
  readonly systemArea: Uint8Array;
  /** From sector 16 to the terminator. */
  readonly descriptors: readonly VolumeDescriptor[];
  readonly root: BaseDirectory;
};

/** Result of reading the whole file. It is stored as JSON by digest, so that the file is read once. */
export type BaseScan = {
  readonly size: number;
  readonly digest: Digest;
  readonly pieces: readonly Omit<BasePiece, 'bytes'>[];
};

const CHUNK_SIZE = 4 * 1024 * 1024;
const MAX_KEPT_SIZE = 1024 * 1024;

type Structure = Pick<BaseImage, 'size' | 'systemArea' | 'descriptors' | 'root'>;

/**
 * Reads a base ISO once, from start to end, after its directories.
 *
 * @throws IntegrityError `iso.truncated`, `iso.not-iso9660`, `iso.no-rock-ridge` and the like
 */
export async function scanBaseIso(path: string): Promise<BaseImage> {
  return withIso(path, async (iso) => {
    const structure = await readStructure(iso);
    const { digest, pieces } = await hashRanges(iso, rangesOf(structure));
    return { path, ...structure, digest, pieces };
  });
}

/** The part of a scan that is stored. */
export function encodeBaseScan(base: BaseImage): BaseScan {
  return {
    size: base.size,
    digest: base.digest,
    pieces: base.pieces.map(({ offset, size, digest, paths }) => ({ offset, size, digest, paths })),
  };
}

/**
 * The image from an earlier scan: only directories and small files are read, and they are compared with their
 * digests.
 *
 * @throws IntegrityError `iso.base-changed` if the file is not the scanned one
 */
export async function decodeBaseScan(path: string, scan: BaseScan): Promise<BaseImage> {
  return withIso(path, async (iso) => {
    const structure = await readStructure(iso);
    if (structure.size !== scan.size) throw baseChanged(path, scan.size, structure.size);
    const pieces: BasePiece[] = [];
    for (const piece of scan.pieces) {
      if (!isKept(piece)) {
        pieces.push(piece);
        continue;
      }
      const bytes = await iso.readBytes(piece.offset, piece.size);
      const digest = digestOf(bytes);
      if (digest !== piece.digest) throw baseChanged(path, piece.digest, digest);
      pieces.push({ ...piece, bytes });
    }
    return { path, ...structure, digest: scan.digest, pieces };
  });
}

function baseChanged(path: string, expected: number | Digest, found: number | Digest): Error {
  return new IntegrityError(
    'iso.base-changed',
    `base ISO ${path} has changed since it was scanned: ${expected} is now ${found}`,
    {
      expected: String(expected),
      found: String(found),
      hint: 'run the same command again when nothing writes to the file',
    },
  );
}

/** Bytes 40 to 71 of a descriptor (ECMA-119 8.4.6). */
const VOLUME_ID = { offset: 40, size: 32 };

/** A base whose volume gets another label; its bytes on the disk stay as they are. */
export function relabel(base: BaseImage, label: string): BaseImage {
  const { offset, size } = VOLUME_ID;
  if (Buffer.byteLength(label) > size) throw new RangeError(`volume id ${label} is too long`);
  const descriptors = base.descriptors.map((descriptor) => {
    if (descriptor.kind !== 'primary') return descriptor;
    const raw = Uint8Array.from(descriptor.raw);
    raw.set(Buffer.from(label.padEnd(size)), offset);
    return { ...descriptor, raw, volume: { ...descriptor.volume, volumeId: label } };
  });
  return { ...base, descriptors };
}

async function readStructure(iso: IsoImage): Promise<Structure> {
  return {
    size: iso.fileSize,
    systemArea: await iso.readBytes(0, SYSTEM_AREA_SIZE),
    descriptors: iso.descriptors,
    root: await readBaseTree(iso),
  };
}

function rangesOf({ size, systemArea, descriptors, root }: Structure): BaseRange[] {
  const { gpt } = readPartitionTables(systemArea);
  const backup = gpt && locateBackupGpt(gpt, size);
  const descriptorsEnd = SYSTEM_AREA_SIZE + descriptors.length * SECTOR_SIZE;
  const cuts = [SYSTEM_AREA_SIZE, descriptorsEnd];
  if (backup) cuts.push(backup.offset, backup.offset + backup.size);
  return rangesOfBase(root, { size, cuts });
}

async function hashRanges(
  iso: IsoImage,
  ranges: readonly BaseRange[],
): Promise<{ digest: Digest; pieces: BasePiece[] }> {
  const whole = createHash('sha256');
  const pieces: BasePiece[] = [];
  for (const range of ranges) {
    const hash = createHash('sha256');
    const kept: Uint8Array[] = [];
    for (let done = 0; done < range.size; done += CHUNK_SIZE) {
      const size = Math.min(CHUNK_SIZE, range.size - done);
      const chunk = await iso.readBytes(range.offset + done, size);
      whole.update(chunk);
      hash.update(chunk);
      if (isKept(range)) kept.push(chunk);
    }
    const digest: Digest = `sha256:${hash.digest('hex')}`;
    const bytes = isKept(range) ? Buffer.concat(kept) : undefined;
    pieces.push({ ...range, digest, ...(bytes && { bytes }) });
  }
  return { digest: `sha256:${whole.digest('hex')}`, pieces };
}

const isKept = ({ size }: Pick<BaseRange, 'size'>): boolean => size <= MAX_KEPT_SIZE;

async function withIso<T>(path: string, use: (iso: IsoImage) => Promise<T>): Promise<T> {
  const iso = await openIso(path);
  try {
    return await use(iso);
  } finally {
    await iso.close();
  }
}

/** A run of bytes of the base ISO that belongs to the same files from start to end. */
type BaseRange = {
  readonly offset: number;
  readonly size: number;
  /** Sorted; empty if the bytes belong to no file. */
  readonly paths: readonly string[];
};

type FileRange = { readonly start: number; readonly end: number; readonly path: string };

/** Cuts an image where files begin and end, and at `cuts`. Files may share bytes. */
function rangesOfBase(
  root: BaseNode,
  { size, cuts }: { size: number; cuts: readonly number[] },
): BaseRange[] {
  const files = [...fileRanges(root, '')].sort((a, b) => a.start - b.start);
  const outside = files.find((file) => file.end > size);
  if (outside) {
    throw new IntegrityError(
      'iso.truncated',
      `file ${outside.path} should end at byte ${outside.end}, but the image has ${size} bytes`,
      { expected: String(outside.end), found: String(size) },
    );
  }
  const boundaries = new Set([0, size, ...cuts]);
  for (const { start, end } of files) boundaries.add(start).add(end);
  const sorted = [...boundaries].sort((a, b) => a - b);
  const ranges: BaseRange[] = [];
  let active: FileRange[] = [];
  let next = 0;
  for (const [index, offset] of sorted.slice(0, -1).entries()) {
    active = active.filter((file) => file.end > offset);
    for (; (files[next]?.start ?? Infinity) <= offset; next += 1) {
      const file = files[next];
      if (file) active.push(file);
    }
    const paths = [...new Set(active.map((file) => file.path))].sort();
    ranges.push({ offset, size: (sorted[index + 1] ?? size) - offset, paths });
  }
  return ranges;
}

function* fileRanges(node: BaseNode, path: string): Generator<FileRange> {
  if (node.kind === 'directory') {
    for (const child of node.children) yield* fileRanges(child, `${path}/${child.name}`);
    return;
  }
  for (const { sector, size } of node.sections) {
    const start = sector * SECTOR_SIZE;
    if (size > 0) yield { start, end: start + size, path };
  }
}

/** Bytes that replace the base's own from that offset on. */
export type BasePatch = { readonly offset: number; readonly bytes: Uint8Array };

export type BaseRewrite = {
  readonly systemArea: Uint8Array;
  /** As many sectors as before. */
  readonly descriptors: Uint8Array;
  readonly patches: readonly BasePatch[];
  /** Paths, of files or directories, that no longer mean the base's data. */
  readonly gone: readonly string[];
};

/** The base's bytes at their offsets, with rewritten and patched bytes in place of the old ones. */
export function layOutBase(
  base: Pick<BaseImage, 'size' | 'pieces' | 'systemArea'>,
  rewrite: BaseRewrite,
): Extent[] {
  const { gpt } = readPartitionTables(base.systemArea);
  const staleGpt = gpt && locateBackupGpt(gpt, base.size);
  const gone = new Set(rewrite.gone);
  for (const patch of rewrite.patches) requireInside(patch, base);
  const rewritten: readonly BasePatch[] = [
    { offset: 0, bytes: rewrite.systemArea },
    { offset: SYSTEM_AREA_SIZE, bytes: rewrite.descriptors },
    ...rewrite.patches,
  ];
  return base.pieces.map((piece) => {
    if (piece.offset === staleGpt?.offset && piece.paths.length === 0) {
      return zeroExtent(piece.offset, piece.size);
    }
    const paths = piece.paths.filter((path) => !isGone(path, gone));
    const { offset, size, digest } = piece;
    const bytes = patchPiece(piece, rewritten);
    const source = bytes ? ({ kind: 'bytes', bytes } as const) : ({ kind: 'base' } as const);
    return { offset, size, digest: bytes ? digestOf(bytes) : digest, source, paths };
  });
}

function requireInside({ offset, bytes }: BasePatch, base: Pick<BaseImage, 'size'>): void {
  if (offset >= 0 && offset + bytes.length <= base.size) return;
  throw new Error(`patch of ${bytes.length} bytes at ${offset} is not in ${base.size} bytes`);
}

function isGone(path: string, gone: ReadonlySet<string>): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
    if (gone.has(path.slice(0, end))) return true;
  }
  return false;
}

/** The patched bytes of a piece; undefined when no patch changes them. */
function patchPiece(piece: BasePiece, patches: readonly BasePatch[]): Uint8Array | undefined {
  const end = piece.offset + piece.size;
  const touching = patches.filter(
    ({ offset, bytes }) => offset < end && offset + bytes.length > piece.offset,
  );
  if (touching.length === 0) return undefined;
  if (!piece.bytes) {
    throw new Error(
      `patched piece of ${piece.size} bytes at ${piece.offset} (${piece.paths.join(', ')}) was not kept by the scan`,
    );
  }
  const patched = Uint8Array.from(piece.bytes);
  for (const { offset, bytes } of touching) {
    const from = Math.max(0, piece.offset - offset);
    const to = Math.min(bytes.length, end - offset);
    patched.set(bytes.subarray(from, to), offset + from - piece.offset);
  }
  return Buffer.compare(patched, piece.bytes) === 0 ? undefined : patched;
}
