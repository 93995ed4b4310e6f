import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { BuildEvent } from '../../src/engine/events.ts';
import { createStageStore } from '../../src/engine/stage-store.ts';

let directory: string;
let events: BuildEvent[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-engine-'));
  events = [];
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const engineOf = (signal = new AbortController().signal): Engine =>
  createEngine({
    ...{ store: createStageStore(directory), signal },
    emit: (event) => void events.push(event),
  });

const always = (): boolean => true;

describe('the engine', () => {
  it('runs a stage when the stages it waits for are done', async () => {
    const engine = engineOf();
    const two = engine.stage({ name: 'two', inputs: {}, run: () => Promise.resolve(2) });
    const sum = engine.stage({
      ...{ name: 'sum', inputs: { two, three: 3 } },
      run: (inputs: { two: number; three: number }) => Promise.resolve(inputs.two + inputs.three),
    });
    expect(await sum).toBe(5);
  });

  it('reuses a result while the inputs are the same, and makes it anew when one changed', async () => {
    let runs = 0;
    const count = (value: number): Promise<number> =>
      engineOf().stage({
        ...{ name: 'count', inputs: { value }, isUsable: always },
        run: () => Promise.resolve(++runs),
      });
    expect(await count(1)).toBe(1);
    expect(await count(1)).toBe(1);
    expect(await count(2)).toBe(2);
    expect(events.map(({ type }) => type)).toEqual([
      ...['stage-started', 'stage-done', 'stage-reused', 'stage-started', 'stage-done'],
    ]);
  });

  it('makes a result anew when what it names is gone, or its entry is damaged', async () => {
    let runs = 0;
    const run = (isUsable: () => boolean): Promise<number> =>
      engineOf().stage({ name: 'x', inputs: {}, isUsable, run: () => Promise.resolve(++runs) });
    await run(always);
    expect(await run(() => false)).toBe(2);
    writeFileSync(join(directory, 'x.json'), '{"fingerprint":');
    expect(await run(always)).toBe(3);
  });

  it('leaves no entry of a stage that failed, so that it runs again', async () => {
    const failing = engineOf().stage({
      ...{ name: 'x', inputs: {}, isUsable: always },
      run: () => Promise.reject(new Error('broken')),
    });
    await expect(failing).rejects.toThrow('broken');
    expect(readdirSync(directory)).toEqual([]);
  });

  it('stops all stages when one fails, and every one gives the first cause', async () => {
    const engine = engineOf();
    const slow = engine.stage({
      ...{ name: 'slow', inputs: {} },
      run: (_inputs, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(new Error('aborted'));
          });
        }),
    });
    const failing = engine.stage({
      ...{ name: 'failing', inputs: {} },
      run: () => Promise.reject(new Error('broken')),
    });
    const behind = engine.stage({
      name: 'behind',
      inputs: { failing },
      run: () => Promise.resolve(),
    });
    for (const stage of [failing, slow, behind]) await expect(stage).rejects.toThrow('broken');
    expect(events.filter(({ type }) => type === 'stage-failed')).toHaveLength(1);
  });

  it('starts nothing after an interruption', async () => {
    const stop = new AbortController();
    stop.abort(new Error('interrupted'));
    const stage = engineOf(stop.signal).stage({
      ...{ name: 'x', inputs: {} },
      run: () => Promise.resolve(1),
    });
    await expect(stage).rejects.toThrow('interrupted');
    expect(events).toEqual([]);
  });
});
