/** Leave to have one request under way. Exactly one of its ends, then release. */
export type Slot = {
  /** The host took it: the limit grows by one request a full round. */
  succeed: () => void;
  /** The host had enough (429, 503): the limit halves, once for all that were under way together. */
  refuse: () => void;
  /** May be called more than once. */
  release: () => void;
};

export type HostLimit = {
  /** Waits for a place, in order of asking. Rejects with the signal's reason. */
  acquire: (signal: AbortSignal) => Promise<Slot>;
  /** Requests that may be under way at once, at present. */
  readonly width: number;
};

type Waiting = { readonly start: () => void };

/**
 * How many requests a host gets at once: additive increase, multiplicative decrease, between 1 and
 * `maximum`, as TCP finds its rate (RFC 5681 3.1).
 */
export function createHostLimit(maximum: number): HostLimit {
  const queue = new Set<Waiting>();
  let width = maximum;
  let active = 0;
  let round = 0;

  const startNext = (): void => {
    for (const waiting of queue) {
      if (active >= Math.max(1, Math.floor(width))) return;
      queue.delete(waiting);
      active += 1;
      waiting.start();
    }
  };
  const createSlot = (): Slot => {
    const startedIn = round;
    let held = true;
    return {
      succeed() {
        width = Math.min(maximum, width + 1 / width);
      },
      refuse() {
        if (startedIn !== round) return;
        round += 1;
        width = Math.max(1, width / 2);
      },
      release() {
        if (!held) return;
        held = false;
        active -= 1;
        startNext();
      },
    };
  };
  return {
    get width() {
      return Math.floor(width);
    },
    async acquire(signal) {
      signal.throwIfAborted();
      await new Promise<void>((resolve, reject) => {
        const waiting: Waiting = {
          start() {
            signal.removeEventListener('abort', abort);
            resolve();
          },
        };
        const abort = (): void => {
          queue.delete(waiting);
          reject(signal.reason as Error);
        };
        signal.addEventListener('abort', abort, { once: true });
        queue.add(waiting);
        startNext();
      });
      return createSlot();
    },
  };
}
