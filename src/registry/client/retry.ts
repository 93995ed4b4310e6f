import { setTimeout as sleep } from 'node:timers/promises';
import { TransientError } from './failure.ts';

/** A request to `host` is made again after `waitMs` milliseconds. */
type RetryEvent = {
  readonly host: string;
  readonly reason: string;
  readonly waitMs: number;
};

/** What waits and what draws lots: real by default, given by tests. */
export type Pacing = {
  /** From 0 to below 1. */
  readonly random?: () => number;
  readonly wait?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly onRetry?: (event: RetryEvent) => void;
};

const MAX_ATTEMPTS = 6;
const BASE_WAIT = 500;
const LIMITED_BASE_WAIT = 2000;
const MAX_WAIT = 60_000;
/** A server that names a longer pause than this is asked again after this. */
const MAX_RETRY_AFTER = 300_000;

/**
 * Makes an attempt until it succeeds, at most six times; only a TransientError is tried again.
 * Between attempts: what Retry-After says plus up to a second, else full jitter, that is a random
 * time up to a bound that doubles from 0.5 s (from 2 s after a 429) to 60 s.
 */
export async function retry<Result>(
  attempt: () => Promise<Result>,
  options: Pacing & { readonly host: string; readonly signal: AbortSignal },
): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      options.signal.throwIfAborted();
      if (!(error instanceof TransientError) || failures === MAX_ATTEMPTS) throw error;
      await pause(options, {
        reason: error.message,
        waitMs: waitAfter(error, failures, options.random ?? Math.random),
      });
    }
  }
}

/** Tells who listens, then waits; rejects with the signal's reason. */
export async function pause(
  { host, signal, wait = defaultWait, onRetry }: Pacing & { host: string; signal: AbortSignal },
  { reason, waitMs }: { readonly reason: string; readonly waitMs: number },
): Promise<void> {
  onRetry?.({ host, reason, waitMs });
  try {
    await wait(waitMs, signal);
  } finally {
    signal.throwIfAborted();
  }
}

/** Milliseconds up to which the n-th pause may last. */
export const boundOf = (failures: number, base = BASE_WAIT): number =>
  Math.min(MAX_WAIT, base * 2 ** (failures - 1));

function waitAfter(error: TransientError, failures: number, random: () => number): number {
  if (error.retryAfter !== undefined) {
    return Math.min(MAX_RETRY_AFTER, error.retryAfter) + Math.round(random() * 1000);
  }
  return Math.round(random() * boundOf(failures, error.limited ? LIMITED_BASE_WAIT : BASE_WAIT));
}

/** RFC 9110 10.2.3: seconds or an HTTP date. Milliseconds from `now`; undefined where it is neither. */
export function parseRetryAfter(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(text)) return Number(text) * 1000;
  const date = /[a-z]/i.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

const defaultWait = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  sleep(milliseconds, undefined, { signal });
