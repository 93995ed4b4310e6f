import type { ServedEntry } from '../../base/http/serve-bytes.ts';
import { createShares } from '../../base/http/shares.ts';
import { findFirst } from '../../base/lists.ts';

/*
 * Owns which bytes of a one-time URL, or of a download, were delivered, as far as this process knows. It is forgotten when
 * the process ends.
 */

/** Content whose bytes are delivered. */
export type Delivered = {
  readonly key: string;
  /** Owner that its memory counts for. */
  readonly owner: string;
  /** Bytes of all of it. */
  readonly size: number;
};

export type DeliveryMemory = {
  /** Notes bytes that were delivered. True if by now every byte was; it is forgotten then. */
  readonly add: (content: Delivered, entry: ServedEntry) => boolean;
  readonly forget: (key: string) => void;
};

type Span = { readonly start: number; readonly end: number };

type Noted = { readonly owner: string; readonly spans: Span[]; cost: number };

/** Spans remembered for one URL, 64 KiB each at random in 4 GiB; with more, the URL ends at its time only. */
const MOST_SPANS = 65_536;
/** Spans remembered in all: 48 bytes each. */
const MOST_IN_ALL = 262_144;
/** Spans that take as much memory as a URL without any. */
const OF_URL = 4;

/**
 * When it is full, the owner who has most of it loses what has most spans, and begins there from nothing.
 * `spans`: most spans of a key; with more, its bytes are never all delivered. `all`: most spans of all keys.
 */
export function createDeliveryMemory({
  spans: mostSpans = MOST_SPANS,
  all: mostInAll = MOST_IN_ALL,
} = {}): DeliveryMemory {
  const noted = new Map<string, Noted>();
  const held = createShares({ each: mostInAll, all: mostInAll });
  const forget = (key: string): void => {
    const { owner, cost } = noted.get(key) ?? {};
    if (owner !== undefined && cost !== undefined) held.give(owner, cost);
    noted.delete(key);
  };
  /** Forgets what has most spans of the owner who has most, half of it: the work is then shared by what is added next. */
  const makeRoom = (): void => {
    const largest = held.findLargest();
    const own = [...noted].filter(([, { owner }]) => owner === largest);
    const most = (held.list().get(largest ?? '') ?? 0) / 2;
    for (const [key] of own.sort(([, a], [, b]) => b.cost - a.cost)) {
      if ((held.list().get(largest ?? '') ?? 0) <= most) break;
      forget(key);
    }
  };
  const count = (key: string, each: Noted): void => {
    const more = OF_URL + each.spans.length - each.cost;
    if (more <= 0) held.give(each.owner, -more);
    else if (held.take(each.owner, more) !== 'taken') {
      makeRoom();
      if (noted.get(key) !== each || held.take(each.owner, more) !== 'taken') forget(key);
    }
    each.cost += more;
  };
  return {
    add({ key, owner, size }, { start, sent }) {
      if (start === undefined || sent === 0) return false;
      const each = noted.get(key) ?? { owner, spans: [], cost: 0 };
      noted.set(key, each);
      const { spans } = each;
      if (spans.length < mostSpans) addSpan(spans, { start, end: start + sent });
      const [first] = spans;
      const isWhole = spans.length === 1 && first?.start === 0 && first.end >= size;
      if (isWhole) forget(key);
      else if (OF_URL + spans.length !== each.cost) count(key, each);
      return isWhole;
    },
    forget,
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
