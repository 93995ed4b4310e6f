import { describe, expect, it } from 'vitest';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createRedaction } from '../../src/base/text/redact.ts';
import { createHttp } from '../../src/base/http/http.ts';
import { createRunningClock, sleep, untilAborted, withTimeLimit } from '../../src/base/wait.ts';
import { serveLocally } from '../support/local-http.ts';

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

  it('gives the result of the work, or its failure, if it is not stopped', async () => {
    const { signal } = new AbortController();
    await expect(untilAborted(Promise.resolve(5), signal)).resolves.toBe(5);
    const failed = Promise.reject(new Error('broken'));
    await expect(untilAborted(failed, signal)).rejects.toThrow('broken');
  });

  it('does not report work that fails after the wait was stopped', async () => {
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

describe('work with a time limit', () => {
  it('ends while a body drips in, though the garbage collector runs', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const { url, close } = await serveLocally((_request, response) => {
      response.writeHead(200);
      const dripping = setInterval(() => {
        response.write('x');
        collect();
      }, 20);
      response.on('close', () => {
        clearInterval(dripping);
      });
    });
    const http = createHttp({ redaction: createRedaction(), env: {} });
    try {
      const { signal } = new AbortController();
      const reading = withTimeLimit(300, signal, async (limited) => {
        const { body } = await http.request({ url: new URL(url), signal: limited });
        return body.toArray();
      });
      await expect(reading).rejects.toThrow('no answer in 300 ms');
    } finally {
      await http.close();
      await close();
    }
  });

  it('ends with the reason of the signal when that comes first', async () => {
    const stop = new AbortController();
    const waiting = withTimeLimit(HOUR, stop.signal, (limited) => sleep(HOUR, limited));
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
  });
});

describe('a clock of the time that the process ran', () => {
  it('pauses while the process is stopped, and continues with it', () => {
    let time = 0;
    const beats: (() => void)[] = [];
    const now = createRunningClock(
      () => time,
      (_milliseconds, act) => {
        beats.push(act);
        return { stop: () => undefined, unref: () => undefined };
      },
    );
    const pass = (milliseconds: number): number => {
      time += milliseconds;
      beats.shift()?.();
      return now();
    };
    expect([now(), pass(1000), pass(1400), pass(120_000), pass(1000)]).toEqual([
      0, 1000, 2400, 3400, 4400,
    ]);
  });
});
