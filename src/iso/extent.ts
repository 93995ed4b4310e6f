import { type Digest, digestOf } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';

/** Start of each area after the base, in bytes. An area ends where the next one begins. */
export type Areas = {
  /** Path tables, directories, continuation area. */
  readonly structures: number;
  readonly files: number;
  readonly index: number;
  /** Blobs below {@link SMALL_BLOB}. */
  readonly smallBlobs: number;
  /** All other blobs, up to the end of the data. */
  readonly blobs: number;
};

/**
 * Places of contents in an earlier layout. A layout that takes them as a hint leaves as many bytes as
 * possible in place. Laying out the same contents with the places of a layout gives that layout again.
 */
export type Places = {
  readonly areas: Areas;
  /** Offsets of contents with a digest, after the base. */
  readonly offsets: readonly (readonly [Digest, number])[];
};

/** Smallest part that S3 accepts, except for the last: smaller blobs are placed together. */
export const SMALL_BLOB = 5 * 1024 * 1024;

export type Sized = { readonly digest: Digest; readonly size: number };

/** A logical sector (ECMA-119 6.1.2). */
export const SECTOR_SIZE = 2048;

/** Blobs start at multiples of this, so that a file system with reflinks can share them. */
export const BLOB_ALIGNMENT = 4096;

export const roundUp = (size: number, unit: number): number => Math.ceil(size / unit) * unit;

/**
 * Most bytes of an ISO whose contents have so many, each counted once. Holes between them are a tenth at most
 * (places/areas.ts); an ISO that is more than twice as large only fills a disk.
 */
export const largestIsoOf = (contents: number): number => 2 * contents + 64 * 2 ** 20;

export type ExtentSource =
  /** The base ISO, at the same offset unless `from` names a file and an offset in it. */
  | { readonly kind: 'base'; readonly from?: PlaceInFile }
  /** Rendered by sealift, in memory. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** A registry blob: found by the extent's digest. */
  | { readonly kind: 'blob' }
  /** Padding. */
  | { readonly kind: 'zero' };

/** An offset in bytes in a file that is named by the digest of the whole of it. */
type PlaceInFile = { readonly file: Digest; readonly offset: number };

/** A run of bytes. The extents of a layout are sorted, do not overlap, and cover the whole ISO. */
export type Extent = {
  /** Bytes from the start of the ISO. */
  readonly offset: number;
  /** Bytes, more than 0. */
  readonly size: number;
  /** SHA-256 of exactly these bytes; absent for padding. */
  readonly digest?: Digest;
  readonly source: ExtentSource;
  /** Rock Ridge paths of the files that consist of this extent, sorted; empty for structures. */
  readonly paths: readonly string[];
};

/** Every byte of an ISO, before any of it is written. */
export type Layout = {
  /** Bytes; of an ISO, a multiple of SECTOR_SIZE. */
  readonly size: number;
  readonly extents: readonly Extent[];
  /** Areas after the base, on media with an index. */
  readonly areas?: Areas;
};

/** Content of a file: small rendered bytes, or a blob that is poured later. */
export type FileContent =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'blob'; readonly digest: Digest; readonly size: number };

/** An image that is a file of another one. Bytes of a base are named with their file. */
export type ImageContent = { readonly kind: 'image'; readonly layout: Layout };

/** A file to be added to the ISO. Directories come from the paths. */
export type TreeFile = {
  /** Absolute Rock Ridge path, `/registry/docker/...`. */
  readonly path: string;
  readonly content: FileContent | ImageContent;
  /** Permission bits; default 0o644. */
  readonly mode?: number;
  /** ISO 9660 identifier of a new file, `KARGS.JSO;1`, without Rock Ridge; default: made of the name. */
  readonly identifier?: string;
};

/** An extent of rendered bytes that no file consists of. */
export const bytesExtent = (offset: number, bytes: Uint8Array): Extent => ({
  offset,
  size: bytes.length,
  digest: digestOf(bytes),
  source: { kind: 'bytes', bytes },
  paths: [],
});

export const zeroExtent = (offset: number, size: number): Extent => ({
  offset,
  size,
  source: { kind: 'zero' },
  paths: [],
});

/** Adds padding between sorted extents and up to `size`. */
export function fillGaps(extents: readonly Extent[], size: number): Extent[] {
  const filled: Extent[] = [];
  let end = 0;
  for (const extent of extents) {
    if (extent.offset < end) throw new Error(`extent at ${extent.offset} begins before ${end}`);
    if (extent.offset > end) filled.push(zeroExtent(end, extent.offset - end));
    filled.push(extent);
    end = extent.offset + extent.size;
  }
  if (end > size) throw new Error(`extents end at ${end}, past the image's ${size} bytes`);
  if (end < size) filled.push(zeroExtent(end, size - end));
  return filled;
}

/** A view of `bytes` that has at least `size` bytes from `at` on, `at` counted from the start. */
export function viewOf(bytes: Uint8Array, range: { at: number; size: number }): DataView {
  requireBytes(bytes, range);
  return new DataView(bytes.buffer, bytes.byteOffset + range.at, range.size);
}

export function requireBytes(bytes: Uint8Array, range: { at: number; size: number }): void {
  if (range.at >= 0 && range.size >= 0 && range.at + range.size <= bytes.length) return;
  throw new IntegrityError(
    'iso.truncated',
    `structure needs ${range.size} bytes at ${range.at}, but there are ${bytes.length} bytes`,
    { expected: String(range.at + range.size), found: String(bytes.length) },
  );
}

/** A view of `bytes` from `start` to before `end`; of a Buffer, too, as a plain Uint8Array. */
export const partOf = (bytes: Uint8Array, start: number, end: number): Uint8Array =>
  new Uint8Array(bytes.buffer, bytes.byteOffset + start, Math.max(0, end - start));

/** A copy of `bytes` from `start` to before `end`, which a Buffer's own `slice` is not. */
export const copyOf = (bytes: Uint8Array, start: number, end: number): Uint8Array =>
  new Uint8Array(bytes.subarray(start, end));
