import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import {
  createKeySource,
  type KeySource,
} from '../../../openshift/image-based/identity/keys/rsa-keys.ts';
import { connectCalls, type Calls } from './calls.ts';
import type { KeyRequest, SiteRequest } from './requests.ts';
import { createSiteWorker, obeyRequest, type CheckedSite, type SiteWorker } from './site-worker.ts';
import type { ComposedSite } from '../site/compose-site.ts';
import type { MadeIso } from '../site/site-record.ts';

/** Node 20 loads no TypeScript into a thread: there are some of the built program only. */
const PROGRAM = import.meta.url.endsWith('.js')
  ? new URL('./site-thread.js', import.meta.url)
  : undefined;

/** Mebibytes: one site at a time needs little, and V8 would take what there is. */
const LIMITS = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 512 };

/** A thread takes as long to start as so many sites take to be checked. */
const WORTH_A_THREAD = 32;

type Options = {
  /** Threads at most: so many for keys, and no more than there are cores for sites. */
  readonly jobs: number;
  readonly signal: AbortSignal;
  /** One of its own unless told. */
  readonly keys?: KeySource;
  /** What a thread runs; that of the built program unless told. */
  readonly program?: URL;
};

type Thread = { readonly worker: Worker; readonly calls: Calls; busy: number };

export type SiteThreads = SiteWorker & { readonly close: () => Promise<void> };

/**
 * Checks and composes sites in threads, which start when there is much to do; until then, in the
 * thread that asks. Keys come from one source, however many threads there are.
 */
export function createSiteThreads({ jobs, signal, ...given }: Options): SiteThreads {
  const { keys = createKeySource({ jobs }), program = PROGRAM } = given;
  const here = createSiteWorker({ keys, signal });
  const serve = (request: KeyRequest): Promise<unknown> => giveKeys(keys, request, signal);
  const count = Math.min(jobs, availableParallelism());
  const threads = program && startWhenAsked(count, () => startThread(program, serve));
  let asked = 0;
  const perform = (request: SiteRequest): Promise<unknown> =>
    threads && asked++ >= WORTH_A_THREAD ? threads.ask(request) : obeyRequest(here, request);
  return {
    check: async (input, options) =>
      (await perform({ op: 'check', input, options })) as CheckedSite,
    find: async (places, wanted) =>
      (await perform({ op: 'find', places, wanted })) as MadeIso | undefined,
    compose: async (site, order) => (await perform({ op: 'compose', site, order })) as ComposedSite,
    close: async () => {
      await threads?.close();
      await keys.close();
    },
  };
}

function giveKeys(keys: KeySource, request: KeyRequest, signal: AbortSignal): Promise<unknown> {
  if (request.op === 'hash') return keys.hashPassword(request.text, request.salt);
  return Promise.all(Array.from({ length: request.count }, () => keys.next(signal)));
}

type Threads = {
  /** Asks the one that has least to do. */
  readonly ask: (request: SiteRequest) => Promise<unknown>;
  readonly close: () => Promise<void>;
};

function startWhenAsked(count: number, start: () => Thread): Threads {
  const threads: Thread[] = [];
  return {
    async ask(request) {
      if (threads.length < count) threads.push(start());
      const thread = threads.reduce((best, each) => (each.busy < best.busy ? each : best));
      thread.busy++;
      try {
        return await thread.calls.ask(request);
      } finally {
        thread.busy--;
      }
    },
    async close() {
      const reason = new Error('the threads for sites are closed');
      for (const { calls } of threads) calls.breakOff(reason);
      await Promise.all(threads.map(({ worker }) => worker.terminate()));
    },
  };
}

function startThread(program: URL, serve: (request: KeyRequest) => Promise<unknown>): Thread {
  const worker = new Worker(program, { resourceLimits: LIMITS });
  const calls = connectCalls(worker, (request) => serve(request as KeyRequest));
  worker.on('error', calls.breakOff);
  return { worker, calls, busy: 0 };
}
