import type { IntegrityError } from '../errors.ts';
import { TransientError } from '../http/network-failure.ts';
import type { Budget } from '../retry.ts';
import type { Attempt, Source, SourceAnswer, Wrong } from './sources.ts';

/** Attempts for a source without a pause: bytes that were damaged on their way may be right then. */
const ROUNDS = 2;

/**
 * Brings one object in, verified. All sources that gave some of the wrong bytes are suspects: they are asked
 * again after all others, each alone from byte 0, as long as their budget lasts and their bytes are wrong in
 * another way each time: the same wrong bytes twice are those that the source has. If an attempt was built on
 * bytes that an earlier run left, those are dropped, and the sources are not blamed.
 *
 * @param bring returns undefined if the bytes are right; throws if no source is left
 * @throws errors of `bring`; the signal's reason
 */
export async function bringVerified(
  bring: (attempt: Attempt) => Promise<Wrong | undefined>,
  signal: AbortSignal,
): Promise<void> {
  const suspects = new Map<Source, Suspect>();
  const answers = new Map<string, SourceAnswer>();
  const rank: Attempt['rank'] = (sources) =>
    sources
      .filter((source) => suspects.get(source)?.isSpent !== true)
      .toSorted((a, b) => (suspects.get(a)?.times ?? 0) - (suspects.get(b)?.times ?? 0));
  const isSuspect = (source: Source): boolean => suspects.has(source);
  for (let usePrefix = true; ; usePrefix = false) {
    const wrong = await bring({ usePrefix, rank, isSuspect, answers: [...answers.values()] });
    if (!wrong) return;
    if (wrong.hasPrefix) continue;
    if (wrong.used.size === 0) throw wrong.error; // an object of no bytes has one digest
    for (const source of wrong.used) {
      const suspect = suspects.get(source) ?? createSuspect(source, signal);
      suspects.set(source, suspect);
      await blame(suspect, wrong.error, signal);
      answers.set(source.name, { source: source.name, error: wrong.error });
    }
  }
}

/** A source that gave wrong bytes. */
type Suspect = {
  times: number;
  /** Digests of the wrong bytes that it gave. */
  readonly found: Set<string | undefined>;
  /** Begins with the first wrong bytes; bytes that are wrong again give no more time. */
  readonly budget: Budget | undefined;
  isSpent: boolean;
};

const createSuspect = (source: Source, signal: AbortSignal): Suspect => ({
  times: 0,
  found: new Set(),
  budget: source.openBudget?.(signal),
  isSpent: false,
});

/** Decides whether a source is asked again, and waits for that if it was asked again already. */
async function blame(suspect: Suspect, error: IntegrityError, signal: AbortSignal): Promise<void> {
  const { budget, found } = suspect;
  suspect.times += 1;
  const isSame = found.has(error.found);
  found.add(error.found);
  if (suspect.times < ROUNDS) return;
  suspect.isSpent = isSame || budget === undefined;
  if (isSame || budget === undefined) return;
  try {
    await budget.pause(new TransientError(error.code, error.message, { answered: true }));
  } catch {
    signal.throwIfAborted();
    suspect.isSpent = true;
  }
}
