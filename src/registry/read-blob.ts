import { IntegrityError, RegistryError, SealiftError } from '../base/errors.ts';
import type { BlobSource, OpenBlob } from './blob-source.ts';
import { explainNetworkFailure, TransientError } from './client/failure.ts';
import { boundOf, pause, type Pacing } from './client/retry.ts';
import type { Descriptor } from './descriptor.ts';
import { joinAnswers, restate, type SourceAnswer } from './source-answers.ts';

/** A run of a blob's bytes, not yet verified. */
export type BlobChunk = {
  /** Of the first byte, in the blob. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly source: BlobSource;
};

export type ReadBlobOptions = Pacing & {
  /** Byte to start at. */
  readonly offset: number;
  readonly signal: AbortSignal;
  /** What sources answered before, wrong bytes for one: part of the error when no source is left. */
  readonly answers?: readonly SourceAnswer[];
};

/** A connection that brought this many bytes has earned another one (as containers/image has it). */
const PROGRESS = 1024 * 1024;

/** Connections in a row that may break before they brought PROGRESS bytes. */
const MAX_BREAKS = 5;

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
    try {
      for await (const piece of body) {
        const bytes = piece as Uint8Array;
        if (offset + bytes.length > blob.size) throw tooLong(blob, source);
        yield { offset, bytes, source };
        offset += bytes.length;
      }
    } catch (error) {
      if (await opener.giveWay(error, offset)) offset = 0;
      continue;
    }
    if (offset < blob.size) await opener.giveWay(tooShort(blob, source, offset), offset);
  }
}

type Opener = {
  open: (offset: number) => Promise<OpenBlob & { readonly source: BlobSource }>;
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
  const { signal, random = Math.random } = options;
  const failures: SourceFailure[] = [];
  let index = 0;
  let breaks = 0;
  let openedAt = 0;

  const next = (source: BlobSource, error: unknown): void => {
    failures.push({ source, error });
    index += 1;
    breaks = 0;
  };
  return {
    async open(offset) {
      for (let source = sources[index]; source; source = sources[index]) {
        try {
          const opened = await source.open(blob, { offset, signal });
          if (opened) {
            openedAt = opened.offset;
            return { ...opened, source };
          }
          next(source, unknown(source));
        } catch (error) {
          signal.throwIfAborted();
          next(source, error);
        }
      }
      throw summarise(blob, failures, options.answers);
    },
    async giveWay(error, offset) {
      signal.throwIfAborted();
      const source = sources[index];
      if (!source) throw error;
      const cause = explainNetworkFailure(source.name, error);
      if (isForGood(cause)) {
        next(source, cause);
        return !isCut(cause);
      }
      breaks = offset - openedAt >= PROGRESS ? 1 : breaks + 1;
      if (breaks > MAX_BREAKS) {
        next(source, cause);
        return false;
      }
      const waitMs = Math.round(random() * boundOf(breaks));
      const reason = cause instanceof Error ? cause.message : String(cause);
      await pause({ ...options, host: source.name, signal }, { reason, waitMs });
      return false;
    },
  };
}

const isCut = (error: unknown): boolean =>
  error instanceof TransientError ||
  (error instanceof IntegrityError && error.code === 'blob.too-short');

/** Cut and short bodies are worth another connection; wrong ones and errors of a disk are not. */
const isForGood = (error: unknown): boolean => !isCut(error);

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
