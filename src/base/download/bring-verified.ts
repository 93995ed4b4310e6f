import type { IntegrityError } from '../errors.ts';
import type { Source, SourceAnswer } from './source.ts';

/** What an attempt may use. */
export type Attempt = {
  /** Whether it may build on the bytes that an earlier run left. */
  readonly usePrefix: boolean;
  /**
   * Those of an object's sources that may be asked, in order: who gave wrong bytes comes last, and is not
   * asked after a second time.
   */
  readonly rank: <S extends Source>(sources: readonly S[]) => S[];
  /** Whether it gave wrong bytes, or some of them: its bytes are not mixed with those of others. */
  readonly isSuspect: (source: Source) => boolean;
  /** What those that gave wrong bytes gave; part of the error where no source is left. */
  readonly answers: readonly SourceAnswer[];
};

/** An attempt brought bytes of another digest. */
export type Wrong = {
  readonly error: IntegrityError;
  /** All whose bytes are among them. */
  readonly used: ReadonlySet<Source>;
  /** Whether bytes of an earlier run are among them. */
  readonly hasPrefix: boolean;
};

/** Bytes that were spoiled on their way come right the second time. */
const ROUNDS = 2;

/**
 * Brings one object in, verified. All whose bytes are among wrong ones are suspects: they are asked after
 * all others, once more, each by itself from byte 0. Where an attempt was built on what an earlier run left,
 * that is dropped, and the sources are innocent.
 *
 * @param bring undefined where the bytes are right; throws where no source is left
 * @throws what `bring` throws
 */
export async function bringVerified(
  bring: (attempt: Attempt) => Promise<Wrong | undefined>,
): Promise<void> {
  const times = new Map<Source, number>();
  const answers = new Map<string, SourceAnswer>();
  const rank: Attempt['rank'] = (sources) =>
    Array.from({ length: ROUNDS }, (_, round) =>
      sources.filter((source) => (times.get(source) ?? 0) === round),
    ).flat();
  const isSuspect = (source: Source): boolean => times.has(source);
  for (let usePrefix = true; ; usePrefix = false) {
    const wrong = await bring({ usePrefix, rank, isSuspect, answers: [...answers.values()] });
    if (!wrong) return;
    if (wrong.hasPrefix) continue;
    if (wrong.used.size === 0) throw wrong.error; // an object of no bytes has one digest
    for (const source of wrong.used) {
      times.set(source, (times.get(source) ?? 0) + 1);
      answers.set(source.name, { source: source.name, error: wrong.error });
    }
  }
}
