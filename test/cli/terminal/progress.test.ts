import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { describe, expect, test, vi } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import {
  IntegrityError,
  InterruptedError,
  RegistryError,
  type SealiftError,
} from '../../../src/base/errors.ts';
import { formatDuration } from '../../../src/base/text/words.ts';
import type { BuildEvent } from '../../../src/engine/engine.ts';
import { describeError } from '../../../src/cli/terminal/errors.ts';
import { drawTasks } from '../../../src/cli/terminal/tasks.ts';
import {
  createRateMeter,
  createRunMeter,
  createStageMeter,
  formatLine,
  formatProgress,
} from '../../../src/cli/terminal/meters.ts';
import { mapStage, type MappedStage } from '../../../src/engine/map-stage.ts';
import { createProgress, type LogFormat } from '../../../src/cli/terminal/progress.ts';
import { listenForSignals } from '../../../src/cli/host.ts';

const EVENTS: readonly BuildEvent[] = [
  { type: 'stage-started', stage: 'pour' },
  ...Array.from({ length: 60 }, (_, second): BuildEvent => ({
    type: 'stage-progress',
    stage: 'pour',
    bytes: second * 2 ** 20,
    total: 100 * 2 ** 20,
  })),
  { type: 'retry', host: 'quay.io', reason: 'status 429', waitMs: 2000 },
  {
    type: 'retry-waiting',
    host: 'quay.io',
    reason: 'status 429',
    waitedMs: 60_000,
    retryForMs: 600_000,
  },
  { type: 'retry-over', host: 'quay.io', waitedMs: 65_000 },
  { type: 'warning', message: 'TLS is off for https://user:hunter2@quay.io/' },
  { type: 'stage-done', stage: 'pour', milliseconds: 60_000 },
];

/** Plays the events, progress once a second. */
function play(format: LogFormat): readonly string[] {
  const stderr = new PassThrough();
  let now = 0;
  const view = createProgress(
    {
      stdout: new PassThrough(),
      stderr,
      env: {},
      cwd: '/',
      redaction: createRedaction(),
      isTTY: false,
      now: () => now,
      signal: new AbortController().signal,
    },
    format,
  );
  for (const event of EVENTS) {
    if (event.type === 'stage-progress') now += 1000;
    view.listener(event);
  }
  view.close();
  return (stderr.read() as Buffer).toString().trimEnd().split('\n');
}

