import type { Readable } from 'node:stream';
import type { SealiftError } from '../errors.ts';
import type { Budget } from '../retry.ts';

/** Where bytes come from. Two repositories of one host have one name: identity tells them apart. */
export type Source = {
  /** For the report and errors, never a secret: `cache`, `quay.io`. */
  readonly name: string;
  /** Local sources cost no network; their bytes count as reused. */
  readonly local: boolean;
  /** How long reading one object may be tried again; absent: no retries. */
  readonly openBudget?: (signal: AbortSignal) => Budget;
};

/** Why one source did not give an object. */
export type SourceAnswer = {
  /** The host of a registry, or the name of a local source. */
  readonly source: string;
  readonly error: SealiftError;
};

export type OpenOptions = {
  /** Byte of the object to start at. */
  readonly offset: number;
  /** Bytes that are wanted from there; default: all. A source may give more. */
  readonly size?: number;
  readonly signal: AbortSignal;
  /** What the source gave for reading this object. */
  readonly budget?: Budget;
};

/** An open object: its bytes from `offset` on. */
export type OpenBytes = {
  /** The first byte this body holds: what was asked for, or 0 where the peer ignored Range. */
  readonly offset: number;
  readonly body: Readable;
  /** Bytes of the whole object, where its size is not known from elsewhere and the source says it. */
  readonly total?: number | undefined;
};
