import type { KeyObject } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { createCryptoThreads, type CryptoThreads } from './crypto-threads.ts';

/** An RSA key of 2048 bits with exponent 65537. */
export type RsaPair = {
  /** PKCS#1 PEM. */
  readonly privateKey: string;
  readonly publicKey: KeyObject;
  /** The private key again, ready to sign: reading it from PEM takes longer than signing. */
  readonly signingKey: KeyObject;
};

/** Gives what takes long to make. */
export type Keys = {
  /** A key that nobody else gets. Rejects with the signal's reason, or with what broke a thread. */
  next: (signal?: AbortSignal) => Promise<RsaPair>;
  /** `$2a$10$` and 53 characters, of 16 bytes of salt. */
  hashPassword: (text: string, salt: Uint8Array) => Promise<string>;
};

/**
 * Makes keys and hashes on all cores and off the main thread, as many as are asked for. The threads
 * are its own and not Node's pool, which has four whatever the machine has, and in
 * which files and names would wait behind the keys.
 */
export type KeySource = Keys & {
  /** Ends the threads; who still waits is rejected. Takes until the keys in the making are made. */
  close: () => Promise<void>;
};

type Waiter = {
  readonly signal: AbortSignal | undefined;
  readonly resolve: (pair: RsaPair) => void;
  readonly reject: (reason: unknown) => void;
};

type State = {
  readonly threads: CryptoThreads;
  /** Of those who gave up. */
  readonly ready: RsaPair[];
  readonly waiting: Set<Waiter>;
  /** One listener each: thousands of keys wait for the same signal. */
  readonly heard: WeakSet<AbortSignal>;
  ordered: number;
  broken?: { readonly reason: unknown };
};

/** @param options.jobs number of threads: one a core unless told; they start when first needed */
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

/** Hands out what is ready, and orders what is missing. */
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
