import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { digestFromHex, type Digest } from '../../base/digest.ts';

/** A range of the shared memory. */
export type Slice = { readonly start: number; readonly size: number };

/** A SHA-256 that is computed in a thread over slices of the shared memory, in the order given. */
export type HashStream = {
  /** Resolves when the slice may be reused; with the digest of all so far when `prefix` is asked. */
  update: (slice: Slice, prefix?: boolean) => Promise<Digest | undefined>;
  /** Ends the stream. */
  digest: () => Promise<Digest>;
  /** Remembers the state, so that `restore` can come back to it. */
  snapshot: () => void;
  restore: () => void;
  close: () => void;
};

/** Threads that hash. SHA-256 is synchronous in Node, and the main thread has sockets to read. */
export type Hasher = {
  open: () => HashStream;
  /** A stream with a thread of its own, for the digest of the whole ISO. */
  openAlone: () => HashStream;
  close: () => Promise<void>;
};

type Reply = { readonly ticket: number; readonly digest?: string };

type Thread = {
  readonly worker: Worker;
  streams: number;
  /** Why the thread ended by itself: nothing more is asked of it. */
  failure: { readonly error: unknown } | undefined;
  readonly waiting: Map<
    number,
    { resolve: (digest?: string) => void; reject: (e: unknown) => void }
  >;
};

export function createHasher(memory: SharedArrayBuffer): Hasher {
  const count = Math.max(1, Math.min(4, availableParallelism() - 1));
  const alone = startThread(memory);
  const shared = Array.from({ length: count }, () => startThread(memory));
  const ids = { next: 1 };
  return {
    open() {
      const idlest = shared.reduce((best, thread) =>
        thread.streams < best.streams ? thread : best,
      );
      return openStream(idlest, ids);
    },
    openAlone: () => openStream(alone, ids),
    async close() {
      await Promise.all([alone, ...shared].map((thread) => thread.worker.terminate()));
    },
  };
}

function startThread(memory: SharedArrayBuffer): Thread {
  const worker = new Worker(new URL('./hash-worker.mjs', import.meta.url), {
    workerData: memory,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  });
  const thread: Thread = { worker, streams: 0, failure: undefined, waiting: new Map() };
  worker.on('message', (reply: Reply) => {
    thread.waiting.get(reply.ticket)?.resolve(reply.digest);
    thread.waiting.delete(reply.ticket);
  });
  worker.on('error', (error) => {
    thread.failure = { error };
    for (const { reject } of thread.waiting.values()) reject(error);
    thread.waiting.clear();
  });
  return thread;
}

function openStream(thread: Thread, ids: { next: number }): HashStream {
  const stream = ids.next++;
  thread.streams++;
  const tell = (op: string): void => {
    thread.worker.postMessage({ op, stream });
  };
  const ask = (order: object): Promise<string | undefined> =>
    new Promise((resolve, reject) => {
      if (thread.failure) {
        reject(thread.failure.error);
        return;
      }
      const ticket = ids.next++;
      thread.waiting.set(ticket, { resolve, reject });
      thread.worker.postMessage({ ...order, stream, ticket });
    });
  tell('open');
  return {
    async update({ start, size }, prefix = false) {
      const hex = await ask({ op: 'update', start, size, prefix });
      return hex === undefined ? undefined : digestFromHex(hex);
    },
    async digest() {
      thread.streams--;
      return digestFromHex((await ask({ op: 'digest' })) ?? '');
    },
    snapshot: () => {
      tell('snapshot');
    },
    restore: () => {
      tell('restore');
    },
    close() {
      thread.streams--;
      tell('close');
    },
  };
}
