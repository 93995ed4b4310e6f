import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { DiskError } from '../../base/errors.ts';
import { hasFile, readAllocated, readFreeBytes, syncDirectory } from '../../base/disk/files.ts';
import { formatSize } from '../../base/text/quantities.ts';
import { withoutUndefined } from '../../base/members.ts';
import { openDeviceOutput, type PouredDevice } from '../device/device-output.ts';
import type { Layout } from '../extent.ts';
import { BUFFER_SIZE, cutBuffers, probeAlignment } from './buffers.ts';
import { Frontier } from './frontier.ts';
import { createHasher } from './hasher.ts';
import { readJournal, startJournal, type Journal, type Progress } from './journal.ts';
import { openOutputFile } from './output-file.ts';
import type { Pace } from './pace.ts';
import { runPour, type PourTools } from './pour-loop.ts';
import type { ExtentOpener, PourCounters } from './lane.ts';
import { digestLayout, planSpans, type PourSpan } from './spans.ts';

export type PourOptions = {
  readonly layout: Layout;
  /** Final path; what is written is `<output>.partial`, with `<output>.partial.journal` beside it. */
  readonly output: string;
  /** A block device that takes the bytes in place of the partial output. */
  readonly device?: PouredDevice;
  readonly openExtent: ExtentOpener;
  /** How many extents are poured at a time. */
  readonly lanes: number;
  /** How many of them may be poured right now; by default that depends on idle processors. */
  readonly pace?: Pace;
  readonly signal: AbortSignal;
  /**
   * Bytes of the ISO that stand, verified or about to be, out of layout.size; on a device, and those that
   * were read from it again, out of twice that.
   */
  readonly onProgress?: (bytes: number) => void;
  /** Permission bits of the output; default 0o644. */
  readonly mode?: number;
  readonly warn?: (message: string) => void;
};

export type PourResult = PourCounters & {
  /** SHA-256 of the whole ISO. */
  readonly digest: Digest;
  /** Bytes that were read again from the output for that digest. */
  readonly readBack: number;
};

/** Memory for buffers in MiB: what lanes fill, and what waits for the digest of the whole ISO. */
const POOL_BUFFERS = 64;

/**
 * Writes an ISO: every extent once, in parallel, verified while the bytes pass through. All of it is
 * synced at the end; `publishPour` gives it its name. Killed at any moment, the same call continues with
 * what is missing. The caller holds the output's lock.
 *
 * @throws DiskError `output.full`, ...; IntegrityError `extent.wrong-digest`;
 * whatever the opener throws. The partial output stays in every case.
 */
export async function pourIso(options: PourOptions): Promise<PourResult> {
  const partial = `${options.output}.partial`;
  const spans = planSpans(options.layout);
  const journal = await continueJournal(partial, options);
  try {
    return await pourInto(partial, { ...options, spans, journal });
  } catch (error) {
    throw await tellMissing(error, partial, options.layout.size);
  } finally {
    await journal.close();
  }
}

/** Gives a poured ISO its name, unless it is on a device, and removes what continues a pour. */
export async function publishPour(output: string, isDevice = false): Promise<void> {
  const partial = `${output}.partial`;
  if (!isDevice) await rename(partial, output);
  await syncDirectory(dirname(output));
  await rm(`${partial}.journal`, { force: true });
}

/** A full disk is reported with all that is missing, not with the write that failed. */
async function tellMissing(error: unknown, partial: string, size: number): Promise<unknown> {
  if (!(error instanceof DiskError) || error.code !== 'output.full') return error;
  const missing = size - (await readAllocated(partial)) - (await readFreeBytes(dirname(partial)));
  return new DiskError(
    'output.full',
    `the disk is full: ${formatSize(Math.max(0, missing))} more are needed for "${partial}"`,
    { cause: error.cause, ...withoutUndefined({ hint: error.hint }) },
  );
}

async function continueJournal(partial: string, options: PourOptions): Promise<Journal> {
  const path = `${partial}.journal`;
  const layout = digestLayout(options.layout);
  const hasPartial = await hasFile(options.device ? path : partial);
  const achieved = hasPartial ? await readJournal(path, layout) : undefined;
  if (hasPartial && !achieved) {
    options.warn?.('partial output is from different inputs; starting over');
  }
  return startJournal(path, layout, achieved ?? new Map<number, Progress>());
}

type Pour = PourOptions & { readonly spans: readonly PourSpan[]; readonly journal: Journal };

/** A partial output beside the output, or the device. */
async function openOutput(partial: string, pour: Pour, memory: SharedArrayBuffer) {
  const { layout, device, journal, mode = 0o644 } = pour;
  if (device) {
    const output = await openDeviceOutput(device, layout, memory);
    return { output, ...output };
  }
  const alignment = await probeAlignment(partial, memory);
  const keep = journal.achieved.size > 0;
  const direct = alignment !== undefined;
  const options = { size: layout.size, memory, mode, keep, direct };
  return { output: await openOutputFile(partial, options), alignment, finish: undefined };
}

/** Opens all that a pour needs, pours, and closes it again whatever happens. */
async function pourInto(partial: string, pour: Pour): Promise<PourResult> {
  const { journal, spans } = pour;
  const memory = new SharedArrayBuffer((POOL_BUFFERS + 1) * BUFFER_SIZE);
  const { output, alignment, finish } = await openOutput(partial, pour, memory);
  const hasher = createHasher(memory);
  const stop = new AbortController();
  const signal = AbortSignal.any([pour.signal, stop.signal]);
  const buffers = cutBuffers(memory, alignment ?? 0);
  const stream = hasher.openAlone();
  const frontier = new Frontier({ spans, buffers, stream, output, signal });
  const counters: PourCounters = { fetched: 0, copied: 0, reused: 0, written: 0 };
  let bytes = 0;
  const tools: PourTools = {
    memory: Buffer.from(memory),
    hasher,
    output,
    frontier,
    counters,
    signal,
    openExtent: pour.openExtent,
    notePrefix: journal.notePrefix,
    onBytes(size) {
      bytes += size;
      pour.onProgress?.(bytes);
    },
  };
  try {
    await runPour(pour, tools, stop);
    const digest = await frontier.finished;
    await finish?.({ digest, hasher, signal, onBytes: tools.onBytes });
    return { ...counters, digest, readBack: frontier.readBack };
  } finally {
    await hasher.close();
    await output.close();
  }
}
