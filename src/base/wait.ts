import { setTimeout } from 'node:timers/promises';

/*
 * The waits of the program: each ends with its signal. Nothing else in `src/` sleeps or waits for
 * something that does not know the signal itself.
 */

/** @throws the signal's reason, as soon as it is aborted */
export async function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await setTimeout(milliseconds, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/**
 * Waits for work that may not look at the signal. The work goes on when the signal ends the wait: what
 * it then gives is not used, and its failure is not reported.
 *
 * @throws the signal's reason, as soon as it is aborted
 */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => undefined); // after an abort nobody else listens
  signal.throwIfAborted();
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
