import { addAbortSignal } from 'node:stream';
import { IntegrityError, RegistryError, SealiftError } from '../base/errors.ts';
import { explainNetworkFailure, TransientError } from '../base/http/network-failure.ts';
import { limitTime } from '../base/http/read-body.ts';
import type { Budget } from '../base/retry.ts';
import type { BlobSource, OpenBlob } from './blob-source.ts';
import type { Descriptor } from './descriptor.ts';
import { joinAnswers, restate, type SourceAnswer } from './source-answers.ts';

/** A run of a blob's bytes, not yet verified. */
export type BlobChunk = {
  /** Of the first byte, in the blob. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly source: BlobSource;
};

export type ReadBlobOptions = {
  /** Byte to start at. */
  readonly offset: number;
  readonly signal: AbortSignal;
  /** What sources answered before, wrong bytes for one: part of the error when no source is left. */
  readonly answers?: readonly SourceAnswer[];
  /**
   * Of a small document: milliseconds after which a body is cut. Its bytes do not give a source more time
   * for further attempts, so that a byte now and then does not keep the reader for ever.
   */
  readonly bodyTime?: number;
};

/**
 * Reads a blob from `offset` to its end, from the first source that has it to the last.
 *
 * A body that breaks off is continued where it stopped. A source that cannot start there starts at
 * byte 0 again, and so does the next source after one that had too many bytes: a chunk whose offset
 * is not the end of the one before tells the reader to start its hash again. The bytes are not
 * verified, but never more than the descriptor's size.
 *
 * @throws when no source is left: an error that names the blob and what each source answered, with
 * the code of the worst (`findWorst`): IntegrityError `blob.too-long`, `blob.too-short`; RegistryError
 * `blob.unknown` and those of the client; the signal's reason
 */
export async function* readBlob(
  sources: readonly BlobSource[],
  blob: Descriptor,
  options: ReadBlobOptions,
): AsyncGenerator<BlobChunk> {
  const opener = createOpener(sources, blob, options);
  let offset = options.offset;
  while (offset < blob.size) {
    const { source, body, offset: start } = await opener.open(offset);
    offset = start;
    const timer = options.bodyTime === undefined ? undefined : limitTime(body, options.bodyTime);
    try {
      for await (const piece of addAbortSignal(options.signal, body)) {
        const bytes = piece as Uint8Array;
        if (offset + bytes.length > blob.size) throw tooLong(blob, source);
        offset += bytes.length;
        yield { offset: offset - bytes.length, bytes, source };
        opener.progress(offset); // what the reader did with it in the meantime took its own time
      }
    } catch (error) {
      if (await opener.giveWay(error, offset)) offset = 0;
      continue;
    } finally {
      timer?.stop();
    }
    if (offset < blob.size) await opener.giveWay(tooShort(blob, source, offset), offset);
  }
}

type Opener = {
  open: (offset: number) => Promise<OpenBlob & { readonly source: BlobSource }>;
  /** So many bytes of the blob are here. */
  progress: (size: number) => void;
  /**
   * Waits where the same source gets another connection, or goes on to the next source. True when
   * what the source sent cannot be built on.
   */
  giveWay: (error: unknown, offset: number) => Promise<boolean>;
};

type SourceFailure = { readonly source: BlobSource; readonly error: unknown };

function createOpener(
  sources: readonly BlobSource[],
  blob: Descriptor,
  options: ReadBlobOptions,
): Opener {
  const { signal } = options;
  const failures: SourceFailure[] = [];
  let index = 0;
  let budget = sources[0]?.openBudget?.(signal);
  let furthest = options.offset;
  let shortAt: number | undefined;

  const next = (source: BlobSource, error: unknown): void => {
    failures.push({ source, error });
    index += 1;
    budget = sources[index]?.openBudget?.(signal);
    shortAt = undefined;
  };
  /** A body that ends well before its time is cut, unless it ends there twice. */
  const isFinal = (cause: unknown, offset: number): boolean => {
    const last = shortAt;
    shortAt = isShort(cause) ? offset : undefined;
    return isShort(cause) ? last === offset : !(cause instanceof TransientError);
  };
  return {
    async open(offset) {
      for (let source = sources[index]; source; source = sources[index]) {
        try {
          const opened = await source.open(blob, { offset, signal, ...(budget && { budget }) });
          if (opened) return { ...opened, source };
          next(source, unknown(source));
        } catch (error) {
          signal.throwIfAborted();
          next(source, error);
        }
      }
      throw summarise(blob, failures, options.answers);
    },
    progress(size) {
      if (size <= furthest) return;
      furthest = size;
      if (options.bodyTime === undefined) budget?.progress();
    },
    async giveWay(error, offset) {
      signal.throwIfAborted();
      const source = sources[index];
      if (!source) throw error;
      const cause = explainNetworkFailure(source.name, error);
      try {
        if (isFinal(cause, offset)) throw cause;
        await pauseAfter(cause, budget);
        return false;
      } catch (spent) {
        signal.throwIfAborted();
        next(source, isShort(cause) ? cause : spent);
        return !isCut(cause);
      }
    },
  };
}

/** @throws where the source gives no time for another attempt, or has given it */
async function pauseAfter(cause: unknown, budget: Budget | undefined): Promise<void> {
  if (!budget) throw cause;
  const isOurs = cause instanceof TransientError;
  await budget.pause(isOurs ? cause : new TransientError('blob.too-short', String(cause)));
}

/** What came before it can be built on; not so after wrong bytes and errors of a disk. */
const isCut = (error: unknown): boolean => error instanceof TransientError || isShort(error);

const isShort = (error: unknown): boolean =>
  error instanceof IntegrityError && error.code === 'blob.too-short';

/** A bug is thrown as it is. */
function summarise(
  blob: Descriptor,
  failures: readonly SourceFailure[],
  earlier: readonly SourceAnswer[] = [],
): unknown {
  const answers = [...earlier];
  for (const { source, error } of failures) {
    if (!(error instanceof SealiftError)) return error;
    answers.push({ source: source.name, error });
  }
  return nameBlob(blob, answers);
}

/** What the sources of a blob answered, as one error that names the blob. */
export function nameBlob(
  { digest, size }: Descriptor,
  answers: readonly SourceAnswer[],
): SealiftError {
  const subject = `blob ${digest} (${size} bytes)`;
  if (answers.length === 0) return new RegistryError('blob.unknown', `${subject} has no sources`);
  const joined = joinAnswers(answers);
  return restate(joined, `${subject} cannot be fetched: ${joined.message}`);
}

const unknown = (source: BlobSource): RegistryError =>
  new RegistryError('blob.unknown', `${source.name} does not have it`);

const tooLong = ({ digest, size }: Descriptor, source: BlobSource): IntegrityError =>
  new IntegrityError(
    'blob.too-long',
    `blob ${digest} should be ${size} bytes, but ${source.name} sends more than ${size}`,
    { expected: String(size), found: `more than ${size}` },
  );

const tooShort = ({ digest, size }: Descriptor, source: BlobSource, sent: number): IntegrityError =>
  new IntegrityError(
    'blob.too-short',
    `blob ${digest} should be ${size} bytes, but ${source.name} ends after ${sent}`,
    { expected: String(size), found: String(sent) },
  );
