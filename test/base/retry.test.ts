import { describe, expect, it } from 'vitest';
import { TransientError } from '../../src/base/http/network-failure.ts';
import {
  createRetries,
  parseRetryAfter,
  type RetryEvent,
  type RetryOptions,
} from '../../src/base/retry.ts';
import { createTestClock } from '../support/test-clock.ts';

const { signal } = new AbortController();
const HOST = 'quay.io';
const stumble = (): Promise<never> =>
  Promise.reject(new TransientError('registry.unavailable', 'busy', { answered: true }));
const refuse = (): Promise<never> =>
  Promise.reject(new TransientError('registry.unreachable', 'refused', {}));

function create(options: RetryOptions = {}, random = 0.5) {
  const clock = createTestClock(random);
  const events: RetryEvent[] = [];
  const retries = createRetries({ clock, onEvent: (event) => events.push(event), ...options });
  return { clock, events, retries, run: retries.run.bind(undefined, { host: HOST, signal }) };
}

describe('a request that is tried again', () => {
  it('waits a random time up to a bound that doubles from 0.5 s to 30 s', async () => {
    const { clock, run } = create();
    await expect(run(stumble)).rejects.toThrow('busy');
    expect(clock.waits.slice(0, 9)).toEqual([
      250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000,
    ]);
  });

  it('is given up when a host that has answered gave no byte for ten minutes', async () => {
    const { clock, run } = create();
    await expect(run(stumble)).rejects.toMatchObject({
      code: 'registry.unavailable',
      message: expect.stringContaining('busy; given up after 10 min 00 s') as string,
    });
    expect(clock.now()).toBeGreaterThan(599_000);
    expect(clock.now()).toBeLessThanOrEqual(600_000);
  });

  it('is given up after 30 s if the host has never answered', async () => {
    const { clock, retries, run } = create();
    retries.ask(HOST);
    await expect(run(refuse)).rejects.toThrow('refused; given up after 30 s without a byte');
    expect(clock.now()).toBeLessThanOrEqual(30_000);
  });

  it('is given up at once if the host was given up on before and has not answered since', async () => {
    const { clock, retries, run } = create();
    retries.ask(HOST);
    await expect(run(refuse)).rejects.toThrow('refused');
    clock.pass(60_000);
    const before = clock.waits.length;
    await expect(run(refuse)).rejects.toThrow('refused');
    expect(clock.waits).toHaveLength(before);
    expect(retries.ask(HOST)).toBe(5000);
  });

  it('gets ten minutes again from a host that has answered in between', async () => {
    const { clock, retries, run } = create();
    retries.ask(HOST);
    await expect(run(refuse)).rejects.toThrow('30 s');
    retries.noteAnswer(HOST, true);
    const start = clock.now();
    await expect(run(refuse)).rejects.toThrow('10 min 00 s');
    expect(clock.now() - start).toBeGreaterThan(599_000);
  });

  it('does not wait for an answer longer than --retry-for if the host has answered before', () => {
    const { retries } = create({ retryFor: 5000 });
    retries.noteAnswer(HOST, true);
    expect(retries.ask(HOST)).toBe(5000);
  });

  it('is repeated for the time of --retry-for, and never if that is 0', async () => {
    const { clock, run } = create({ retryFor: 90_000 });
    await expect(run(stumble)).rejects.toThrow('given up after 1 min');
    expect(clock.now()).toBeLessThanOrEqual(90_000);
    const none = create({ retryFor: 0 });
    await expect(none.run(stumble)).rejects.toThrow(/^busy$/);
    expect(none.clock.waits).toEqual([]);
  });

  it('gets the whole time again with each byte', async () => {
    const { clock, run } = create();
    let attempts = 0;
    await expect(
      run((budget) => {
        attempts += 1;
        if (clock.now() < 3_600_000) budget.progress();
        return stumble();
      }),
    ).rejects.toThrow('10 min');
    expect(clock.now()).toBeGreaterThan(3_600_000 + 590_000);
    expect(attempts).toBeGreaterThan(1000);
  });

  it('loses no time while it waits for its turn among the requests of a host', async () => {
    const { clock, retries, run } = create();
    let attempts = 0;
    await run(async (budget) => {
      await budget.uncounted(
        Promise.resolve().then(() => {
          clock.pass(3_600_000);
          retries.noteAnswer(HOST, true); // to those others
        }),
      );
      attempts += 1;
      return attempts < 5 ? stumble() : undefined;
    });
    expect(attempts).toBe(5);
  });

  it('is not repeated after a failure that will not pass', async () => {
    const { run, clock } = create();
    let attempts = 0;
    const fail = (): Promise<never> => {
      attempts += 1;
      return Promise.reject(new Error('bug'));
    };
    await expect(run(fail)).rejects.toThrow('bug');
    expect([attempts, clock.waits]).toEqual([1, []]);
  });

  it('ends with the reason of the signal while it waits by the real clock', async () => {
    const controller = new AbortController();
    const retries = createRetries({
      onEvent: () => {
        setImmediate(() => {
          controller.abort(new Error('enough'));
        });
      },
    });
    const work = { host: HOST, signal: controller.signal };
    await expect(retries.run(work, () => limit(60_000))).rejects.toThrow('enough');
  });
});

