import { createHash, type Hash } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { syncDirectory } from '../../base/disk/files.ts';
import type { BlobSource } from '../blob-source.ts';
import type { Descriptor } from '../descriptor.ts';
import { nameBlob, readBlob, type BlobChunk, type ReadBlobOptions } from '../read-blob.ts';
import type { SourceAnswer } from '../source-answers.ts';
import { claimPartial, releasePartial, type Partial } from './partial.ts';

export type EnsureOptions = {
  readonly signal: AbortSignal;
  /** Told the bytes of the blob that are here so far; they fall where a source starts again. */
  readonly onProgress?: (bytes: number) => void;
} & Pick<ReadBlobOptions, 'bodyTime'>;

export type Download = {
  readonly directory: string;
  /** Where the whole blob goes. */
  readonly path: string;
  readonly blob: Descriptor;
  readonly sources: readonly BlobSource[];
  readonly options: EnsureOptions;
};

/** Bytes that are written at once: collecting them is faster than piping (fewer turns of the loop). */
const WRITE_SIZE = 1 << 20;

/**
 * Fetches a blob beside its place, verifies it while it passes, syncs, and renames. What is there
 * when it fails stays for the next run.
 */
export async function download(task: Download): Promise<void> {
  const partial = await claimPartial(task.directory, task.blob.digest);
  let done = false;
  try {
    await fill(task, partial);
    await partial.file.sync();
    await rename(partial.path, task.path);
    done = true;
    await syncDirectory(dirname(task.path));
  } finally {
    await partial.file.close();
    if (!done) await releasePartial(partial);
  }
}

/**
 * What was here is tried with all sources. Sources whose bytes were wrong are asked after all others,
 * once more and from byte 0: the first copy may have been spoiled on its way.
 */
async function fill(task: Download, partial: Partial): Promise<void> {
  const { blob } = task;
  const suspects = new Set<BlobSource>();
  const answers = new Map<string, SourceAnswer>();
  let sources = task.sources;
  let prefix = Math.min(partial.size, blob.size);
  for (;;) {
    const attempt = { ...task, sources, answers: [...answers.values()] };
    const outcome = await pour(attempt, partial, prefix);
    if (outcome.digest === blob.digest) {
      await partial.file.truncate(blob.size);
      return;
    }
    await partial.file.truncate(0);
    const isPrefixSuspect = prefix > 0 && outcome.start === prefix;
    prefix = 0;
    if (isPrefixSuspect) continue;
    if (outcome.used.size === 0) throw mismatch(blob, outcome); // a blob of no bytes has one digest
    for (const { name } of outcome.used) {
      answers.set(name, { source: name, error: mismatch(blob, outcome) });
    }
    const once = [...outcome.used].filter((source) => !suspects.has(source));
    sources = [...sources.filter((source) => !outcome.used.has(source)), ...once];
    for (const source of once) suspects.add(source);
    if (sources.length === 0) throw nameBlob(blob, [...answers.values()]);
  }
}

type Outcome = {
  readonly digest: Digest;
  readonly used: ReadonlySet<BlobSource>;
  /** Where the bytes of the sources begin. */
  readonly start: number;
};

type Attempt = Download & { readonly answers: readonly SourceAnswer[] };

async function pour(task: Attempt, partial: Partial, prefix: number): Promise<Outcome> {
  const { blob, options, answers } = task;
  const used = new Set<BlobSource>();
  let hash = await hashPrefix(partial, prefix, options.signal);
  let start = prefix;
  let end = prefix;
  const writer = createWriter(partial);
  const reading = readBlob(task.sources, blob, { ...options, offset: prefix, answers });
  try {
    for await (const chunk of reading) {
      if (chunk.offset !== end) {
        await writer.flush();
        start = chunk.offset;
        hash = await hashPrefix(partial, start, options.signal);
        used.clear();
      }
      hash.update(chunk.bytes);
      used.add(chunk.source);
      end = chunk.offset + chunk.bytes.length;
      if (writer.add(chunk)) {
        await writer.flush();
        options.onProgress?.(end);
      }
    }
  } finally {
    await writer.flush();
  }
  return { digest: `sha256:${hash.digest('hex')}`, used, start };
}

async function hashPrefix({ file }: Partial, size: number, signal: AbortSignal): Promise<Hash> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.min(size, WRITE_SIZE));
  for (let offset = 0; offset < size;) {
    signal.throwIfAborted();
    const length = Math.min(buffer.length, size - offset);
    const { bytesRead } = await file.read(buffer, 0, length, offset);
    if (bytesRead === 0) break; // shortened meanwhile: the digest will tell
    hash.update(buffer.subarray(0, bytesRead));
    offset += bytesRead;
  }
  return hash;
}

type Writer = {
  /** True when it is time to flush. */
  add: (chunk: BlobChunk) => boolean;
  flush: () => Promise<void>;
};

function createWriter({ file }: Partial): Writer {
  let pending: Uint8Array[] = [];
  let size = 0;
  let position = 0;
  return {
    add({ offset, bytes }) {
      if (pending.length === 0) position = offset;
      pending.push(bytes);
      size += bytes.length;
      return size >= WRITE_SIZE;
    },
    async flush() {
      const bytes = Buffer.concat(pending, size);
      pending = [];
      size = 0;
      for (let written = 0; written < bytes.length;) {
        const { bytesWritten } = await file.write(bytes, written, undefined, position + written);
        written += bytesWritten;
      }
    },
  };
}

function mismatch({ digest }: Descriptor, outcome: Outcome): IntegrityError {
  const names = [...outcome.used].map(({ name }) => name).join(', ');
  return new IntegrityError(
    'blob.digest-mismatch',
    `blob from ${names === '' ? 'nowhere' : names} should be ${digest}, but is ${outcome.digest}`,
    { expected: digest, found: outcome.digest },
  );
}
