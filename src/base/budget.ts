/** What one reading may still cost, by kind: bytes, entries, or whatever grows with its input. */
export type Budget<Kind extends string> = {
  /** @throws what `refuse` of {@link createBudget} makes, once more than the limit is taken */
  readonly take: (kind: Kind, amount: number) => void;
  /** What may still be taken, for readers that can be given a limit; then {@link take} is still due. */
  readonly left: (kind: Kind) => number;
  /** A new reading begins. */
  readonly reset: () => void;
};

/**
 * Bounds the whole of a reading: bounding each part alone is not enough when the input chooses how many
 * parts there are.
 */
export function createBudget<Kind extends string>(
  limits: Readonly<Record<Kind, number>>,
  refuse: (kind: Kind, limit: number) => Error,
): Budget<Kind> {
  let left: Record<Kind, number> = { ...limits };
  return {
    take(kind, amount) {
      left[kind] -= amount;
      if (left[kind] < 0) throw refuse(kind, limits[kind]);
    },
    left: (kind) => left[kind],
    reset() {
      left = { ...limits };
    },
  };
}
