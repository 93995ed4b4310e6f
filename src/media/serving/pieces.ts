/** Bytes for the pieces of all clients together, as far as each gets the smallest or more. */
const BUDGET = 16 << 20;
/** Larger ones gained nothing. */
const LARGEST = 512 << 10;
const SMALLEST = 16 << 10;

/** Buffers that are used again: memory that is new for each piece costs more than to fill it. */
export type Pieces = {
  /** One more client takes pieces until the result is called. */
  readonly join: () => () => void;
  /** A buffer for `wanted` bytes, or as many as a client gets now; never for more than `largest`. */
  readonly take: (wanted: number, largest?: number) => Buffer;
  /** Nobody reads from it or writes to it any more. */
  readonly give: (buffer: Buffer) => void;
};

/**
 * Each client gets a share of the budget, 16 KiB at least: what hundreds that are slow hold is bounded, and
 * a few that are fast get large pieces. Sizes are powers of two.
 */
export function createPieces(): Pieces {
  const free = new Map<number, Buffer[]>();
  let clients = 0;
  let idle = 0;
  return {
    join() {
      clients += 1;
      return () => {
        clients -= 1;
      };
    },
    take(wanted, largest = LARGEST) {
      const share = Math.max(SMALLEST, Math.min(largest, BUDGET / Math.max(1, clients)));
      const size = Math.max(SMALLEST, floorPower(share, wanted));
      const known = free.get(size)?.pop();
      if (known) idle -= size;
      return known ?? Buffer.allocUnsafeSlow(size);
    },
    give(buffer) {
      if (idle + buffer.length > BUDGET) return;
      idle += buffer.length;
      const list = free.get(buffer.length);
      if (list) list.push(buffer);
      else free.set(buffer.length, [buffer]);
    },
  };
}

/** The largest power of two that is not above the share, nor twice as much as is wanted. */
function floorPower(share: number, wanted: number): number {
  let size = SMALLEST;
  while (size * 2 <= share && size < wanted) size *= 2;
  return size;
}
