import { rm } from 'node:fs/promises';
import type { Digest } from '../base/digest.ts';
import { cloneFile } from '../base/disk/copy.ts';
import { explaining } from '../base/disk/disk-errors.ts';
import { hasFile } from '../base/disk/files.ts';
import { describeHolder, isSelf, judge, parseHolder } from '../base/disk/holder.ts';
import { awaitSilence } from '../base/disk/lease.ts';
import { openOwnFile } from '../base/disk/open-file.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { Layout } from '../iso/index.ts';
import type { Span, FrontierOptions, PourFrontier } from './frontier.ts';
import type { Slice } from './hasher.ts';
import { readJournal, readWriter, startJournal, type Journal, type Progress } from './journal.ts';
import { BUFFER_SIZE } from './output-file.ts';
import { digestLayout, type PourSpan } from './spans.ts';

/** An ISO on this machine with its known extents. */
export type EarlierIso = {
  readonly path: string;
  readonly extents: ReadonlyMap<Digest, Span>;
  /** True if an earlier build recorded its digests; otherwise its bytes are hashed. */
  readonly isRecorded: boolean;
};

export type StartOptions = {
  readonly layout: Layout;
  readonly earlier?: EarlierIso;
  readonly device?: unknown;
  readonly checksum?: boolean;
  readonly warn?: (message: string) => void;
  readonly signal: AbortSignal;
  /** Milliseconds without a sign of life after which another writer of the partial output counts as ended. */
  readonly silence?: number;
};

export type Start = { readonly journal: Journal; readonly recorded: ReadonlySet<number> };

/** Continues an interrupted pour, or begins with a clone of an earlier ISO or an empty output. */
export async function startPour(
  partial: string,
  options: StartOptions,
  spans: readonly PourSpan[],
): Promise<Start> {
  const path = `${partial}.journal`;
  const layout = digestLayout(options.layout);
  await leaveToWriter(partial, options);
  const achieved = await readAchieved(partial, layout, options);
  const journal = await startJournal(path, layout, achieved);
  const cloned = achieved.size > 0 ? undefined : await cloneEarlier(partial, options, spans);
  if (!cloned) return { journal, recorded: new Set() };
  await journal.close();
  const isTrusted = options.earlier?.isRecorded === true && options.checksum !== true;
  return {
    journal: await startJournal(path, layout, cloned),
    recorded: new Set(isTrusted ? cloned.keys() : []),
  };
}

/**
 * Leaves the partial output to another process that may still write to it, although its lock is
 * gone: a new one is begun, because two writers of one file would mix their bytes.
 */
async function leaveToWriter(
  partial: string,
  { device, warn, signal, silence: limit }: StartOptions,
): Promise<void> {
  const path = `${partial}.journal`;
  const found = await readWriter(path).catch(async (error: unknown) => {
    if (await hasFile(partial)) throw error;
    return undefined; // a link with the name of the journal is replaced
  });
  const writer = found && parseHolder(`${found.writer}\n`);
  if (!writer || found.hasEnded || (await isSelf(writer))) return;
  const judgement = await judge(writer);
  if (judgement === 'dead') return;
  const who = describeHolder(writer);
  if (judgement === 'elsewhere') {
    warn?.(`${who} began "${partial}": this run waits to see whether it still writes to it`);
    const options = { signal, ...withoutUndefined({ limit }) };
    if (await explaining(path, () => awaitSilence(path, writer, options))) return;
  }
  warn?.(`${who} still writes to "${partial}": this run begins another file`);
  await explaining(partial, async () => {
    if (device === undefined) await rm(partial, { force: true });
    await rm(path, { force: true });
  });
}

async function readAchieved(
  partial: string,
  layout: Digest,
  { warn, device }: StartOptions,
): Promise<ReadonlyMap<number, Progress>> {
  const path = `${partial}.journal`;
  if (!(await hasFile(device ? path : partial))) return new Map();
  const achieved = await readJournal(path, layout);
  if (achieved) return achieved;
  warn?.('partial output is from different inputs; starting over');
  // A writer that only stood still has it open: what it still writes must not meet these bytes.
  if (!device) await explaining(partial, () => removeOwn(partial));
  return new Map();
}

/** Removes a file whose name others can guess. */
async function removeOwn(path: string): Promise<void> {
  const file = await openOwnFile(path, { create: false });
  await file.close();
  await rm(path, { force: true });
}

/**
 * Makes the partial output a clone of the earlier ISO, if the file system supports it. Extents with the same
 * offset in both are noted as prefixes: hints that a continued pour hashes and compares.
 *
 * @returns undefined if no file was cloned
 */
async function cloneEarlier(
  partial: string,
  { earlier }: StartOptions,
  spans: readonly PourSpan[],
): Promise<Map<number, Progress> | undefined> {
  const standing = new Map<number, Progress>();
  for (const [index, span] of spans.entries()) {
    if (span.kind === 'rendered' || !earlier) continue;
    const { digest, size } = span;
    const there = earlier.extents.get(digest);
    if (there?.offset === span.offset && there.size === size) {
      standing.set(index, { kind: 'prefix', size, digest });
    }
  }
  if (!earlier || standing.size === 0) return undefined;
  return (await cloneFile(earlier.path, partial)) ? standing : undefined;
}

/** A frontier that computes no digest, for an ISO whose bytes are mostly cloned and never read. */
export function createPassing({
  spans,
  buffers,
  signal,
}: Pick<FrontierOptions, 'spans' | 'buffers' | 'signal'>): PourFrontier {
  const waiters: {
    readonly resolve: (slice: Slice) => void;
    readonly reject: (error: unknown) => void;
  }[] = [];
  let left = spans.length;
  let finish: () => void = () => undefined;
  const finished = new Promise<undefined>((resolve) => {
    finish = () => {
      resolve(undefined);
    };
  });
  if (left === 0) finish();
  signal.addEventListener('abort', () => {
    for (const { reject } of waiters.splice(0)) reject(signal.reason);
  });
  const release = ({ start }: Slice): void => {
    const slice = { start, size: BUFFER_SIZE };
    const waiter = waiters.shift();
    if (waiter) waiter.resolve(slice);
    else buffers.push(slice);
  };
  return {
    finished,
    readBack: 0,
    acquire: () =>
      new Promise((resolve, reject) => {
        const slice = signal.aborted ? undefined : buffers.pop();
        if (signal.aborted) reject(signal.reason as Error);
        else if (slice) resolve(slice);
        else waiters.push({ resolve, reject });
      }),
    release,
    offer: release,
    verify() {
      left -= 1;
      if (left === 0) finish();
    },
    restart: () => undefined,
    wasShort: () => waiters.length > 0,
    isAwaited: () => true,
    isSpilling: () => false,
    whileCatchingUp: (work) => work(),
  };
}
