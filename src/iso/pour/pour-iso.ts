import { rename } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { DiskError } from '../../base/errors.ts';
import { hasFile, readAllocated, readFreeBytes, syncDirectory } from '../../base/files.ts';
import { formatSize } from '../../base/format-size.ts';
import type { Layout } from '../extent.ts';
import { BUFFER_SIZE, createBufferPool, probeAlignment, type BufferPool } from './buffer-pool.ts';
import { createHasher } from './hasher.ts';
import { IsoDigest } from './iso-digest.ts';
import { readJournal, startJournal, type Journal, type Progress } from './journal.ts';
import { openOutputFile, type OutputFile } from './output-file.ts';
import { createPace } from './pace.ts';
import { pourRendered, pourStored } from './pour-span.ts';
import type { ExtentOpener, Kept, LaneTools, PourCounters } from './span-writer.ts';
import { digestLayout, planSpans, type PourSpan } from './spans.ts';

export type PourOptions = {
  readonly layout: Layout;
  /** Final path; `<output>.partial` and `<output>.partial.journal` stand beside it meanwhile. */
  readonly output: string;
  readonly openExtent: ExtentOpener;
  /** How many extents are poured at a time. */
  readonly lanes: number;
  readonly signal: AbortSignal;
  /** Bytes of the ISO that stand, verified or about to be, out of layout.size. */
  readonly onProgress?: (bytes: number) => void;
  /** Permission bits of the output; default 0o644. */
  readonly mode?: number;
  /** Called when all is verified and synced, before the output has its name: what must be there with it. */
  readonly onComplete?: (result: PourResult) => Promise<void>;
  /** A partial output of another layout was found and is started over. */
  readonly onStale?: () => void;
};

export type PourResult = PourCounters & {
  /** SHA-256 of the whole ISO. */
  readonly digest: Digest;
  /** Bytes that were read again from the output for that digest. */
  readonly readBack: number;
};

/** Memory for buffers in MiB: what lanes fill, and what waits for the digest of the whole ISO. */
const POOL_BUFFERS = 64;
/** Verified extents become `done` in the journal after a common sync, at least this often. */
const SYNC_INTERVAL_MS = 3000;
/** How soon a lane that has to wait looks again. */
const PAUSE_MS = 50;

/**
 * Writes an ISO: every extent once, in parallel, verified while the bytes pass through. The output
 * appears by rename when all of it is verified and synced. Killed at any moment, the same call
 * continues with what is missing. The caller holds the output's lock.
 *
 * @throws DiskError `output.full`, ...; IntegrityError `extent.wrong-digest`;
 * whatever the opener throws. The partial output stays in every case.
 */
export async function pourIso(options: PourOptions): Promise<PourResult> {
  const partial = `${options.output}.partial`;
  const spans = planSpans(options.layout);
  const journal = await continueJournal(partial, options);
  try {
    const result = await pourInto(partial, { ...options, spans, journal });
    await options.onComplete?.(result);
    await rename(partial, options.output);
    await syncDirectory(dirname(options.output));
    await journal.remove();
    return result;
  } catch (error) {
    throw await tellMissing(error, partial, options.layout.size);
  } finally {
    await journal.close();
  }
}

/** A full disk is told with what is missing in all, not with the write that met it. */
async function tellMissing(error: unknown, partial: string, size: number): Promise<unknown> {
  if (!(error instanceof DiskError) || error.code !== 'output.full') return error;
  const missing = size - (await readAllocated(partial)) - (await readFreeBytes(dirname(partial)));
  return new DiskError(
    'output.full',
    `the disk is full: ${formatSize(Math.max(0, missing))} more are needed for "${partial}"`,
    { cause: error.cause, ...(error.hint !== undefined && { hint: error.hint }) },
  );
}

async function continueJournal(partial: string, options: PourOptions): Promise<Journal> {
  const path = `${partial}.journal`;
  const layout = digestLayout(options.layout);
  const hasPartial = await hasFile(partial);
  const achieved = hasPartial ? await readJournal(path, layout) : undefined;
  if (hasPartial && !achieved) options.onStale?.();
  return startJournal(path, layout, achieved ?? new Map<number, Progress>());
}

type Pour = PourOptions & { readonly spans: readonly PourSpan[]; readonly journal: Journal };

async function pourInto(partial: string, pour: Pour): Promise<PourResult> {
  const { layout, journal, spans } = pour;
  const memory = new SharedArrayBuffer((POOL_BUFFERS + 1) * BUFFER_SIZE);
  const keep = journal.achieved.size > 0;
  const alignment = await probeAlignment(`${partial}.probe`, memory);
  const direct = alignment !== undefined;
  const output = await openOutputFile(partial, {
    ...{ size: layout.size, memory, keep, direct, mode: pour.mode ?? 0o644 },
  });
  const pool = createBufferPool(memory, alignment ?? 0);
  const hasher = createHasher(memory);
  const isoDigest = new IsoDigest({ spans, hasher, pool, output });
  const counters: PourCounters = { fetched: 0, copied: 0, kept: 0, written: 0 };
  const stop = new AbortController();
  const signal = AbortSignal.any([pour.signal, stop.signal]);
  let bytes = 0;
  const tools: LaneTools = {
    ...{ pool, hasher, output, isoDigest, counters, signal, openExtent: pour.openExtent },
    notePrefix: journal.notePrefix,
    onBytes(size) {
      bytes += size;
      pour.onProgress?.(bytes);
    },
  };
  const committer = createCommitter(output, journal);
  try {
    await runLanes(pour, tools, { committer, pool, stop });
    const digest = await waitForDigest(isoDigest, pour.signal);
    await committer.end();
    return { ...counters, digest, readBack: isoDigest.readBack };
  } finally {
    await committer.stop();
    await hasher.close();
    await output.close();
  }
}

