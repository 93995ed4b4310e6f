import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Digest } from '../digest.ts';
import type { IntegrityError } from '../errors.ts';
import { bringVerified } from './bring-verified.ts';
import {
  type Attempt,
  readSources,
  type ReadOptions,
  type Wanted,
  type Source,
} from './sources.ts';

/* Owns filling a file with verified bytes. */

/** A file that grows front to back, its bytes hashed as they come. */
export type ResumableFile = {
  /** Bytes so far: in the file, or on their way there. */
  readonly size: () => number;
  /**
   * Continues after the first `size` bytes of the file, which are read and hashed. The bytes after
   * them stay until they are overwritten or cut off.
   *
   * @throws the signal's reason, between two blocks
   */
  readonly rewind: (size: number, signal: AbortSignal) => Promise<void>;
  /** Takes the next bytes; the caller must not change them. */
  readonly append: (bytes: Uint8Array) => Promise<void>;
  /** Resolves when all bytes so far are in the file. */
  readonly flush: () => Promise<void>;
  /** Removes the bytes in the file after the bytes so far. */
  readonly cutOff: () => Promise<void>;
  readonly digest: () => Digest;
};

/** Bytes that are read or written at once, and that wait while others are written. */
const BLOCK = 1 << 20;

/**
 * Writes the bytes that come while nothing is being written, and collects the bytes that come during a write:
 * over a slow line all bytes are soon in the file, and over a fast one they are written in large blocks.
 *
 * @param file open to read and write, not to append; the caller closes it, and syncs it first
 */
export function createResumableFile(file: FileHandle): ResumableFile {
  let hash = createHash('sha256');
  let size = 0;
  let waiting: Uint8Array[] = [];
  let waitingSize = 0;
  /** Stays when it fails, so that the next caller gets the failure. */
  let writing: Promise<void> | undefined;

  const write = async (): Promise<void> => {
    while (waitingSize > 0) {
      const bytes = Buffer.concat(waiting, waitingSize);
      const position = size - waitingSize;
      waiting = [];
      waitingSize = 0;
      for (let written = 0; written < bytes.length;) {
        const { bytesWritten } = await file.write(bytes, written, undefined, position + written);
        written += bytesWritten;
      }
    }
    writing = undefined;
  };
  const flush = async (): Promise<void> => {
    await writing;
  };
  return {
    size: () => size,
    async rewind(to, signal) {
      await flush();
      hash = createHash('sha256');
      size = to;
      const buffer = Buffer.allocUnsafe(Math.min(to, BLOCK));
      for (let offset = 0; offset < to;) {
        signal.throwIfAborted();
        const length = Math.min(buffer.length, to - offset);
        const { bytesRead } = await file.read(buffer, 0, length, offset);
        if (bytesRead === 0) break; // shortened meanwhile: the digest will show it
        hash.update(buffer.subarray(0, bytesRead));
        offset += bytesRead;
      }
    },
    async append(bytes) {
      hash.update(bytes);
      size += bytes.length;
      waiting.push(bytes);
      waitingSize += bytes.length;
      writing ??= write();
      writing.catch(() => undefined); // thrown to the waiting caller
      if (waitingSize >= BLOCK) await flush();
    },
    flush,
    async cutOff() {
      await flush();
      await file.truncate(size);
    },
    digest: () => `sha256:${hash.copy().digest('hex')}`,
  };
}

export type FillOptions<S extends Source> = {
  readonly sources: readonly S[];
  readonly wanted: Wanted<S> & {
    /** Absent if only the result made from the bytes can be compared. */
    readonly digest?: Digest;
    /** `from` names the sources of wrong bytes. */
    readonly explainWrong: (wrong: {
      readonly found: Digest;
      readonly size: number;
      readonly from: readonly string[];
    }) => IntegrityError;
  };
  /** Bytes at the front of the file that an earlier run left. */
  readonly prefix: number;
  /**
   * True if the bytes after the place at which a source starts over are cut off: they may belong to
   * another object. Else they stay, so that the next run can build on them if this one ends early.
   */
  readonly cutsOff: boolean;
  /** Called with the number of bytes so far; it falls when a source starts over. */
  readonly onProgress?: (bytes: number, total?: number) => void;
} & Pick<ReadOptions, 'signal' | 'bodyTime'>;

/**
 * Fills a file with an object, verified: bytes that an earlier run left are hashed and continued.
 * If they were wrong, they alone are fetched again, before everything else is. After a failure,
 * the bytes so far stay in the file, but not wrong bytes.
 *
 * @throws errors of `explainWrong`; the errors of `readSources` and of the disk
 */
export async function fillFile<S extends Source>(
  file: ResumableFile,
  options: FillOptions<S>,
): Promise<void> {
  const { wanted, signal } = options;
  /** End of the prefix, if its bytes may be the only wrong ones. */
  let end: number | undefined;
  await bringVerified(async (attempt) => {
    const front = end;
    end = undefined;
    const behind = file.size();
    const prefix = attempt.usePrefix ? Math.min(options.prefix, wanted.limit) : 0;
    const { used, start } = await readInto(file, { ...options, attempt, prefix, end: front });
    if (front !== undefined) await file.rewind(behind, signal);
    const found = file.digest();
    if (wanted.digest === undefined || found === wanted.digest) {
      await file.cutOff();
      return undefined;
    }
    const size = file.size();
    const isFrontAlone = front === undefined && isContinued({ prefix, start }) && size > prefix;
    if (isFrontAlone) end = prefix;
    else await empty(file, signal);
    const from = [...used].map(({ name }) => name);
    const hasPrefix = front !== undefined || isContinued({ prefix, start });
    return { used, hasPrefix, error: wanted.explainWrong({ found, size, from }) };
  }, signal);
}

const isContinued = ({ prefix, start }: { readonly prefix: number; readonly start: number }) =>
  prefix > 0 && start === prefix;

async function empty(file: ResumableFile, signal: AbortSignal): Promise<void> {
  await file.rewind(0, signal);
  await file.cutOff();
}

type Reading<S extends Source> = FillOptions<S> & {
  readonly attempt: Attempt;
  /** Byte to end at, if the bytes after it must stay; default: the end of the object. */
  readonly end: number | undefined;
};

/** @returns the sources whose bytes it took, and the byte that their last run began at */
async function readInto<S extends Source>(
  file: ResumableFile,
  options: Reading<S>,
): Promise<{ readonly used: ReadonlySet<Source>; readonly start: number }> {
  const { wanted, signal, onProgress, attempt, prefix, end = Infinity } = options;
  const used = new Set<Source>();
  let start = prefix;
  await file.rewind(start, signal);
  const open: Wanted<S>['open'] = (source, { offset, ...asked }) =>
    wanted.open(source, { ...asked, offset, ...(end < Infinity && { size: end - offset }) });
  const sources = attempt.rank(options.sources);
  const given = { ...options, ...attempt, offset: start };
  try {
    for await (const chunk of readSources(sources, { ...wanted, open }, given)) {
      const { offset, bytes, source, total } = chunk;
      if (offset !== file.size()) {
        start = offset;
        await file.rewind(start, signal);
        if (options.cutsOff) await file.cutOff();
        used.clear();
      }
      used.add(source);
      await file.append(bytes.subarray(0, end - offset));
      onProgress?.(file.size(), total);
      if (file.size() >= end) break;
    }
  } finally {
    await file.flush();
  }
  return { used, start };
}
