import type { KeyObject } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

/* Owns the threads that make RSA keys and password hashes. */

/** An RSA key of 2048 bits with exponent 65537. */
export type RsaPair = {
  /** PKCS#1 PEM. */
  readonly privateKey: string;
  readonly publicKey: KeyObject;
  /** The private key again, ready to sign: reading it from PEM takes longer than signing. */
  readonly signingKey: KeyObject;
};

export type Keys = {
  /** A key that no other caller gets. Rejects with the signal's reason or the error that broke a thread. */
  next: (signal?: AbortSignal) => Promise<RsaPair>;
  /** `$2a$10$` and 53 characters, from 16 bytes of salt. */
  hashPassword: (text: string, salt: Uint8Array) => Promise<string>;
};

/**
 * Makes keys and hashes on all cores and off the main thread, as many as are asked for. It uses
 * its own threads, not Node's pool, which has four threads on any machine, and in which file and
 * name look-ups would wait behind the keys.
 */
export type KeySource = Keys & {
  /** Ends the threads and rejects waiting callers. Resolves once the keys that are being made are done. */
  close: () => Promise<void>;
};

type Waiter = {
  readonly signal: AbortSignal | undefined;
  readonly resolve: (pair: RsaPair) => void;
  readonly reject: (reason: unknown) => void;
};

type State = {
  readonly threads: CryptoThreads;
  /** Keys of callers that gave up. */
  readonly ready: RsaPair[];
  readonly waiting: Set<Waiter>;
  /** One listener for each signal: thousands of keys wait for the same signal. */
  readonly heard: WeakSet<AbortSignal>;
  ordered: number;
  broken?: { readonly reason: unknown };
};

type Order =
  | { readonly op: 'key' }
  | { readonly op: 'hash'; readonly text: string; readonly salt: Uint8Array };

type CryptoThreads = {
  /** The reply is the message of crypto-worker.mjs. Urgent orders go before all waiting ones. */
  ask: (order: Order, urgent?: boolean) => Promise<unknown>;
  /** Ends the threads, and rejects the orders that they have not done. */
  close: () => Promise<void>;
};

type Task = {
  readonly order: Order;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (reason: unknown) => void;
};

type ThreadsState = {
  readonly queue: Task[];
  readonly busy: Map<Worker, Task>;
  readonly idle: Worker[];
  readonly threads: Set<Worker>;
  /** The reason why there will be no more replies. */
  broken?: { readonly reason: unknown };
};

/** `jobs` is the number of threads, by default one for each core; they start when first needed. */
export function createKeySource(options: { readonly jobs?: number } = {}): KeySource {
  const jobs = Math.max(1, options.jobs ?? availableParallelism());
  const threads = createCryptoThreads(jobs);
  const state: State = {
    threads,
    ready: [],
    ordered: 0,
    waiting: new Set(),
    heard: new WeakSet(),
  };
  return {
    next: (signal) => takeKey(state, signal),
    hashPassword: async (text, salt) =>
      (await threads.ask({ op: 'hash', text, salt }, true)) as string,
    close: () => threads.close(),
  };
}

function takeKey(state: State, signal?: AbortSignal): Promise<RsaPair> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    if (state.broken) {
      reject(state.broken.reason);
      return;
    }
    if (signal) listen(state, signal);
    state.waiting.add({ signal, resolve, reject });
    serve(state);
  });
}

function listen({ heard, waiting }: State, signal: AbortSignal): void {
  if (heard.has(signal)) return;
  heard.add(signal);
  const dismiss = (): void => {
    for (const waiter of waiting) {
      if (waiter.signal !== signal) continue;
      waiting.delete(waiter);
      waiter.reject(signal.reason);
    }
  };
  signal.addEventListener('abort', dismiss, { once: true });
}

/** Hands out the keys that are ready, and orders the missing ones. */
function serve(state: State): void {
  for (const waiter of state.waiting) {
    const pair = state.ready.shift();
    if (!pair) break;
    state.waiting.delete(waiter);
    waiter.resolve(pair);
  }
  while (state.ready.length + state.ordered < state.waiting.size) orderKey(state);
}

function orderKey(state: State): void {
  state.ordered++;
  state.threads.ask({ op: 'key' }).then(
    (pair) => {
      state.ordered--;
      state.ready.push(pair as RsaPair);
      serve(state);
    },
    (reason: unknown) => {
      state.broken ??= { reason };
      for (const waiter of state.waiting) waiter.reject(reason);
      state.waiting.clear();
    },
  );
}

/** Starts threads when there is work for them, at most `count`. */
function createCryptoThreads(count: number): CryptoThreads {
  const state: ThreadsState = { queue: [], busy: new Map(), idle: [], threads: new Set() };
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

/** Mebibytes: a key is small, and there may be many threads. */
const LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

function startThread(state: ThreadsState): void {
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

function giveOrders(state: ThreadsState): void {
  while (state.idle.length > 0 && state.queue.length > 0) {
    const worker = state.idle.pop();
    const task = state.queue.shift();
    if (!worker || !task) return;
    state.busy.set(worker, task);
    worker.postMessage(task.order);
  }
}

function breakOff(state: ThreadsState, reason: unknown): void {
  state.broken ??= { reason };
  for (const task of [...state.busy.values(), ...state.queue]) task.reject(state.broken.reason);
  state.busy.clear();
  state.queue.length = 0;
  state.idle.length = 0;
}
