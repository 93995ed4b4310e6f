import { findFirst } from '../../base/lists.ts';
import type { ServedEntry } from '../../base/http/serve-bytes.ts';

/*
 * Owns what this process knows about the clients that read images: who reads, and which bytes of a one-time
 * URL were delivered. It is forgotten when the process ends.
 */

/** Client that reads an image. */
export type Reader = {
  /** Id of the InfraEnv. */
  readonly id: string;
  readonly revision: number;
  readonly address: string;
  /** Name of the host whose URL it has. */
  readonly host?: string | undefined;
};

export type Readers = {
  /** Counts an answer that begins; the result is called with its end. */
  readonly begin: (reader: Reader) => () => void;
  /** Lists the clients with an answer in progress, or one that ended less than a minute ago. */
  readonly list: (id: string) => readonly Reader[];
};

type Seen = { readonly reader: Reader; open: number; endedAt: number };

/** Milliseconds: controllers pause between ranges. */
const PAUSE_MS = 60_000;
/** Clients remembered without an answer in progress. */
const MOST = 10_000;

/** @param now milliseconds */
export function createReaders(now: () => number): Readers {
  const images = new Map<string, Map<string, Seen>>();
  let known = 0;
  const isReading = ({ open, endedAt }: Seen): boolean => open > 0 || now() - endedAt < PAUSE_MS;
  const sweep = (): void => {
    known = 0;
    for (const [id, clients] of images) {
      for (const [key, seen] of clients) if (!isReading(seen)) clients.delete(key);
      known += clients.size;
      if (clients.size === 0) images.delete(id);
    }
  };
  return {
    begin(reader) {
      if (known > MOST) sweep();
      const clients = images.get(reader.id) ?? new Map<string, Seen>();
      images.set(reader.id, clients);
      const key = `${reader.revision} ${reader.host ?? ''} ${reader.address}`;
      const seen = clients.get(key) ?? { reader, open: 0, endedAt: 0 };
      if (!clients.has(key)) known += 1;
      clients.set(key, seen);
      seen.open += 1;
      return () => {
        seen.open -= 1;
        seen.endedAt = now();
      };
    },
    list: (id) =>
      [...(images.get(id)?.values() ?? [])].filter(isReading).map(({ reader }) => reader),
  };
}

/** Describes the readers of a revision that is no longer served. */
export const describeReaders = (readers: readonly Reader[]): readonly string[] =>
  readers.map(
    ({ host, address, revision }) =>
      `${host === undefined ? address : `${host} (${address})`} is still reading revision ${revision}, ` +
      'whose URLs have ended: give it the new one',
  );

export type DeliveryMemory = {
  /**
   * Notes bytes that were delivered.
   *
   * @returns true if by now every byte of `size` was
   */
  readonly add: (key: string, entry: ServedEntry, size: number) => boolean;
  readonly forget: (key: string) => void;
};

type Span = { readonly start: number; readonly end: number };

/** Spans remembered for one URL, 64 KiB each at random in 4 GiB; with more, the URL ends at its time only. */
const MOST_SPANS = 65_536;
const MOST_URLS = 1000;

/** Creates a memory of delivered bytes, by key. */
export function createDeliveryMemory(): DeliveryMemory {
  const all = new Map<string, Span[]>();
  return {
    add(key, { start, sent }, size) {
      if (start === undefined || sent === 0) return false;
      const spans = all.get(key) ?? [];
      if (!all.has(key) && all.size >= MOST_URLS) return false;
      all.set(key, spans);
      if (spans.length < MOST_SPANS) addSpan(spans, { start, end: start + sent });
      const [first] = spans;
      return spans.length === 1 && first?.start === 0 && first.end >= size;
    },
    forget: (key) => void all.delete(key),
  };
}

/** Adds a span to sorted ones; spans that touch become one. */
function addSpan(spans: Span[], { start, end }: Span): void {
  const from = findFirst(spans, (span) => span.end >= start);
  let to = from;
  const merged = { start, end };
  for (let span = spans[to]; span && span.start <= end; span = spans[to]) {
    merged.start = Math.min(merged.start, span.start);
    merged.end = Math.max(merged.end, span.end);
    to += 1;
  }
  spans.splice(from, to - from, merged);
}
