import { TransientError } from './http/network-failure.ts';
import { withoutUndefined } from './lists.ts';
import { formatDuration } from './text/words.ts';
import { createRunningClock, sleep } from './wait.ts';

/** The source of waiting and of random numbers: real by default, given by tests. */
export type Clock = {
  /** Milliseconds that never go back; by default the time that this process ran. */
  readonly now: () => number;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  /** Rejects with the signal's reason. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
};

export type RetryEvent =
  /** A request to `host` is made again after `waitMs`. */
  | {
      readonly type: 'retry';
      readonly host: string;
      readonly reason: string;
      readonly waitMs: number;
    }
  /** Nothing has come for `waitedMs`; after `retryForMs` the host is given up on. Once a minute at most. */
  | {
      readonly type: 'retry-waiting';
      readonly host: string;
      readonly reason: string;
      readonly waitedMs: number;
      readonly retryForMs: number;
    }
  /** The host that was waited for answers again. */
  | { readonly type: 'retry-over'; readonly host: string; readonly waitedMs: number };

export type RetryOptions = {
  /** Milliseconds without a byte after which a host that has answered is given up on. */
  readonly retryFor?: number;
  /** Milliseconds that a host may take for its first answer of the run. */
  readonly firstAnswer?: number;
  readonly clock?: Clock;
  readonly onEvent?: (event: RetryEvent) => void;
};

/** The attempts that are left for one piece of work: one blob, one manifest, one file. */
export type Budget = {
  /** Reports a byte that was not here before: the time begins again. */
  readonly progress: () => void;
  /** Time spent here, waiting for other work of this process, does not count. */
  readonly uncounted: <Result>(work: Promise<Result>) => Promise<Result>;
  /**
   * Waits until the next attempt.
   *
   * @throws the error if another attempt cannot help, or the time is up; the signal's reason
   */
  readonly pause: (error: unknown) => Promise<void>;
};

/** The one mechanism for retries. It knows which hosts have answered, so each run has one. */
export type Retries = {
  readonly open: (host: string, signal: AbortSignal) => Budget;
  /** Makes an attempt until it succeeds or its budget is spent. */
  readonly run: <Result>(
    work: { readonly host: string; readonly signal: AbortSignal; readonly budget?: Budget },
    attempt: (budget: Budget) => Promise<Result>,
  ) => Promise<Result>;
  /** Notes that a host is asked; returns the milliseconds that it gets to answer. */
  readonly ask: (host: string) => number;
  /** Notes that a host answered; `isWell` unless it only asked for patience. */
  readonly noteAnswer: (host: string, isWell: boolean) => void;
};

/** Milliseconds that a host which has answered, or another build, is waited for. */
export const DEFAULT_RETRY_FOR = 10 * 60_000;

const FIRST_ANSWER = 30_000;
const BASE_WAIT = 500;
const LIMITED_BASE_WAIT = 2000;
const MAX_WAIT = 30_000;
/** If less than this is left, the next attempt would come too late. */
const LAST_TRY = 1000;
/** Milliseconds for one more look at a host that has never answered and was given up on. */
const SECOND_LOOK = 5000;
const REPORT_INTERVAL = 60_000;

/** Milliseconds that this process ran. */
export const RUNNING_CLOCK = createRunningClock(() => performance.now());

const SYSTEM_CLOCK: Clock = {
  now: RUNNING_CLOCK,
  random: () => Math.random(),
  sleep,
};

type HostState = {
  readonly host: string;
  askedAt?: number;
  answered: boolean;
  /** The time since which the host gave only failures. */
  failingSince?: number;
  reportedAt?: number;
  isReported: boolean;
};

/**
 * Only a TransientError is tried again. A host that has not yet answered in this run gets 30 s
 * from when it was first asked, for all requests to it; a host that has answered gets ten minutes
 * without a byte. Between attempts there is full jitter: a random time up to a bound that doubles
 * from 0.5 s (from 2 s after a 429) to 30 s; or the time given by Retry-After plus up to a second.
 */
export function createRetries(options: RetryOptions = {}): Retries {
  const { retryFor = DEFAULT_RETRY_FOR, firstAnswer = FIRST_ANSWER } = options;
  const { clock = SYSTEM_CLOCK, onEvent = () => undefined } = options;
  const hosts = new Map<string, HostState>();
  const stateOf = (host: string): HostState => {
    const known = hosts.get(host) ?? { host, answered: false, isReported: false };
    hosts.set(host, known);
    return known;
  };
  const parts = { stateOf, clock, onEvent, retryFor, firstAnswer };
  const open = (host: string, signal: AbortSignal): Budget => openBudget({ host, signal, parts });
  return {
    open,
    async run({ host, signal, budget = open(host, signal) }, attempt) {
      for (;;) {
        try {
          const result = await attempt(budget);
          noteLife(stateOf(host), parts);
          return result;
        } catch (error) {
          await budget.pause(error);
        }
      }
    },
    ask(host) {
      const state = stateOf(host);
      state.askedAt ??= clock.now();
      // An answer that takes longer would come when no caller waits for it any longer.
      if (state.answered) return retryFor > 0 ? Math.max(LAST_TRY, retryFor) : Infinity;
      return Math.max(
        Math.min(SECOND_LOOK, firstAnswer),
        state.askedAt + firstAnswer - clock.now(),
      );
    },
    noteAnswer(host, isWell) {
      const state = stateOf(host);
      state.answered = true;
      if (isWell) noteLife(state, parts);
    },
  };
}

type Parts = Required<RetryOptions> & { readonly stateOf: (host: string) => HostState };

function openBudget(wanted: {
  readonly host: string;
  readonly signal: AbortSignal;
  readonly parts: Parts;
}): Budget {
  const { host, signal, parts } = wanted;
  const { clock, stateOf } = parts;
  const own = stateOf(host);
  let since = clock.now();
  let failures = 0;
  return {
    progress() {
      since = clock.now();
      failures = 0;
      noteLife(own, parts);
    },
    async uncounted(work) {
      const start = clock.now();
      try {
        return await work;
      } finally {
        since += clock.now() - start;
      }
    },
    async pause(error) {
      signal.throwIfAborted();
      if (!(error instanceof TransientError)) throw error;
      failures += 1;
      const state = stateOf(error.host ?? host);
      const failing = noteFailure(state, { since, hasAnswered: error.answered }, parts);
      const waitMs = chooseWait(error, { failures, ...failing }, clock);
      if (waitMs === undefined) throw giveUp(error, failing);
      report(state, { reason: error.message, waitMs, ...failing }, parts);
      await clock.sleep(waitMs, signal);
    },
  };
}

type Failing = {
  /** Milliseconds since the last byte, or since the host was first asked. */
  readonly waitedMs: number;
  readonly retryForMs: number;
};

function noteFailure(
  state: HostState,
  { since, hasAnswered }: { readonly since: number; readonly hasAnswered: boolean },
  { clock, retryFor, firstAnswer }: Parts,
): Failing {
  const now = clock.now();
  state.answered ||= hasAnswered;
  state.failingSince ??= now;
  const isKnown = state.answered;
  const start = isKnown ? Math.min(since, state.failingSince) : (state.askedAt ?? since);
  return {
    waitedMs: now - start,
    retryForMs: isKnown ? retryFor : Math.min(retryFor, firstAnswer),
  };
}

/** Milliseconds; undefined if there is nothing left to wait for. */
function chooseWait(
  { retryAfter, limited }: TransientError,
  { failures, waitedMs, retryForMs }: Failing & { readonly failures: number },
  { random }: Clock,
): number | undefined {
  const left = retryForMs - waitedMs;
  if (left < LAST_TRY || (retryAfter ?? 0) > left) return undefined;
  if (retryAfter !== undefined) return Math.min(left, retryAfter + Math.round(random() * 1000));
  const bound = Math.min(MAX_WAIT, (limited ? LIMITED_BASE_WAIT : BASE_WAIT) * 2 ** (failures - 1));
  return Math.round(Math.min(random() * bound, left - LAST_TRY / 2));
}

/** The same failure, with the time spent waiting for it. */
function giveUp(error: TransientError, { waitedMs, retryForMs }: Failing): TransientError {
  const { code, message, found, expected, retryAfter, host, answered, limited } = error;
  const left = Math.max(0, retryForMs - waitedMs);
  const isAskingTooMuch = retryAfter !== undefined && retryAfter > left;
  if (!isAskingTooMuch && waitedMs < LAST_TRY) return error;
  const why = isAskingTooMuch
    ? `it asks for a pause of ${formatDuration(retryAfter)}, but only ${formatDuration(left)} are left`
    : `given up after ${formatDuration(waitedMs)} without ${answered ? 'success' : 'a byte'}`;
  const hint = isAskingTooMuch ? 'give more time with --retry-for, or run again later' : error.hint;
  return new TransientError(code, `${message}; ${why}`, {
    host,
    answered,
    limited,
    retryAfter,
    cause: error.cause,
    ...withoutUndefined({ found, expected, hint }),
  });
}

function report(
  state: HostState,
  waiting: Failing & { readonly reason: string; readonly waitMs: number },
  { clock, onEvent }: Parts,
): void {
  const { host } = state;
  const { reason, waitMs, waitedMs, retryForMs } = waiting;
  onEvent({ type: 'retry', host, reason, waitMs });
  const now = clock.now();
  if (now - (state.reportedAt ?? -Infinity) < REPORT_INTERVAL) return;
  state.reportedAt = now;
  state.isReported = true;
  onEvent({ type: 'retry-waiting', host, reason, waitedMs: Math.round(waitedMs), retryForMs });
}

function noteLife(state: HostState, { clock, onEvent }: Parts): void {
  if (state.failingSince === undefined) return;
  const waitedMs = Math.round(clock.now() - state.failingSince);
  delete state.failingSince;
  if (!state.isReported) return;
  state.isReported = false;
  onEvent({ type: 'retry-over', host: state.host, waitedMs });
}

/** RFC 9110 10.2.3: seconds or an HTTP date. Milliseconds from `now`; undefined if it is neither. */
export function parseRetryAfter(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(text)) return Number(text) * 1000;
  const date = /[a-z]/i.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