const limit = (retryAfter: number): Promise<never> =>
  Promise.reject(
    new TransientError('registry.rate-limited', 'slow down', {
      retryAfter,
      limited: true,
      answered: true,
    }),
  );

describe('Retry-After', () => {
  it('is waited for, and up to a second more', async () => {
    const { clock, run } = create();
    let attempts = 0;
    await run(() => (++attempts === 1 ? limit(120_000) : Promise.resolve()));
    expect(clock.waits).toEqual([120_500]);
  });

  it('ends the request at once, with the reason, if it is longer than the time that is left', async () => {
    const { clock, run } = create();
    await expect(run(() => limit(900_000))).rejects.toMatchObject({
      code: 'registry.rate-limited',
      message: 'slow down; it asks for a pause of 15 min 00 s, but only 10 min 00 s are left',
      hint: expect.stringContaining('--retry-for') as string,
    });
    expect(clock.waits).toEqual([]);
  });

  it('is replaced, for a 429 without it, by pauses from 2 s on', async () => {
    const { clock, run } = create();
    const error = new TransientError('c', 'slow down', { limited: true, answered: true });
    await expect(run(() => Promise.reject(error))).rejects.toThrow('slow down');
    expect(clock.waits.slice(0, 6)).toEqual([1000, 2000, 4000, 8000, 15_000, 15_000]);
  });

  it('has seconds or a date', () => {
    const now = Date.parse('Wed, 21 Oct 2015 07:28:00 GMT');
    expect(parseRetryAfter('120', now)).toBe(120_000);
    expect(parseRetryAfter('Wed, 21 Oct 2015 07:28:30 GMT', now)).toBe(30_000);
    expect(parseRetryAfter('Wed, 21 Oct 2015 07:00:00 GMT', now)).toBe(0);
    expect(parseRetryAfter('-1', now)).toBeUndefined();
    expect(parseRetryAfter('soon', now)).toBeUndefined();
    expect(parseRetryAfter(undefined, now)).toBeUndefined();
  });
});

describe('waiting for a host', () => {
  const typed = <Type extends RetryEvent['type']>(events: readonly RetryEvent[], type: Type) =>
    events.filter((event) => event.type === type) as Extract<RetryEvent, { type: Type }>[];

  it('gives an event for each attempt, and one for people at most once a minute', async () => {
    const { clock, events, run } = create();
    await expect(run(stumble)).rejects.toThrow('busy');
    expect(typed(events, 'retry').map(({ waitMs }) => waitMs)).toEqual(clock.waits);
    const reports = typed(events, 'retry-waiting');
    expect(reports[0]).toEqual({
      type: 'retry-waiting',
      host: HOST,
      reason: 'busy',
      waitedMs: 0,
      retryForMs: 600_000,
    });
    expect(reports).toHaveLength(10);
    for (const [index, { waitedMs }] of reports.entries()) {
      expect(waitedMs - (reports[index - 1]?.waitedMs ?? -60_000)).toBeGreaterThanOrEqual(60_000);
    }
  });

  it('is reported once a minute for all requests to the host', async () => {
    const { events, retries } = create();
    const work = { host: HOST, signal };
    await Promise.allSettled(Array.from({ length: 20 }, () => retries.run(work, stumble)));
    expect(typed(events, 'retry-waiting').length).toBeLessThanOrEqual(11);
  });

  it('ends with an event that states how long it took', async () => {
    const { clock, events, run } = create();
    let attempts = 0;
    await run(() => (++attempts < 4 ? stumble() : Promise.resolve()));
    expect(events.at(-1)).toEqual({ type: 'retry-over', host: HOST, waitedMs: clock.now() });
    await run(() => Promise.resolve());
    expect(typed(events, 'retry-over')).toHaveLength(1);
  });
});
