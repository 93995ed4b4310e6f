/** Numbers that a seed gives again: a failed build can be run once more by its seed. */
export type Random = {
  /** From 0 (included) to 1 (excluded). */
  readonly next: () => number;
  readonly below: (limit: number) => number;
  readonly chance: (share: number) => boolean;
  readonly pick: <T>(list: readonly [T, ...T[]]) => T;
};

/** mulberry32: small, and good enough to choose faults. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    chance: (share) => next() < share,
    pick: (list) => list[below(list.length)] ?? list[0],
  };
}
