import { lstat, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../base/digest.ts';
import { explaining } from '../base/disk/disk-errors.ts';
import { readAllocated, readFreeBytes, syncDirectory } from '../base/disk/files.ts';
import { describeHolder, parseHolder } from '../base/disk/holder.ts';
import { publishFile, requireNamed } from '../base/disk/publish.ts';
import { DiskError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { formatSize } from '../base/text/words.ts';
import type { Layout } from '../iso/index.ts';
import { openDeviceOutput, type PouredDevice } from './device.ts';
import { Frontier, type PourFrontier } from './frontier.ts';
import { createHasher } from './hasher.ts';
import { readJournal, readWriter, type Journal } from './journal.ts';
import { runPour, type PourTools } from './loop.ts';
import {
  BUFFER_SIZE,
  cutBuffers,
  probeAlignment,
  openOutputFile,
  type OutputFile,
} from './output-file.ts';
import type { Pace } from './pace.ts';
import {
  type ExtentOpener,
  type PourCounters,
  planSpans,
  type PourSpan,
  digestLayout,
} from './spans.ts';
import { createPassing, startPour, type EarlierIso, type Start } from './start.ts';

export type PourOptions = {
  readonly layout: Layout;
  /** Final path; `<output>.partial` is written, with `<output>.partial.journal` next to it. */
  readonly output: string;
  /** A block device that takes the bytes in place of the partial output. */
  readonly device?: PouredDevice;
  readonly openExtent: ExtentOpener;
  /** Most extents that are poured at a time. */
  readonly lanes: number;
  /** Number of them that may be poured now; by default it depends on idle processors. */
  readonly pace?: Pace;
  readonly signal: AbortSignal;
  /**
   * Bytes of the ISO written so far, out of layout.size. On a device, bytes read back are added, out of twice
   * layout.size. `fetched` are the bytes that came over the network. The first call is before the first byte.
   */
  readonly onProgress?: (bytes: number, fetched: number) => void;
  /** An ISO that shares many bytes with this one at the same offsets. */
  readonly earlier?: EarlierIso;
  /** True to compute the digest of the whole even if that needs extra reads. */
  readonly checksum?: boolean;
  /** Permission bits of the output; default 0o644. */
  readonly mode?: number;
  readonly warn?: (message: string) => void;
  /** See `StartOptions`. */
  readonly silence?: number;
};

export type PourResult = PourCounters & {
  /** SHA-256 of the whole ISO; absent if most of it was cloned and not read. */
  readonly digest?: Digest;
  /** Bytes that were read again from the output for that digest. */
  readonly readBack: number;
};

/** Memory in MiB for buffers: some are filled by lanes, others wait for the digest of the whole ISO. */
const POOL_BUFFERS = 64;

/**
 * Writes an ISO: every extent once, in parallel, verified while the bytes pass through. All of it is
 * synced at the end; `publishPour` gives it its name. After a kill, the same call continues with the
 * missing bytes. The caller holds the output's lock.
 *
 * @throws DiskError `output.full`, ...; IntegrityError `extent.wrong-digest`;
 * any error of the opener. The partial output stays if its journal has bytes to continue with.
 */
export async function pourIso(
  options: PourOptions & { readonly earlier?: never },
): Promise<PourResult & { readonly digest: Digest }>;
export async function pourIso(options: PourOptions): Promise<PourResult>;
export async function pourIso(options: PourOptions): Promise<PourResult> {
  const partial = `${options.output}.partial`;
  const spans = planSpans(options.layout);
  const { journal, recorded } = await startPour(partial, options, spans);
  try {
    const result = await pourInto(partial, { ...options, spans, journal, recorded });
    await journal.close();
    return result;
  } catch (error) {
    const told = await tellMissing(error, partial, options.layout.size);
    await journal.close();
    if (!options.device) await removeUnusable(partial, options.layout, journal);
    throw told;
  }
}

/** Removes an output of which the journal has no bytes: there is nothing that the next run could continue. */
async function removeUnusable(partial: string, layout: Layout, { writer }: Journal): Promise<void> {
  const path = `${partial}.journal`;
  const achieved = await readJournal(path, digestLayout(layout));
  if (achieved?.size !== 0 || (await readWriter(path))?.writer !== writer) return;
  await rm(partial, { force: true });
  await rm(path, { force: true });
}

/** A pour of this process that has no name yet. */
type Finished = {
  /** The partial output, open so that it cannot be mistaken; undefined for a device. */
  readonly file: FileHandle | undefined;
  readonly writer: string;
};

/** By the path of the output: a pour and its publication are steps of their own, with hours between them. */
const finished = new Map<string, Finished>();

/**
 * Gives a poured ISO its name, unless it is on a device, and removes the journal. Only what this process
 * poured is published, and only if no other run has begun the same output since.
 *
 * @throws DiskError `output.lost`, `output.unwritable`, ...
 */
export async function publishPour(output: string, isDevice = false): Promise<void> {
  const partial = `${output}.partial`;
  const made = finished.get(output);
  finished.delete(output);
  try {
    await explaining(output, async () => {
      await lstat(dirname(output)); // a folder that is gone was not taken by another run
      await requireWriter(partial, made?.writer);
      if (!isDevice && made?.file) {
        await publishFile(made.file, partial, output);
        await requireNamed(made.file, output);
      }
      await syncDirectory(dirname(output));
    });
  } finally {
    await made?.file?.close();
  }
  await rm(`${partial}.journal`, { force: true });
}

/** Requires that the journal is of the run that poured. */
async function requireWriter(partial: string, writer = 'none'): Promise<void> {
  const found = (await readWriter(`${partial}.journal`))?.writer;
  if (found === writer) return;
  const holder = found === undefined ? undefined : parseHolder(`${found}\n`);
  const who = holder ? describeHolder(holder) : 'another run';
  throw new DiskError('output.lost', `${who} has begun "${partial}" meanwhile`, {
    expected: `the journal of ${writer}`,
    found: found === undefined ? 'no journal' : `the journal of ${found}`,
    hint: 'run the same command again when no other process writes to this place',
  });
}

async function keepFinished(output: string, made: Finished): Promise<void> {
  await finished.get(output)?.file?.close();
  finished.set(output, made);
}

/** Reports a full disk with the number of all missing bytes, not with the write that failed. */
async function tellMissing(error: unknown, partial: string, size: number): Promise<unknown> {
  if (!(error instanceof DiskError) || error.code !== 'output.full') return error;
  const missing = size - (await readAllocated(partial)) - (await readFreeBytes(dirname(partial)));
  return new DiskError(
    'output.full',
    `the disk is full: ${formatSize(Math.max(0, missing))} more are needed for "${partial}"`,
    { cause: error.cause, ...withoutUndefined({ hint: error.hint }) },
  );
}

type Pour = PourOptions & Start & { readonly spans: readonly PourSpan[] };

const sizeOfSpans = (spans: readonly PourSpan[], indices: ReadonlySet<number>): number =>
  spans.reduce((sum, { size }, index) => (indices.has(index) ? sum + size : sum), 0);

async function openOutput(partial: string, pour: Pour, memory: SharedArrayBuffer) {
  const { layout, device, journal, mode = 0o644 } = pour;
  if (device) {
    const output = await openDeviceOutput(device, layout, memory);
    return { output, ...output };
  }
  const alignment = await probeAlignment(partial, memory);
  const keep = journal.achieved.size > 0;
  const direct = alignment !== undefined;
  await journal.requireOwn(); // else it makes a file that no journal explains
  const options = { size: layout.size, memory, mode, keep, direct };
  return { output: await openOutputFile(partial, options), alignment, finish: undefined };
}

/** Milliseconds after which a write first looks whether another run has begun the output. */
const LOOK_MS = 1000;

/** Stops the writes of a process that was paused for so long that another one took its place. */
function fence(output: OutputFile, { requireOwn }: Journal): OutputFile {
  let lookedAt = performance.now();
  return {
    ...output,
    async write(...args) {
      if (performance.now() - lookedAt > LOOK_MS) {
        await requireOwn();
        lookedAt = performance.now();
      }
      await output.write(...args);
    },
  };
}

/** Opens everything that a pour needs, pours, and closes everything, even after an error. */
async function pourInto(partial: string, pour: Pour): Promise<PourResult> {
  const { journal, spans } = pour;
  const memory = new SharedArrayBuffer((POOL_BUFFERS + 1) * BUFFER_SIZE);
  const { output: opened, alignment, finish } = await openOutput(partial, pour, memory);
  const output = fence(opened, journal);
  const hasher = createHasher(memory);
  const stop = new AbortController();
  const signal = AbortSignal.any([pour.signal, stop.signal]);
  const buffers = cutBuffers(memory, alignment ?? 0);
  const frontier: PourFrontier =
    pour.recorded.size > 0
      ? createPassing({ spans, buffers, signal })
      : new Frontier({ spans, buffers, stream: hasher.openAlone(), output, signal });
  const reused = sizeOfSpans(spans, pour.recorded);
  const counters: PourCounters = { fetched: 0, copied: 0, reused, written: 0 };
  let bytes = reused;
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
      pour.onProgress?.(bytes, counters.fetched);
    },
  };
  try {
    tools.onBytes(0);
    await runPour(pour, tools, stop);
    const digest = await frontier.finished;
    if (digest !== undefined) await finish?.({ digest, hasher, signal, onBytes: tools.onBytes });
    const file = pour.device ? undefined : await output.duplicate();
    await keepFinished(pour.output, { file, writer: journal.writer });
    return { ...counters, ...withoutUndefined({ digest }), readBack: frontier.readBack };
  } finally {
    await hasher.close();
    await output.close();
  }
}

/** Progress that an interrupted pour of this layout left. */
export type Standing = {
  /** Bytes of each blob, by digest, that need not be fetched again. */
  readonly blobs: ReadonlyMap<Digest, number>;
  /** Bytes of disk that the partial output has taken. */
  readonly allocated: number;
};

/** Reads the journal next to an output; changes nothing. */
export async function surveyPartial(layout: Layout, output: string): Promise<Standing> {
  const partial = `${output}.partial`;
  const achieved = await readJournal(`${partial}.journal`, digestLayout(layout));
  const blobs = new Map<Digest, number>();
  for (const [index, span] of planSpans(layout).entries()) {
    const progress = achieved?.get(index);
    if (!progress || span.kind === 'rendered' || span.extent.source.kind !== 'blob') continue;
    blobs.set(span.digest, progress.kind === 'done' ? span.size : progress.size);
  }
  return { blobs, allocated: await readAllocated(partial) };
}
