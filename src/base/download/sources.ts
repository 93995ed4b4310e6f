import { type Readable, addAbortSignal } from 'node:stream';
import { SealiftError, type IntegrityError } from '../errors.ts';
import { limitTime } from '../http/body.ts';
import { explainNetworkFailure, TransientError } from '../http/network-failure.ts';
import type { Budget } from '../retry.ts';

/* Owns the order and the retries of several sources of one object; the bytes are verified by the caller. */

/** A source of bytes. Two repositories of one host have one name: identity tells them apart. */
export type Source = {
  /** Name for the report and errors, never a secret: `cache`, `quay.io`. */
  readonly name: string;
  /** Local sources cost no network; their bytes count as reused. */
  readonly local: boolean;
  /** Budget for retries while reading one object; absent: no retries. */
  readonly openBudget?: (signal: AbortSignal) => Budget;
};

/** The reason why one source did not give an object. */
export type SourceAnswer = {
  /** The host of a registry, or the name of a local source. */
  readonly source: string;
  readonly error: SealiftError;
};

export type OpenOptions = {
  /** Byte of the object to start at. */
  readonly offset: number;
  /** Bytes that are wanted from there; default: all. A source may give more. */
  readonly size?: number;
  readonly signal: AbortSignal;
  /** Budget that the source gave for reading this object. */
  readonly budget?: Budget;
};

/** An open object: its bytes from `offset` on. */
export type OpenBytes = {
  /** The first byte this body holds: the requested one, or 0 if the peer ignored Range. */
  readonly offset: number;
  readonly body: Readable;
  /** Bytes of the whole object, if its size is not known from elsewhere and the source reports it. */
  readonly total?: number | undefined;
};

export type Attempt = {
  /** True if it may build on the bytes that an earlier run left. */
  readonly usePrefix: boolean;
  /**
   * Sources of an object that may be asked, in order: a source that gave wrong bytes comes
   * last, and is not asked again when its budget is spent.
   */
  readonly rank: <S extends Source>(sources: readonly S[]) => S[];
  /** True if it gave wrong bytes, or some of them: its bytes are not mixed with those of others. */
  readonly isSuspect: (source: Source) => boolean;
  /** Answers of the sources that gave wrong bytes; part of the error if no source is left. */
  readonly answers: readonly SourceAnswer[];
};

/** An attempt that brought bytes with another digest. */
export type Wrong = {
  readonly error: IntegrityError;
  /** All sources whose bytes are among them. */
  readonly used: ReadonlySet<Source>;
  /** True if bytes of an earlier run are among them. */
  readonly hasPrefix: boolean;
};

/** A run of an object's bytes, not yet verified. */
export type Chunk<S extends Source> = {
  /** Position of the first byte in the object. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly source: S;
  /** Bytes of the whole object, if its source reports them. */
  readonly total: number | undefined;
};

export type Wanted<S extends Source> = {
  /** Bytes; absent if only the sources know. */
  readonly size?: number;
  /** Most bytes that it has: its size, if that is known. */
  readonly limit: number;
  /** Throws if this source does not have it, or cannot tell. */
  readonly open: (source: S, options: OpenOptions) => Promise<OpenBytes>;
  readonly explainLong: (source: S) => IntegrityError;
  readonly explainShort: (source: S, sent: number) => SealiftError;
  readonly explainAll: (answers: readonly SourceAnswer[]) => SealiftError;
};

export type ReadOptions = {
  readonly offset: number;
  readonly signal: AbortSignal;
  /**
   * Time for a small document: milliseconds after which a body is cut. Its bytes do not give a source more
   * time for further attempts, so that a byte now and then does not keep the reader forever.
   */
  readonly bodyTime?: number;
} & Partial<Pick<Attempt, 'answers' | 'isSuspect'>>;

/**
 * Reads an object from `offset` to its end, from the first source that has it to the last.
 *
 * A body that breaks off is continued at the byte at which it stopped. A source that cannot start
 * there starts at byte 0 again, and so does the next source after one that had too many bytes: a
 * chunk whose offset is not the end of the one before tells the reader to start its hash again.
 * The bytes are not verified, but never more than the limit.
 */