describe('progress', () => {
  test('is a plain line now and then without a terminal, with rate and time left', () => {
    expect(play('auto')).toEqual([
      'pour: started',
      'pour: 0 B of 100.0 MiB, 0 %, measuring',
      'pour: 15.0 MiB of 100.0 MiB, 15 %, 1.0 MiB/s, 1 min 25 s left',
      'pour: 30.0 MiB of 100.0 MiB, 30 %, 1.0 MiB/s, 1 min 10 s left',
      'pour: 45.0 MiB of 100.0 MiB, 45 %, 1.0 MiB/s, 55 s left',
      'waiting for quay.io, 1 min 00 s of 10 min 00 s: status 429',
      'quay.io answers again after 1 min 05 s',
      'warning: TLS is off for https://quay.io/',
      'pour: done in 1 min 00 s',
    ]);
  });

  test('is one event per line as JSON', () => {
    const lines = play('json').map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines[0]).toEqual({
      time: '1970-01-01T00:00:00.000Z',
      type: 'stage-started',
      stage: 'pour',
    });
    expect(lines).toHaveLength(EVENTS.length);
    expect(JSON.stringify(lines)).not.toContain('hunter2');
  });

  test('shows a stall', () => {
    const meter = createRateMeter();
    for (const time of [0, 1000, 2000]) meter.add({ time, bytes: 5 });
    expect(
      formatProgress({ bytes: 5, total: 10, rate: meter.read(2000) ?? { now: 1, steady: 1 } }),
    ).toBe('5 B of 10 B, 50 %, stalled');
  });

  test('has a bar with bytes, rate and time left on a terminal, for a stage and for the whole build', async () => {
    const stream = new PassThrough();
    let text = '';
    stream.on('data', (piece: Buffer) => (text += piece.toString().replaceAll(/\n +/g, ' ')));
    let time = 0;
    const terminal = Object.assign(stream, { isTTY: true, columns: 120, rows: 40 });
    const drawing = { now: () => time, redaction: createRedaction() };
    const view = drawTasks(terminal as unknown as WriteStream, drawing);
    const MIB = 2 ** 20;
    const tell = (stage: string, bytes: number): void => {
      view.listener({ type: 'stage-progress', stage, bytes: bytes * MIB, total: 100 * MIB });
    };
    view.listener({ type: 'stage-started', stage: 'fetch base ISO' });
    tell('fetch base ISO', 100);
    view.listener({ type: 'stage-done', stage: 'fetch base ISO', milliseconds: 5 });
    view.listener({ type: 'stage-started', stage: 'pour ISO' });
    for (time = 0; time < 50_000; time += 1000) tell('pour ISO', time / 1000);
    await vi.waitFor(() => {
      expect(text).toContain(
        'pour ISO: [=====>      ] 49.0 MiB of 100.0 MiB, 49 %, 1.0 MiB/s, 51 s left',
      );
    }, 60_000);
    expect(text).toContain('all stages: 149.0 MiB of 200.0 MiB, 74 %, 1.0 MiB/s, 51 s left');
    view.close();
    await vi.waitFor(() => {
      expect(text).toContain('all stages: 50 s');
    }, 60_000);
  });

  test('shows a share of a whole build from the moment at which its output is planned', () => {
    const meter = createRunMeter();
    const tell = (
      time: number,
      progress: { stage: string; bytes: number; total?: number },
    ): string => {
      meter.add({ type: 'stage-progress', ...progress }, time);
      return formatProgress(meter.read(time) ?? { bytes: 0 });
    };
    for (let time = 0; time < 5000; time += 500) {
      tell(time, { stage: 'fetch base ISO', bytes: time, total: 5000 });
    }
    const fetched = tell(5000, { stage: 'fetch base ISO', bytes: 5000, total: 5000 });
    expect(fetched).toBe('4.9 KiB, 1000 B/s');
    meter.finish('fetch base ISO');
    expect(tell(5500, { stage: 'pour ISO', bytes: 500, total: 10_000 })).toMatch(/^.* 36 %, /);
    expect(tell(6000, { stage: 'pour ISO', bytes: 1000, total: 10_000 })).toMatch(/, 9 s left$/);
    expect(tell(6500, { stage: 'other', bytes: 1000 })).not.toMatch(/left|%/);
    meter.finish('other');
    expect(tell(7000, { stage: 'pour ISO', bytes: 2000, total: 10_000 })).toMatch(/ s left$/);
  });

  test('estimates the time left by the network, if that has more to do than the disk', () => {
    const meter = createStageMeter();
    // In 10 seconds 10,000 bytes are copied; then 1000 bytes come over the network, 10 a second.
    for (let time = 0; time <= 50_000; time += 1000) {
      const fetched = Math.max(0, time / 1000 - 10) * 10;
      const bytes = Math.min(10_000, time) + fetched;
      const network = { bytes: fetched, total: 1000 };
      meter.add({ type: 'stage-progress', stage: 'pour ISO', bytes, total: 11_000, network }, time);
    }
    const progress = meter.read(50_000) ?? { bytes: 0 };
    expect(formatProgress(progress)).toBe(
      '10.2 KiB of 10.7 KiB, 94 %, net 10 B/s, disk 10 B/s, 1 min 00 s left',
    );
    // Silence is seen, too.
    expect(formatProgress(meter.read(80_000) ?? progress)).toMatch(/ 94 %, stalled$/);
  });

  test('never shows a stage as complete before its end', () => {
    const rate = { now: 1, steady: 1 };
    expect(formatProgress({ bytes: 1000, total: 1000, rate })).toContain(' 99 %,');
    expect(formatProgress({ bytes: 238, total: 238 })).toBe('238 B of 238 B, 99 %');
    expect(formatLine('pour', { bytes: 10, total: 10, rate }, 80)).toContain('[===========>]');
  });

  test.each([80, 60, 40])('fits into %i columns, rates and time left last of all', (columns) => {
    const rate = { now: 537 * 2 ** 20, steady: 2 ** 20 };
    const progress = {
      bytes: 149 * 2 ** 30,
      total: 200 * 2 ** 30,
      note: 'a note of many words',
      rate,
      left: 7_620_000,
    };
    const line = formatLine('pour ISO', progress, columns);
    expect(line.length).toBeLessThanOrEqual(columns);
    if (columns > 40) expect(line).toMatch(/ 74 %, 537\.0 MiB\/s, 2 h 07 min left$/);
    const both = formatLine('all stages', { ...progress, network: { rate } }, 76);
    expect(both).toBe('all stages: 74 %, net 537.0 MiB/s, disk 537.0 MiB/s, 2 h 07 min left');
  });

  test('does not change its time left in a burst of a few seconds', () => {
    const meter = createRateMeter();
    let bytes = 0;
    for (let second = 0; second <= 60; second++) {
      bytes += second > 55 ? 10_000_000 : 1_000_000;
      meter.add({ time: second * 1000, bytes });
    }
    const { now = 0, steady = 0 } = meter.read(60_000) ?? {};
    expect(now).toBeGreaterThan(5_000_000);
    expect(steady).toBeLessThan(2_000_000);
  });

  test('estimates a realistic time for sites that are made in parallel', async () => {
    // Two at a time, 3.2 s each, after 5 s in which the first keys are made: 60 sites take 101 s.
    let time = 0;
    const said: { readonly at: number; readonly left: number }[] = [];
    const waitFor: MappedStage<{ until: number }, null, undefined, { until: number }> = {
      name: 'make ISOs',
      items: 'sites',
      bind: ({ until }) => ({ until }),
      run: ({ until }) => {
        time = until;
        return Promise.resolve(null);
      },
      recover: () => null,
    };
    const ends = Array.from({ length: 60 }, (_, i) => 8200 + (i >> 1) * 3200 + (i & 1) * 150);
    const items = ends.map((until) => ({ name: String(until), until }));
    await mapStage(waitFor, items, {
      tools: undefined,
      atOnce: 1,
      signal: new AbortController().signal,
      now: () => time,
      emit: (event: BuildEvent) => {
        const left =
          event.type === 'stage-progress' ? / (\d+) s left/.exec(event.note ?? '') : null;
        if (left) said.push({ at: time, left: Number(left[1]) });
      },
    });
    const end = time;
    expect(said.length).toBeGreaterThan(20);
    for (const { at, left } of said) {
      expect(left * 1000).toBeGreaterThan((end - at) * 0.7 - 2000);
      expect(left * 1000).toBeLessThan((end - at) * 1.3 + 2000);
    }
  });

  test('shows no bytes if something else is counted', () => {
    expect(formatProgress({ bytes: 0, rate: { now: 0, steady: 0 }, note: '3 of 10 sites' })).toBe(
      '3 of 10 sites',
    );
  });

  test.each([
    [999, '999 ms'],
    [59_400, '59 s'],
    [185_000, '3 min 05 s'],
    [7_620_000, '2 h 07 min'],
  ])('formats %i ms as %s', (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
  });
});

