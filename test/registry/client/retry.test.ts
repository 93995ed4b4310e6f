import { describe, expect, it } from 'vitest';
import { TransientError } from '../../../src/registry/client/failure.ts';
import { parseRetryAfter, retry } from '../../../src/registry/client/retry.ts';

const { signal } = new AbortController();
const stumble = (): Promise<never> =>
  Promise.reject(new TransientError('registry.unavailable', 'busy', {}));

describe('retries', () => {
  it('wait a random time up to a bound that doubles', async () => {
    const waits: number[] = [];
    const options = {
      host: 'quay.io',
      signal,
      random: () => 1,
      wait: (milliseconds: number) => {
        waits.push(milliseconds);
        return Promise.resolve();
      },
    };
    await expect(retry(stumble, options)).rejects.toThrow('busy');
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000]);
  });

  it('are not made for what will not pass', async () => {
    let attempts = 0;
    const fail = (): Promise<never> => {
      attempts += 1;
      return Promise.reject(new Error('bug'));
    };
    await expect(retry(fail, { host: 'quay.io', signal })).rejects.toThrow('bug');
    expect(attempts).toBe(1);
  });

  it('tell who listens why and how long', async () => {
    const events: unknown[] = [];
    const wait = (): Promise<void> => Promise.resolve();
    const options = {
      host: 'h',
      signal,
      random: () => 0,
      wait,
      onRetry: (e: unknown) => events.push(e),
    };
    await expect(retry(stumble, options)).rejects.toThrow('busy');
    expect(events[0]).toEqual({ host: 'h', reason: 'busy', waitMs: 0 });
  });
});

describe('Retry-After', () => {
  it('is seconds or a date', () => {
    const now = Date.parse('Wed, 21 Oct 2015 07:28:00 GMT');
    expect(parseRetryAfter('120', now)).toBe(120_000);
    expect(parseRetryAfter('Wed, 21 Oct 2015 07:28:30 GMT', now)).toBe(30_000);
    expect(parseRetryAfter('Wed, 21 Oct 2015 07:00:00 GMT', now)).toBe(0);
    expect(parseRetryAfter('-1', now)).toBeUndefined();
    expect(parseRetryAfter('soon', now)).toBeUndefined();
    expect(parseRetryAfter(undefined, now)).toBeUndefined();
  });
});