export async function* readSources<S extends Source>(
  sources: readonly S[],
  wanted: Wanted<S>,
  options: ReadOptions,
): AsyncGenerator<Chunk<S>> {
  const opener = createOpener(sources, wanted, options);
  let { size } = wanted;
  let { offset } = options;
  while (size === undefined || offset < size) {
    const { source, body, offset: start, total } = await opener.open(offset);
    size = total;
    offset = start;
    const stopTimer = limitBody(body, options.bodyTime);
    try {
      for await (const piece of addAbortSignal(options.signal, body)) {
        const bytes = piece as Uint8Array;
        if (offset + bytes.length > wanted.limit) throw wanted.explainLong(source);
        offset += bytes.length;
        yield { offset: offset - bytes.length, bytes, source, total };
        opener.progress(offset); // the time that the reader spent on it meanwhile is its own
      }
    } catch (error) {
      if (await opener.giveWay({ error, offset })) offset = 0;
      continue;
    } finally {
      stopTimer();
    }
    size ??= offset; // no source reported the size: it ends here
    if (offset < size) await opener.giveWay({ offset });
    else if (size === 0) yield { offset, bytes: new Uint8Array(), source, total }; // the bytes before do not count
  }
}

function limitBody(body: Readable, bodyTime: number | undefined): () => void {
  return bodyTime === undefined ? () => undefined : limitTime(body, bodyTime).stop;
}

/** The end of a body before the object's end; without an error it ended well, but too early. */
type BodyEnd = { readonly offset: number; readonly error?: unknown };

type SourceFailure = { readonly source: Source; readonly error: unknown };

function createOpener<S extends Source>(
  sources: readonly S[],
  wanted: Wanted<S>,
  options: ReadOptions,
) {
  const { signal, isSuspect = () => false } = options;
  const failures: SourceFailure[] = [];
  let index = 0;
  let budget = sources[0]?.openBudget?.(signal);
  let furthest = options.offset;
  let shortAt: number | undefined;
  let last: S | undefined;

  const next = (source: S, error: unknown): void => {
    failures.push({ source, error });
    index += 1;
    budget = sources[index]?.openBudget?.(signal);
    shortAt = undefined;
  };
  return {
    /** Continues after so many bytes, or starts over. */
    async open(end: number): Promise<OpenBytes & { readonly source: S }> {
      for (let source = sources[index]; source; source = sources[index]) {
        const isMixed = last && last !== source && (isSuspect(last) || isSuspect(source));
        const offset = isMixed ? 0 : end;
        try {
          const opened = await wanted.open(source, { offset, signal, ...(budget && { budget }) });
          last = source;
          return { ...opened, total: wanted.size ?? opened.total, source };
        } catch (error) {
          signal.throwIfAborted();
          next(source, error);
        }
      }
      throw summarise(wanted, failures, options.answers);
    },
    /** Notes that so many bytes of the object are here. */
    progress(size: number): void {
      if (size <= furthest) return;
      furthest = size;
      if (options.bodyTime === undefined) budget?.progress();
    },
    /** Waits for another connection, or moves on to the next source: true if it cannot build on this one. */
    async giveWay(end: BodyEnd): Promise<boolean> {
      signal.throwIfAborted();
      const source = sources[index];
      if (!source) throw end.error;
      const { cause, isShort, isCut } = explainEnd(wanted, source, end);
      // A body that ends well before its time is cut, unless it ends there twice.
      const isFinal = !isCut || (isShort && shortAt === end.offset);
      shortAt = isShort ? end.offset : undefined;
      try {
        if (isFinal || !budget) throw cause;
        await budget.pause(
          isShort ? new TransientError('registry.unreachable', String(cause)) : cause,
        );
        return false;
      } catch (spent) {
        signal.throwIfAborted();
        next(source, isShort ? cause : spent);
        return !isCut;
      }
    },
  };
}

/** `isCut`: the bytes so far can be built on, except after wrong bytes and errors of a disk. */
function explainEnd<S extends Source>(wanted: Wanted<S>, source: S, end: BodyEnd) {
  const isShort = !('error' in end);
  const cause = isShort
    ? wanted.explainShort(source, end.offset)
    : explainNetworkFailure(source.name, end.error);
  return { cause, isShort, isCut: isShort || cause instanceof TransientError };
}

/** One error for all failures; a bug is returned as it is. */
function summarise<S extends Source>(
  wanted: Wanted<S>,
  failures: readonly SourceFailure[],
  earlier: readonly SourceAnswer[] = [],
): unknown {
  const answers = [...earlier];
  for (const { source, error } of failures) {
    if (!(error instanceof SealiftError)) return error;
    answers.push({ source: source.name, error });
  }
  return wanted.explainAll(answers);
}
