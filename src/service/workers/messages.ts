import type { KeyPair } from '../../base/http/key-pair.ts';
import type { FetchedFile } from '../audit/fetches.ts';

/* Owns the messages between the first process and its workers. */

/** Address that clients connect to. */
export type WorkerListener = {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
};

export type WorkerSettings = {
  /** Path of the socket file of the first process. */
  readonly inner: string;
  readonly listeners: readonly WorkerListener[];
  readonly tls?: KeyPair;
  /** Connections of this worker, and of one address in all workers. */
  readonly connections: number;
  readonly each: number;
  /** Requests in flight of a tenant, in all workers. */
  readonly tenant: number;
  /** Addresses and networks of trusted proxies. */
  readonly proxies: readonly string[];
  /** Part of the memory for bytes of answers, 0 to 1. */
  readonly part: number;
};

export type ToWorker =
  | { readonly type: 'start'; readonly settings: WorkerSettings }
  /** Forgets the URLs of a record, or all; answered by the same number. */
  | { readonly type: 'forget'; readonly number: number; readonly record?: string }
  | { readonly type: 'renew'; readonly pair: KeyPair }
  /** Amounts of owners in all other processes; owners that are not in the list have few. */
  | {
      readonly type: 'elsewhere';
      readonly tenants: readonly Amount[];
      readonly owners: readonly Amount[];
    }
  /** Takes no more connections and ends after the last answer; `cut` ends what is still open. */
  | { readonly type: 'drain' }
  | { readonly type: 'cut' };

export type FromWorker =
  /** It listens to messages: those from before are lost. */
  | { readonly type: 'ready' }
  | { readonly type: 'listening' }
  | { readonly type: 'drained' }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'forgotten'; readonly number: number }
  | WorkerReport;

/** An owner, and how much of something it holds. */
export type Amount = readonly [owner: string, amount: number];

/** Events since the last report. Amounts are all that the worker has now, if they differ from those of the last report. */
export type WorkerReport = {
  readonly type: 'report';
  /** Images and addresses of clients, which the others name by their number. */
  readonly images: readonly ReportedImage[];
  readonly addresses: readonly string[];
  readonly answers: readonly ReportedAnswer[];
  /** Answers that have been in progress for a while. */
  readonly reading: readonly (readonly [image: number, address: number])[];
  readonly tenants?: readonly Amount[];
  readonly owners?: readonly Amount[];
};

export type ReportedImage = { readonly route: string; readonly file: FetchedFile };

/** An answer; a list, since there are thousands a second. */
export type ReportedAnswer = readonly [
  image: number,
  address: number,
  method: string,
  status: number,
  start: number,
  sent: number,
  isComplete: 0 | 1,
  milliseconds: number,
  error?: string,
];
