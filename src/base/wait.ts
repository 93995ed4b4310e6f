import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { formatDuration } from './text/words.ts';

/**
 * The waits of the program: each ends with its signal. Nothing else in `src/` sleeps or waits for
 * something that does not know the signal itself (eslint.config.js refuses it).
 */

/** @throws the signal's reason, as soon as it is aborted */
export async function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(milliseconds, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/**
 * Waits for work that may not look at the signal. The work continues when the signal ends the wait:
 * its later result is not used, and its failure is not reported.
 *
 * @throws the signal's reason, as soon as it is aborted
 */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => undefined); // after an abort there is no other listener
  return waitFor<T>(signal, (resolve, reject) => {
    work.then(resolve, reject);
  });
}

/** Settles with whichever comes first: a call by `start`, or the signal. */
export function waitFor<Value>(
  signal: AbortSignal,
  start: (resolve: (value: Value) => void, reject: (reason: unknown) => void) => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    // One signal ends a whole stage; that hundreds listen to it is not a leak.
    setMaxListeners(0, signal);
    const abort = (): void => {
      reject(signal.reason);
    };
    const settle =
      <Result>(report: (result: Result) => void) =>
      (result: Result): void => {
        signal.removeEventListener('abort', abort);
        report(result);
      };
    signal.addEventListener('abort', abort, { once: true });
    start(settle(resolve), settle(reject));
  });
}

export type Timer = {
  readonly stop: () => void;
  /** Lets the process end without waiting for it. */
  readonly unref: () => void;
};

/** Calls `act` once after so many milliseconds, unless stopped before. */
export function startTimer(milliseconds: number, act: () => void): Timer {
  const timer = setTimeout(act, milliseconds);
  return {
    stop: () => {
      clearTimeout(timer);
    },
    unref: () => {
      timer.unref();
    },
  };
}

/** Milliseconds between two signs that this process runs. */
const BEAT_MS = 1000;
/** Milliseconds by which a sign may be late on a busy machine. */
const LATE_MS = 2000;

/**
 * A clock of the milliseconds that this process ran: it pauses while the process is stopped.
 *
 * @param now milliseconds that never go back
 */
export function createRunningClock(now: () => number, beat = startTimer): () => number {
  let last: number | undefined;
  let lost = 0;
  const look = (): number => {
    const time = now();
    const silence = time - (last ?? time);
    if (silence > BEAT_MS + LATE_MS) lost += silence - BEAT_MS;
    last = time;
    return time - lost;
  };
  const begin = (): void => {
    beat(BEAT_MS, () => {
      look();
      begin();
    }).unref();
  };
  return () => {
    if (last === undefined) begin();
    return look();
  };
}

/**
 * Aborts `controller` with the reason of the first of the signals; call the result to stop following them.
 */
export function follow(
  signals: readonly (AbortSignal | undefined)[],
  controller: AbortController,
): () => void {
  const undo = signals
    .filter((signal) => signal !== undefined)
    .map((signal) => {
      const abort = (): void => {
        controller.abort(signal.reason);
      };
      setMaxListeners(0, signal);
      if (signal.aborted) abort();
      signal.addEventListener('abort', abort, { once: true });
      return () => {
        signal.removeEventListener('abort', abort);
      };
    });
  return () => {
    for (const stop of undo) stop();
  };
}

/**
 * Runs work with a signal that is also aborted after so many milliseconds, with a DOMException
 * `TimeoutError`. `AbortSignal.any` would not do: Node 20 lets the garbage collector take the
 * signal of `AbortSignal.timeout` inside it, which is then never aborted.
 */
export async function withTimeLimit<Value>(
  milliseconds: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const limit = new AbortController();
  const forget = follow([signal], limit);
  const timer = startTimer(milliseconds, () => {
    limit.abort(new DOMException(`no answer in ${formatDuration(milliseconds)}`, 'TimeoutError'));
  });
  try {
    return await work(limit.signal);
  } finally {
    timer.stop();
    forget();
  }
}