describe('a printed failure', () => {
  test('has the path of its causes, both values and a hint if it was foreseen', () => {
    const cause = new RegistryError('registry.reset', 'connection to quay.io was reset');
    const error = new IntegrityError('blob.short', 'blob sha256:4f.. is short', {
      expected: '10 bytes',
      found: '9 bytes',
      hint: 'run again',
      cause,
    });
    expect(describeError(error, createRedaction())).toEqual({
      exitCode: 5,
      text:
        'error: blob sha256:4f.. is short: connection to quay.io was reset [blob.short]\n' +
        '  expected: 10 bytes\n  found:    9 bytes\n  hint: run again\n',
    });
  });

  test('is a bug with its stack if it was not foreseen', () => {
    const { text, exitCode } = describeError(
      new TypeError('x of https://u:hunter2@q.io/'),
      createRedaction(),
    );
    expect(exitCode).toBe(1);
    expect(text).toMatch(/^bug: TypeError: x of https:\/\/q\.io\/\n {4}at /);
  });

  test('ends if its causes form a circle', () => {
    const error: Error = new Error('a');
    error.cause = error;
    expect(describeError(error, createRedaction()).exitCode).toBe(1);
  });
});

describe('a signal', () => {
  test('aborts the run, and a second one ends the process with its code', () => {
    const source = new EventEmitter();
    const codes: number[] = [];
    const { signal, stop } = listenForSignals(source, (code) => codes.push(code));
    source.emit('SIGTERM');
    expect(signal.reason).toBeInstanceOf(InterruptedError);
    expect((signal.reason as SealiftError).exitCode).toBe(143);
    expect(codes).toEqual([]);
    source.emit('SIGINT');
    expect(codes).toEqual([130]);
    stop();
    expect(source.listenerCount('SIGINT')).toBe(0);
  });
});
