import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { digestFromHex, type Digest } from '../base/digest.ts';

/** A range of the shared memory. */
export type Slice = { readonly start: number; readonly size: number };

/** A SHA-256 that is computed in a thread over slices of the shared memory, in the order given. */
export type HashStream = {
  /** Resolves when the slice may be reused; with the digest of all bytes so far if `prefix` is true. */
  update: (slice: Slice, prefix?: boolean) => Promise<Digest | undefined>;
  /** Ends the stream. */
  digest: () => Promise<Digest>;
  /** Remembers the state, so that `restore` can return to it. */
  snapshot: () => void;
  restore: () => void;
  close: () => void;
};

/** Threads, each started by its first stream: SHA-256 in Node is synchronous, and would hold up sockets. */
export type Hasher = {
  open: () => HashStream;
  /** A stream with its own thread, for the digest of the whole ISO. */
  openAlone: () => HashStream;
  close: () => Promise<void>;
};

type Reply = { readonly ticket: number; readonly digest?: string };

/** Command to `hash-worker.mjs`. */
type Order = { readonly stream: number; readonly ticket?: number } & Readonly<
  Record<string, unknown>
>;

type Thread = {
  streams: number;
  /** In the order of the calls. */
  readonly tell: (order: Order) => void;
  readonly ask: (order: Order) => Promise<string | undefined>;
  readonly end: () => Promise<unknown>;
};

/** A busy thread has one message in work and one waiting; orders that come meanwhile are sent together. */
const MAX_MESSAGES = 2;

export function createHasher(memory: SharedArrayBuffer): Hasher {
  const count = Math.max(1, Math.min(4, availableParallelism() - 1));
  const shared: Thread[] = [];
  let alone: Thread | undefined;
  let streams = 0;
  return {
    open: () => openStream(findIdle(shared, { memory, count }), ++streams),
    openAlone: () => openStream((alone ??= startThread(memory)), ++streams),
    async close() {
      await Promise.all([...(alone ? [alone] : []), ...shared].map((thread) => thread.end()));
    },
  };
}

/** Finds the thread with the fewest streams, and starts one instead of sharing it while there are fewer than `count`. */
function findIdle(
  threads: Thread[],
  { memory, count }: { readonly memory: SharedArrayBuffer; readonly count: number },
): Thread {
  const idle = threads.find(({ streams }) => streams === 0);
  if (idle) return idle;
  if (threads.length === count) {
    return threads.reduce((best, thread) => (thread.streams < best.streams ? thread : best));
  }
  const started = startThread(memory);
  threads.push(started);
  return started;
}

function startThread(memory: SharedArrayBuffer): Thread {
  const worker = new Worker(new URL('./hash-worker.mjs', import.meta.url), {
    workerData: memory,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  });
  type Asker = { resolve: (digest?: string) => void; reject: (error: unknown) => void };
  const askers = new Map<number, Asker>();
  let orders: Order[] = [];
  let messages = 0;
  let tickets = 0;
  let failure: { readonly error: unknown } | undefined;
  const send = (): void => {
    if (orders.length === 0 || messages === MAX_MESSAGES) return;
    messages++;
    worker.postMessage(orders);
    orders = [];
  };
  const tell = (order: Order): void => {
    orders.push(order);
    if (orders.length === 1) queueMicrotask(send);
  };
  worker.on('message', (replies: readonly Reply[]) => {
    messages--;
    send();
    for (const { ticket, digest } of replies) {
      askers.get(ticket)?.resolve(digest);
      askers.delete(ticket);
    }
  });
  worker.on('error', (error) => {
    failure = { error };
    for (const { reject } of askers.values()) reject(error);
    askers.clear();
  });
  return {
    streams: 0,
    tell,
    end: () => worker.terminate(),
    ask: (order) =>
      new Promise((resolve, reject) => {
        if (failure) {
          reject(failure.error);
          return;
        }
        const ticket = ++tickets;
        askers.set(ticket, { resolve, reject });
        tell({ ...order, ticket });
      }),
  };
}

function openStream(thread: Thread, stream: number): HashStream {
  thread.streams++;
  const tell = (op: string) => (): void => {
    thread.tell({ op, stream });
  };
  tell('open')();
  return {
    async update({ start, size }, prefix = false) {
      const hex = await thread.ask({ op: 'update', stream, start, size, prefix });
      return hex === undefined ? undefined : digestFromHex(hex);
    },
    async digest() {
      thread.streams--;
      return digestFromHex((await thread.ask({ op: 'digest', stream })) ?? '');
    },
    snapshot: tell('snapshot'),
    restore: tell('restore'),
    close() {
      thread.streams--;
      tell('close')();
    },
  };
}
