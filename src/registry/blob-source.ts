import type { Readable } from 'node:stream';
import type { Budget } from '../base/retry.ts';
import type { Descriptor } from './descriptor.ts';

/** An open blob: its bytes from `offset` on. */
export type OpenBlob = {
  /** The first byte this body holds: what was asked for, or 0 where the peer ignored Range. */
  readonly offset: number;
  readonly body: Readable;
};

export type OpenOptions = {
  /** Byte of the blob to start at. */
  readonly offset: number;
  readonly signal: AbortSignal;
  /** What the source gave for reading this blob. */
  readonly budget?: Budget;
};

/**
 * One place a blob may come from: a local cache, a mirror, the origin, later a previous ISO.
 * Whoever reads verifies: a source may return wrong, short or long bytes.
 */
export type BlobSource = {
  /** For the report and errors, never a secret: `cache`, `quay.io`. */
  readonly name: string;
  /** Local sources cost no network; their bytes count as reused. */
  readonly local: boolean;
  /** undefined when this source does not have the blob; throws when it cannot tell. */
  open: (blob: Descriptor, options: OpenOptions) => Promise<OpenBlob | undefined>;
  /**
   * Path of a file of this machine that is the blob, for readers that copy files; undefined when this
   * source does not have the blob. Absent: bytes come by `open` alone.
   */
  readonly fileOf?: (blob: Descriptor) => Promise<string | undefined>;
  /** How long reading one blob may be tried again; absent: no retries. */
  readonly openBudget?: (signal: AbortSignal) => Budget;
};
