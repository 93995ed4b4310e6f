import { rename, rm, type FileHandle } from 'node:fs/promises';
import { digestFromHex, hexOf, type Digest } from '../base/digest.ts';
import { nameAside, sweepAside } from '../base/disk/aside.ts';
import { cloneFile } from '../base/disk/copy.ts';
import { explaining } from '../base/disk/disk-errors.ts';
import { hasFile } from '../base/disk/files.ts';
import { createFile, readOwnFile } from '../base/disk/open-file.ts';
import { formatCanonicalJson } from '../base/text/json.ts';
import type { Layout } from '../iso/index.ts';
import type { Span, FrontierOptions, PourFrontier } from './frontier.ts';
import type { Slice } from './hasher.ts';
import { BUFFER_SIZE } from './output-file.ts';
import { digestLayout, type PourSpan } from './spans.ts';

/** State of one extent: complete and synced, or a written prefix (perhaps not synced). */
export type Progress =
  | { readonly kind: 'done' }
  | { readonly kind: 'prefix'; readonly size: number; readonly digest: Digest };

/**
 * Progress of a pour, one fact per line, in a file next to the partial output.
 *
 *     {"format":1,"layout":"sha256:..."}     first line
 *     d <extent>                             its bytes are verified and were synced before this line
 *     p <extent> <bytes> <hex>               this many bytes were written; SHA-256 of that prefix
 *
 * A prefix is a hint: the next run hashes it again and compares, so a line written before its bytes reached
 * the disk costs a download and never a wrong byte. A torn last line is ignored.
 */
export type Journal = {
  /** Progress of earlier runs, by index of the extent. */
  readonly achieved: ReadonlyMap<number, Progress>;
  notePrefix: (extent: number, size: number, digest: Digest) => void;
  /** Call only after the data was synced. */
  noteDone: (extents: readonly number[]) => Promise<void>;
  close: () => Promise<void>;
};

/**
 * Reads the journal of a layout.
 *
 * @returns undefined if the file belongs to another layout or was not written by sealift
 */
export async function readJournal(
  path: string,
  layout: Digest,
): Promise<ReadonlyMap<number, Progress> | undefined> {
  const text = (await explaining(path, () => readOwnFile(path)))?.toString('latin1');
  const lines = text?.slice(0, text.lastIndexOf('\n')).split('\n');
  if (lines?.[0] !== headerOf(layout)) return undefined;
  const achieved = new Map<number, Progress>();
  for (const line of lines.slice(1)) {
    const match = /^(?:d (\d+)|p (\d+) (\d+) ([0-9a-f]{64}))$/.exec(line);
    if (!match) return undefined;
    const [, done, extent, size, hex] = match;
    if (done !== undefined) achieved.set(Number(done), { kind: 'done' });
    else {
      const prefix = {
        kind: 'prefix',
        size: Number(size),
        digest: digestFromHex(hex ?? ''),
      } as const;
      achieved.set(Number(extent), prefix);
    }
  }
  return achieved;
}

/**
 * Rewrites the journal (aside, then renamed) with what is known, and keeps it open to append.
 *
 * @throws DiskError `output.full`, `output.unwritable`, `output.broken`, as do its members
 */
export async function startJournal(
  path: string,
  layout: Digest,
  achieved: ReadonlyMap<number, Progress>,
): Promise<Journal> {
  const known = [...achieved].map(([extent, progress]) => lineOf(extent, progress));
  const text = `${headerOf(layout)}\n${known.join('')}`;
  const file = await explaining(path, () => replaceFile(path, text));
  return createJournal(path, file, achieved);
}

async function replaceFile(path: string, text: string): Promise<FileHandle> {
  await sweepAside(path);
  const aside = await nameAside(path);
  const file = await createFile(aside);
  try {
    await file.writeFile(text);
    await file.datasync();
    await rename(aside, path);
    return file;
  } catch (error) {
    await file.close();
    await rm(aside, { force: true });
    throw error;
  }
}

function createJournal(
  path: string,
  file: FileHandle,
  achieved: ReadonlyMap<number, Progress>,
): Journal {
  // Lines must not interleave: each write waits for the one before, and takes all that came meanwhile.
  let lines = '';
  let last: Promise<unknown> = Promise.resolve();
  const write = async (): Promise<void> => {
    const text = lines;
    lines = '';
    if (text !== '') await explaining(path, () => file.appendFile(text));
  };
  const append = (text: string): Promise<unknown> => {
    lines += text;
    last = last.then(write);
    return last;
  };
  return {
    achieved,
    notePrefix(extent, size, digest) {
      append(lineOf(extent, { kind: 'prefix', size, digest })).catch(() => {
        // A lost hint costs a download after a kill; noteDone reports a journal that cannot be written.
      });
    },
    async noteDone(extents) {
      if (extents.length === 0) return;
      await append(extents.map((extent) => lineOf(extent, { kind: 'done' })).join(''));
      await explaining(path, () => file.datasync());
    },
    async close() {
      await last.catch(() => undefined);
      await file.close();
    },
  };
}

const headerOf = (layout: Digest): string => formatCanonicalJson({ format: 1, layout });

const lineOf = (extent: number, progress: Progress): string =>
  progress.kind === 'done'
    ? `d ${extent}\n`
    : `p ${extent} ${progress.size} ${hexOf(progress.digest)}\n`;

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
  /** A block device that takes the bytes in place of the partial output. */
  readonly device?: unknown;
  /** True to compute the digest of the whole even if that needs extra reads. */
  readonly checksum?: boolean;
  readonly warn?: (message: string) => void;
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

async function readAchieved(
  partial: string,
  layout: Digest,
  { warn, device }: StartOptions,
): Promise<ReadonlyMap<number, Progress>> {
  const path = `${partial}.journal`;
  if (!(await hasFile(device ? path : partial))) return new Map();
  const achieved = await readJournal(path, layout);
  if (!achieved) warn?.('partial output is from different inputs; starting over');
  return achieved ?? new Map<number, Progress>();
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
