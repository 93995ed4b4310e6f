import type { ServedEntry } from '../../base/http/serve-bytes.ts';
import { createRate } from '../../base/http/shares.ts';
import { createDeliveryMemory } from '../images/deliveries.ts';
import type { AuditEntry } from './chain.ts';

/*
 * Owns what the audit log has about downloads: a line when a client begins with a file, and one when it is done. In
 * between there may be hundreds of thousands of ranges, which are counted.
 */

/** File that a client fetches, with the values of one customer in it. */
export type FetchedFile = {
  /** `image`, or the name of a file. */
  readonly file: string;
  /** InfraEnv. */
  readonly id: string;
  readonly revision: number;
  readonly tenant: string;
  /** Release, and the digest of its ISO. */
  readonly version?: string;
  readonly architecture?: string;
  readonly base?: string;
  /** Host whose URL it is. */
  readonly host?: string;
  readonly size: number;
  readonly etag: string;
  /** Digest over index and values; of an image. */
  readonly medium?: string;
  /** SHA-256 of all bytes, if it is known. */
  readonly sha256?: string;
};

/** Client that fetches, and how it asked. */
export type FetchingClient = {
  readonly method: string;
  readonly address: string;
  /** Absent for those who have a URL, and no token. */
  readonly issuer?: string;
  readonly subject?: string;
};

export type Fetches = {
  /**
   * Notes an answer that begins; the result is called at its end, without an entry if there was not any yet. HEAD is not
   * noted.
   */
  readonly begin: (file: FetchedFile, client: FetchingClient) => (entry?: ServedEntry) => void;
  /** Ends downloads that pause for longer than a controller does. */
  readonly sweep: () => void;
  readonly end: () => void;
};

type Fetch = {
  readonly about: AuditEntry;
  open: number;
  bytes: number;
  answers: number;
  at: number;
};

/** Milliseconds without an answer after which a download has ended. */
const PAUSE_MS = 60_000;
/** Downloads that are followed; with more, the oldest has its second line at once. */
const MOST = 2000;
/** Spans of bytes of a download: with more, it is not noticed that all were delivered. */
const MOST_SPANS = 256;

/**
 * Downloads of a tenant that have lines of their own: at once, and each second afterwards. A URL can be read from as many
 * addresses as a network has, and the log must not fill the disk; the others of a file are counted as one download.
 */
const BURST = 1000;
const PER_SECOND = 1;
/** Stands for the address of those that are counted together. */
const OTHERS = 'others';

const NOT_NOTED = (): void => undefined;

export function createFetches({
  now,
  add,
}: {
  readonly now: () => number;
  readonly add: (entry: AuditEntry) => void;
}): Fetches {
  const fetches = new Map<string, Fetch>();
  const delivered = createDeliveryMemory({ spans: MOST_SPANS });
  const rate = createRate({ perSecond: PER_SECOND, burst: BURST }, now);
  /** Names a client, unless its tenant has too many downloads. */
  const tellApart = (file: FetchedFile, client: FetchingClient): FetchingClient => {
    if (fetches.has(keyOf(file, client))) return client;
    const isNamed = rate.use(file.tenant === '' ? file.id : file.tenant, 1) === undefined;
    return isNamed ? client : { method: client.method, address: OTHERS };
  };
  const finish = (key: string, complete: boolean): void => {
    const fetch = fetches.get(key);
    if (!fetch) return;
    fetches.delete(key);
    delivered.forget(key);
    const { about, bytes, answers } = fetch;
    add({ ...about, bytes, answers, complete, event: endOf(about.event) });
  };
  const start = (key: string, file: FetchedFile, client: FetchingClient): Fetch => {
    const about = describe(file, client);
    const fetch: Fetch = { about, open: 0, bytes: 0, answers: 0, at: now() };
    const [oldest] = fetches.keys();
    if (fetches.size >= MOST && oldest !== undefined) finish(oldest, false);
    fetches.set(key, fetch);
    add(about);
    return fetch;
  };
  return {
    begin(file, from) {
      if (from.method === 'HEAD') return NOT_NOTED;
      const client = tellApart(file, from);
      const key = keyOf(file, client);
      const fetch = fetches.get(key) ?? start(key, file, client);
      fetch.open += 1;
      return (entry) => {
        fetch.open -= 1;
        fetch.at = now();
        if (!entry) return; // another answer takes its place, or goes on
        fetch.answers += 1;
        fetch.bytes += entry.sent;
        if (client.address === OTHERS) return; // what one of them has, another may not have
        if (delivered.add({ key, owner: file.tenant, size: file.size }, entry)) finish(key, true);
      };
    },
    sweep() {
      for (const [key, { open, at }] of fetches) {
        if (open === 0 && now() - at >= PAUSE_MS) finish(key, false);
      }
    },
    end() {
      for (const key of [...fetches.keys()]) finish(key, false);
    },
  };
}

const keyOf = (file: FetchedFile, { address, issuer, subject }: FetchingClient): string =>
  [file.id, file.revision, file.file, file.etag, file.host, address, issuer, subject].join(' ');

const endOf = (event: string): string => event.replace(/begin$/, 'end');

const describe = (
  { tenant, host, ...what }: FetchedFile,
  { address, issuer, subject }: FetchingClient,
): AuditEntry => ({
  event: what.file === 'image' ? 'image.fetch.begin' : 'file.fetch.begin',
  what,
  who: { tenant, address, host, issuer, subject },
});
