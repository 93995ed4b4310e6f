import { createRetries, type Clock, type Retries, type RetryEvent } from '../../src/base/retry.ts';

export type TestClock = Clock & {
  /** Milliseconds of every wait, in order. */
  readonly waits: readonly number[];
  /** Lets time pass without a wait. */
  readonly pass: (milliseconds: number) => void;
};

/** A clock that only waits move on, so that nothing takes any time; it draws the same lot always. */
export function createTestClock(random = 0.5): TestClock {
  let time = 0;
  const waits: number[] = [];
  return {
    waits,
    now: () => time,
    random: () => random,
    pass(milliseconds) {
      time += milliseconds;
    },
    async sleep(milliseconds, signal) {
      // As a timer would, so that what is under way can go on and a signal can be heard.
      await new Promise(setImmediate);
      signal.throwIfAborted();
      waits.push(milliseconds);
      time += milliseconds;
    },
  };
}

/** Retries that never wait. */
export function createTestRetries(
  options: { readonly retryFor?: number; readonly onEvent?: (event: RetryEvent) => void } = {},
): Retries & { readonly clock: TestClock } {
  const clock = createTestClock();
  return { ...createRetries({ clock, ...options }), clock };
}