async function waitForDigest(isoDigest: IsoDigest, signal: AbortSignal): Promise<Digest> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
  signal.throwIfAborted();
  return Promise.race([isoDigest.finished, aborted]);
}

type Lanes = {
  readonly committer: Committer;
  readonly pool: BufferPool;
  readonly stop: AbortController;
};

async function runLanes(pour: Pour, tools: LaneTools, lanes: Lanes): Promise<void> {
  const queue = createQueue(pour);
  const pace = createPace(pour.lanes, { wasShort: tools.pool.wasShort });
  const runLane = async (number: number): Promise<void> => {
    try {
      for (;;) {
        while (number >= pace.allowed() && !queue.isEmpty()) await sleep(PAUSE_MS);
        tools.signal.throwIfAborted();
        const next = queue.take(number);
        if (!next) return;
        await pourOne(next, tools);
        lanes.committer.add(next.index);
      }
    } catch (error) {
      lanes.stop.abort(error);
      lanes.pool.fail(error);
      throw error;
    }
  };
  const stopWaiting = (): void => {
    lanes.pool.fail(tools.signal.reason);
  };
  tools.signal.addEventListener('abort', stopWaiting);
  const results = await Promise.allSettled(
    Array.from({ length: pour.lanes }, (_, n) => runLane(n)),
  );
  pace.stop();
  tools.signal.removeEventListener('abort', stopWaiting);
  pour.signal.throwIfAborted();
  if (lanes.stop.signal.aborted) throw lanes.stop.signal.reason;
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

type Task = { readonly index: number; readonly span: PourSpan; readonly kept: Kept | undefined };

function pourOne({ index, span, kept }: Task, tools: LaneTools): Promise<void> {
  if (span.kind === 'rendered') return pourRendered(span, index, tools);
  const work = (): Promise<void> => pourStored({ span, index, kept }, tools);
  return kept?.size === span.size ? tools.isoDigest.whileCatchingUp(work) : work();
}

type Queue = {
  readonly isEmpty: () => boolean;
  readonly take: (lane: number) => Task | undefined;
};

/**
 * Spans in the order of the ISO, so that the digest of the whole follows closely. After a kill the
 * first lane checks what stands already while the others fetch what is missing.
 */
function createQueue({ spans, journal }: Pour): Queue {
  const tasks = spans.map((span, index) => ({ index, span, kept: keptOf(span, index, journal) }));
  const isMissing = ({ span, kept }: Task): boolean => (kept?.size ?? 0) < span.size;
  const missing = tasks.filter(isMissing);
  const standing = tasks.filter((task) => !isMissing(task));
  return {
    isEmpty: () => missing.length + standing.length === 0,
    take(lane) {
      const first = standing[0];
      const isEarlier = first && first.index < (missing[0]?.index ?? Infinity);
      if (lane === 0 && isEarlier) return standing.shift();
      return missing.shift() ?? standing.shift();
    },
  };
}

function keptOf(span: PourSpan, index: number, journal: Journal): Kept | undefined {
  const progress = journal.achieved.get(index);
  if (span.kind === 'rendered' || !progress) return undefined;
  if (progress.kind === 'done') return { size: span.size, digest: span.digest };
  return progress.size <= span.size ? progress : undefined;
}

/** Collects verified spans and makes them `done` together: one sync for many. */
type Committer = {
  add: (span: number) => void;
  /** Commits the rest. */
  end: () => Promise<void>;
  stop: () => Promise<void>;
};

function createCommitter(output: OutputFile, journal: Journal): Committer {
  let verified: number[] = [];
  let last: Promise<void> = Promise.resolve();
  let failure: { readonly error: unknown } | undefined;
  const commit = (): Promise<void> => {
    last = last.then(async () => {
      const spans = verified;
      verified = [];
      if (spans.length === 0) return;
      await output.sync();
      await journal.noteDone(spans);
    });
    return last;
  };
  const timer = setInterval(() => {
    commit().catch((error: unknown) => {
      failure = { error };
    });
  }, SYNC_INTERVAL_MS);
  return {
    add: (span) => void verified.push(span),
    async end() {
      clearInterval(timer);
      if (failure) throw failure.error;
      await commit();
      await output.sync();
    },
    async stop() {
      clearInterval(timer);
      await last.catch(() => undefined); // end() reports; here another error is on its way already
    },
  };
}
