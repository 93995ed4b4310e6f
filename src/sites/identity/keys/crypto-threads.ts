import { Worker } from 'node:worker_threads';

/** What a thread does, one at a time. */
export type Order =
  | { readonly op: 'key' }
  | { readonly op: 'hash'; readonly text: string; readonly salt: Uint8Array };

/** Threads that take orders. */
export type CryptoThreads = {
  /** The reply is what crypto-worker.mjs sends. Urgent orders go before all that wait. */
  ask: (order: Order, urgent?: boolean) => Promise<unknown>;
  /** Ends the threads, and rejects what they have not done. */
  close: () => Promise<void>;
};

/** Mebibytes: a key is small, and there may be many threads. */
const LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

type Task = {
  readonly order: Order;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (reason: unknown) => void;
};

type State = {
  readonly queue: Task[];
  readonly busy: Map<Worker, Task>;
  readonly idle: Worker[];
  readonly threads: Set<Worker>;
  /** Why there will be no more replies. */
  broken?: { readonly reason: unknown };
};

/** Starts threads when there is something for them to do, at most as many as told. */
export function createCryptoThreads(count: number): CryptoThreads {
  const state: State = { queue: [], busy: new Map(), idle: [], threads: new Set() };
  return {
    ask: (order, urgent = false) =>
      new Promise((resolve, reject) => {
        if (state.broken) {
          reject(state.broken.reason);
          return;
        }
        state.queue[urgent ? 'unshift' : 'push']({ order, resolve, reject });
        if (state.idle.length === 0 && state.threads.size < count) startThread(state);
        giveOrders(state);
      }),
    async close() {
      breakOff(state, new Error('the threads for keys are closed'));
      await Promise.all([...state.threads].map((thread) => thread.terminate()));
    },
  };
}

function startThread(state: State): void {
  const worker = new Worker(new URL('./crypto-worker.mjs', import.meta.url), {
    resourceLimits: LIMITS,
  });
  state.threads.add(worker);
  state.idle.push(worker);
  worker.on('message', (reply: unknown) => {
    const task = state.busy.get(worker);
    state.busy.delete(worker);
    state.idle.push(worker);
    task?.resolve(reply);
    giveOrders(state);
  });
  worker.on('error', (reason) => {
    state.threads.delete(worker);
    breakOff(state, reason);
  });
}

function giveOrders(state: State): void {
  while (state.idle.length > 0 && state.queue.length > 0) {
    const worker = state.idle.pop();
    const task = state.queue.shift();
    if (!worker || !task) return;
    state.busy.set(worker, task);
    worker.postMessage(task.order);
  }
}

function breakOff(state: State, reason: unknown): void {
  state.broken ??= { reason };
  for (const task of [...state.busy.values(), ...state.queue]) task.reject(state.broken.reason);
  state.busy.clear();
  state.queue.length = 0;
  state.idle.length = 0;
}
