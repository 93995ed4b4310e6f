/* Owns the buffers through which bytes go to clients. */

/** Bytes for the pieces of all clients together, as long as each gets the smallest piece or more. */
const BUDGET = 16 << 20;
/** Larger pieces gained nothing. */
const LARGEST = 512 << 10;
const SMALLEST = 16 << 10;

/** Buffers that are used again: new memory for each piece costs more than filling it. */
export type Pieces = {
  /** Counts one more client that takes pieces, and one less. */
  readonly enter: () => void;
  readonly leave: () => void;
  /** A buffer for `wanted` bytes, or as many as a client gets now; never for more than `largest`. */
  readonly take: (wanted: number, largest?: number) => Buffer;
  /** Returns a buffer that no code reads from or writes to any longer. */
  readonly give: (buffer: Buffer) => void;
  /** Sets the part of the budget that there is. */
  readonly share: (part: number) => void;
};

/**
 * Gives each client a share of the budget, 16 KiB at least: the memory of hundreds of slow clients
 * is bounded, and a few fast ones get large pieces. Sizes are powers of two.
 */
export function createPieces(): Pieces {
  const free = new Map<number, Buffer[]>();
  let part = 1;
  let clients = 0;
  let idle = 0;
  return {
    enter() {
      clients += 1;
    },
    leave() {
      clients -= 1;
    },
    share(given) {
      part = given;
    },
    take(wanted, largest = LARGEST) {
      const share = Math.max(SMALLEST, Math.min(largest, (BUDGET * part) / Math.max(1, clients)));
      const size = Math.max(SMALLEST, floorPower(share, wanted));
      const known = free.get(size)?.pop();
      if (known) idle -= size;
      return known ?? Buffer.allocUnsafeSlow(size);
    },
    give(buffer) {
      if (idle + buffer.length > BUDGET * part) return;
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
