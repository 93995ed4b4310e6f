import type { Digest } from '../../base/digest.ts';
import type { Attempt } from '../../base/download/sources.ts';
import type { Source } from '../../base/download/sources.ts';
import type { Extent } from '../extent.ts';
import type { PourFrontier } from './frontier.ts';
import type { Hasher } from './hasher.ts';
import type { OutputFile } from './output-file.ts';

/* What a lane is given, and what it works with. */

/** Bytes of an extent as they arrive. */
export type ExtentChunk = {
  /** Bytes from the extent's start. An offset of 0 in the middle means that the source starts over. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly source: Source;
};

/** An extent's bytes: in a local file, which is read without detours, or as a stream. */
export type OpenExtent =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly position: number;
      readonly source: Source;
      /** Whether a record of an earlier build stands for these bytes: they are not hashed again. */
      readonly isRecorded?: boolean;
      /** Whether others write to its folder: no link is followed. */
      readonly isListed?: boolean;
    }
  | { readonly kind: 'stream'; readonly chunks: AsyncIterable<ExtentChunk> };

export type OpenExtentOptions = {
  /** Where in the extent to start. */
  readonly offset: number;
  readonly signal: AbortSignal;
  /** Told what a source brings to this machine before it has the extent in a file. */
  readonly onFetched?: (size: number) => void;
} & Omit<Attempt, 'usePrefix'>;

/** Opens an extent at the sources that `rank` leaves; throws when none of them has it. */
export type ExtentOpener = (extent: Extent, options: OpenExtentOptions) => Promise<OpenExtent>;

/** Bytes, by where they came from and went. */
export type PourCounters = { fetched: number; copied: number; reused: number; written: number };

export type LaneTools = {
  /** What buffers are cut from. */
  readonly memory: Buffer;
  readonly hasher: Hasher;
  readonly output: OutputFile;
  readonly frontier: PourFrontier;
  readonly openExtent: ExtentOpener;
  readonly counters: PourCounters;
  readonly notePrefix: (span: number, size: number, digest: Digest) => void;
  readonly signal: AbortSignal;
  readonly onBytes: (size: number) => void;
  readonly waiting: Waiting;
};

/** Since when a lane waits for bytes of its source, in milliseconds; undefined while it works on some. */
export type Waiting = { since: number | undefined };

/** What an earlier run left of the span in the output: so many bytes with this digest. */
export type Reused = { readonly size: number; readonly digest: Digest };
