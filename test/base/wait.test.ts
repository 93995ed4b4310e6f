import { describe, expect, it } from 'vitest';
import { sleep, untilAborted } from '../../src/base/wait.ts';

const HOUR = 3_600_000;
const forever = (): Promise<never> => new Promise(() => undefined);

describe('a wait with a signal', () => {
  it('ends with the reason when the signal is aborted while it waits', async () => {
    const stop = new AbortController();
    const reason = new Error('stopped');
    const waits = [sleep(HOUR, stop.signal), untilAborted(forever(), stop.signal)];
    stop.abort(reason);
    for (const wait of waits) await expect(wait).rejects.toBe(reason);
  });

  it('does not begin when the signal was aborted before', async () => {
    const reason = new Error('stopped');
    const signal = AbortSignal.abort(reason);
    await expect(sleep(HOUR, signal)).rejects.toBe(reason);
    await expect(untilAborted(forever(), signal)).rejects.toBe(reason);
  });

  it('gives what the work gives, or its failure, when nobody stops it', async () => {
    const { signal } = new AbortController();
    await expect(untilAborted(Promise.resolve(5), signal)).resolves.toBe(5);
    const failed = Promise.reject(new Error('broken'));
    await expect(untilAborted(failed, signal)).rejects.toThrow('broken');
  });

  it('hears nothing of work that fails after the wait was stopped', async () => {
    const stop = new AbortController();
    const work = new Promise<never>((_resolve, reject) => {
      stop.signal.addEventListener('abort', () => {
        setImmediate(reject, new Error('too late')); // unhandled, it would fail the run
      });
    });
    const wait = untilAborted(work, stop.signal);
    stop.abort(new Error('stopped'));
    await expect(wait).rejects.toThrow('stopped');
    await new Promise((resolve) => setTimeout(resolve, 10));
  });
});
