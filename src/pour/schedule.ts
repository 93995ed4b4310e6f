import type { Reused, Waiting, PourSpan } from './spans.ts';
import type { Journal } from './journal.ts';

/** A span to pour, and the part of it that an earlier run left. */
export type Task = {
  readonly index: number;
  readonly span: PourSpan;
  readonly reused: Reused | undefined;
  readonly waiting: Waiting;
};

/** The state from which the next step of a pour is chosen. The loop changes it; `next` only reads it. */
export type PourState = {
  /** Spans with missing bytes, in the order of the ISO. */
  readonly missing: Task[];
  /** Spans that an earlier run left whole: they are checked. */
  readonly standing: Task[];
  readonly running: Set<Task>;
  /** Verified spans that are not yet `done` in the journal. */
  readonly verified: number[];
  /** True while verified spans are being synced and noted. */
  isCommitting: boolean;
  /** The end of the last commit, in milliseconds. */
  committedAt: number;
  /** True if the digest of the whole ISO is known. */
  isDigested: boolean;
  /** The reason why the pour ends early: the first failure, or the signal's reason. */
  failure: { readonly reason: unknown } | undefined;
};

export type PourStep =
  | { readonly kind: 'pour'; readonly task: Task }
  /** Sync the output and note the verified spans as done: one sync for many. */
  | { readonly kind: 'commit' }
  /** Until a lane, a commit or the digest ends, the pour is stopped, or the clock ticks. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'end' };

/** Verified extents become `done` in the journal after a common sync, at least this often. */
const COMMIT_INTERVAL_MS = 3000;

/** The first state: spans in the order of the ISO, so that the digest of the whole follows closely. */
export function beginPour(
  spans: readonly PourSpan[],
  {
    journal,
    recorded = NONE,
  }: { readonly journal: Journal; readonly recorded?: ReadonlySet<number> },
  now: number,
): PourState {
  const all = spans.map((span, index): Task => {
    return { index, span, reused: reusedOf(span, index, journal), waiting: { since: undefined } };
  });
  const tasks = all.filter(({ index }) => !recorded.has(index));
  return {
    missing: tasks.filter((task) => !isStanding(task)),
    standing: tasks.filter(isStanding),
    running: new Set(),
    verified: [],
    isCommitting: false,
    committedAt: now,
    isDigested: false,
    failure: undefined,
  };
}

const NONE: ReadonlySet<number> = new Set();

/**
 * The table of a pour's states.
 *
 *     failed     lanes or a commit still end    wait
 *                nothing runs                   end
 *     else       a span left, a lane allowed    pour it
 *                verified, and it is time       commit
 *                anything runs or is left       wait
 *                the digest is not known yet    wait
 *                                               end
 *
 * @param lanes number of lanes that may pour now, at least 1
 * @param now milliseconds on the clock of `committedAt`
 */
export function next(state: PourState, lanes: number, now: number): PourStep {
  const isBusy = state.running.size > 0 || state.isCommitting;
  if (state.failure) return isBusy ? WAIT : END;
  if (state.running.size < lanes) {
    const task = chooseTask(state);
    if (task) return { kind: 'pour', task };
  }
  if (isTimeToCommit(state, now)) return { kind: 'commit' };
  return isBusy || hasTasks(state) || !state.isDigested ? WAIT : END;
}

/**
 * Lanes whose sources have sent nothing for a second. They cost no processor time, so others may pour
 * in their place: one source that hangs does not hold up the rest.
 */
export const countStalled = ({ running }: PourState, now: number): number =>
  [...running].filter(({ waiting: { since = now } }) => now - since > STALLED_MS).length;

const STALLED_MS = 1000;

const WAIT: PourStep = { kind: 'wait' };
const END: PourStep = { kind: 'end' };

/** After a kill, one lane checks existing bytes while the others fetch missing ones. */
function chooseTask({ missing, standing, running }: PourState): Task | undefined {
  const [first] = standing;
  const [gap] = missing;
  const isChecking = [...running].some(isStanding);
  if (first && !isChecking && first.index < (gap?.index ?? Infinity)) return first;
  return gap ?? first;
}

function isTimeToCommit(state: PourState, now: number): boolean {
  if (state.verified.length === 0 || state.isCommitting) return false;
  const isLast = state.running.size === 0 && !hasTasks(state);
  return isLast || now - state.committedAt >= COMMIT_INTERVAL_MS;
}

const hasTasks = ({ missing, standing }: PourState): boolean =>
  missing.length + standing.length > 0;

/** True if an earlier run left all of the span. */
export const isStanding = ({ span, reused }: Task): boolean => reused?.size === span.size;

function reusedOf(span: PourSpan, index: number, journal: Journal): Reused | undefined {
  const progress = journal.achieved.get(index);
  if (span.kind === 'rendered' || !progress) return undefined;
  if (progress.kind === 'done') return { size: span.size, digest: span.digest };
  return progress.size <= span.size ? progress : undefined;
}
