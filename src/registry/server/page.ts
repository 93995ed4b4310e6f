import { failure, type Failure } from './failure.ts';

/** Part of a sorted list; `next` is the query of the page after it, when there is one. */
export type Page = {
  readonly kind: 'page';
  readonly items: readonly string[];
  readonly next: string | undefined;
};

/** As distribution has it. A page has 256 KiB at most. */
const MOST_ITEMS = 1000;

/**
 * distribution-spec 1.1, "Listing Tags": at most `n` items that sort after `last`, and at most a
 * thousand. `last` need not be in the list.
 */
export function pageOf(items: readonly string[], query: URLSearchParams): Page | Failure {
  const n = query.get('n');
  const last = query.get('last');
  if (n !== null && !/^\d{1,9}$/.test(n)) {
    return failure('PAGINATION_NUMBER_INVALID', 'n is not a valid number of items', { n });
  }
  const sorted = items.toSorted((a, b) => (a < b ? -1 : 1));
  const rest = last === null ? sorted : sorted.filter((item) => item > last);
  const count = Math.min(n === null ? MOST_ITEMS : Number(n), MOST_ITEMS);
  const page = rest.slice(0, count);
  const end = page.at(-1);
  const hasMore = page.length < rest.length && end !== undefined;
  const next = hasMore
    ? new URLSearchParams({ n: String(count), last: end }).toString()
    : undefined;
  return { kind: 'page', items: page, next };
}
