import type { Digest } from '../../base/digest.ts';

/** Where each area behind the base begins; bytes. An area ends where the next one begins. */
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
 * Where an earlier layout has what: a layout that takes them as a hint leaves as many bytes as it can
 * where they are. Laying out the same contents with the places of a layout gives that layout again.
 */
export type Places = {
  readonly areas: Areas;
  /** Of contents with a digest, behind the base. */
  readonly offsets: readonly (readonly [Digest, number])[];
};

/** S3 takes no part below this but the last: smaller blobs lie together. */
export const SMALL_BLOB = 5 * 1024 * 1024;

/** Whatever has bytes of its own: what is placed. */
export type Sized = { readonly digest: Digest; readonly size: number };
