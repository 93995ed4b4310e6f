import type { Digest } from '../../base/digest.ts';
import type { Layout } from '../../iso/extent.ts';
import type { ExtentOpener } from '../../pour/spans.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import type { EarlierIso } from './find-runs.ts';
import type { StoredObject } from './stored-object.ts';

/** The object that is there, as a build of ours left it. */
export type EarlierObject = EarlierIso & { readonly etag: string; readonly access: RandomAccess };

export type SendOptions = {
  readonly layout: Layout;
  /** Name of the layout, and what the object says of itself. */
  readonly digest: Digest;
  readonly metadata: Readonly<Record<string, string>>;
  readonly open: (signal: AbortSignal) => StoredObject;
  /** Address of the service. */
  readonly endpoint: string;
  /** File in the work directory. */
  readonly record: string;
  /** Of an object that is there: its ETag. */
  readonly replaces?: string;
  readonly earlier?: EarlierObject;
  readonly openExtent: ExtentOpener;
  readonly lanes: number;
  /** Parts that every service takes; absent: 1000, as Swift does by default. */
  readonly fewParts?: number;
  readonly signal: AbortSignal;
  /** The last step before the object is another one. */
  readonly beforeComplete: () => Promise<void>;
  readonly onProgress: (bytes: number) => void;
  readonly warn: (message: string) => void;
};

export type SentCounters = {
  /** From registries, and from this machine. */
  fetched: number;
  copied: number;
  /** Parts that an earlier run sent. */
  reused: number;
  /** Bytes of parts that were sent. */
  written: number;
  /** Bytes that the service copied out of the earlier object. */
  copiedByServer: number;
};

export type SentIso = SentCounters & {
  /** Of the whole ISO; where it is absent, `noChecksum` says why. */
  readonly digest?: Digest;
  readonly noChecksum?: string;
};
