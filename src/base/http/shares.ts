/* Owns budgets: what one owner may have of something that all share. */

/** Amounts that are held at a time. */
export type Shares = {
  /** Takes an amount, or nothing; the result says which limit refuses it. */
  readonly take: (owner: string, amount: number) => 'taken' | 'each' | 'all';
  readonly give: (owner: string, amount: number) => void;
  /** Owners with the amounts that they hold. */
  readonly list: () => ReadonlyMap<string, number>;
  /** The owner who holds most. */
  readonly findLargest: () => string | undefined;
};

/**
 * @param limits most that an owner may hold, and all together
 * @param elsewhere amount that an owner holds in other processes
 */
export function createShares(
  limits: { readonly each: number; readonly all: number },
  elsewhere: (owner: string) => number = () => 0,
): Shares {
  const held = new Map<string, number>();
  let sum = 0;
  return {
    take(owner, amount) {
      const own = (held.get(owner) ?? 0) + amount;
      if (own + elsewhere(owner) > limits.each) return 'each';
      if (sum + amount > limits.all) return 'all';
      held.set(owner, own);
      sum += amount;
      return 'taken';
    },
    give(owner, amount) {
      const own = (held.get(owner) ?? 0) - amount;
      if (own > 0) held.set(owner, own);
      else held.delete(owner);
      sum -= amount;
    },
    list: () => held,
    findLargest() {
      let largest: string | undefined;
      for (const [owner, amount] of held) {
        if (largest === undefined || amount > (held.get(largest) ?? 0)) largest = owner;
      }
      return largest;
    },
  };
}

export function sumAmounts(
  all: readonly ReadonlyMap<string, number>[],
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const amounts of all) {
    for (const [owner, amount] of amounts) sums.set(owner, (sums.get(owner) ?? 0) + amount);
  }
  return sums;
}

/** Units a second, after a first burst. */
export type UnitRate = {
  /** Uses units. @returns milliseconds to wait if the owner has used too many, and then uses none */
  readonly use: (owner: string, units: number) => number | undefined;
};

/** Owners that are remembered; the one that used none for longest is forgotten first, and may burst again. */
const OWNERS = 10_000;

/**
 * A token bucket for each owner: it has `burst` units at first, and gets `perSecond` back up to that. The last use may take
 * more than there is, and is waited for afterwards.
 */
export function createRate(
  { perSecond, burst }: { readonly perSecond: number; readonly burst: number },
  now: () => number = () => performance.now(),
): UnitRate {
  const buckets = new Map<string, { units: number; at: number }>();
  return {
    use(owner, units) {
      const at = now();
      const before = buckets.get(owner) ?? { units: burst, at };
      const had = Math.min(burst, before.units + ((at - before.at) / 1000) * perSecond);
      const isAllowed = had > 0;
      buckets.delete(owner);
      buckets.set(owner, { units: isAllowed ? had - units : had, at });
      const [oldest] = buckets.keys();
      if (buckets.size > OWNERS && oldest !== undefined) buckets.delete(oldest);
      return isAllowed ? undefined : Math.ceil(((1 - had) / perSecond) * 1000);
    },
  };
}
