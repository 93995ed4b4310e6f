import type { Digest } from '../base/digest.ts';
import type { Areas } from './places/places.ts';

/** A logical sector (ECMA-119 6.1.2). */
export const SECTOR_SIZE = 2048;

/** Blobs start at multiples of this, so that a file system with reflinks can share them. */
export const BLOB_ALIGNMENT = 4096;

/** The next multiple of a unit. */
export const roundUp = (size: number, unit: number): number => Math.ceil(size / unit) * unit;

/** Where an extent's bytes come from. */
export type ExtentSource =
  /** The base ISO, at the same offset. */
  | { readonly kind: 'base' }
  /** Rendered by us, held in memory. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** A registry blob: found by the extent's digest. */
  | { readonly kind: 'blob' }
  /** Padding. */
  | { readonly kind: 'zero' };

/**
 * A run of bytes of the output. Extents of a layout are sorted by offset, do not overlap, and cover
 * the whole ISO.
 */
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
  /** Bytes; a multiple of SECTOR_SIZE. */
  readonly size: number;
  readonly extents: readonly Extent[];
  /** Where what is behind the base begins, on media with an index. */
  readonly areas?: Areas;
};

/** What a file of the ISO holds: small rendered bytes, or a blob that is poured later. */
export type FileContent =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'blob'; readonly digest: Digest; readonly size: number };

/** A file to be added to the ISO. Directories come from the paths. */
export type TreeFile = {
  /** Absolute Rock Ridge path, `/registry/docker/...`. */
  readonly path: string;
  readonly content: FileContent;
  /** Permission bits; default 0o644. */
  readonly mode?: number;
};
