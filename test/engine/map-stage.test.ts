import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { DiskError } from '../../src/base/errors.ts';
import type { BuildEvent } from '../../src/engine/engine.ts';
import { mapStage, type MappedStage, type MapOptions } from '../../src/engine/map-stage.ts';

let directory: string;
let events: BuildEvent[];
let tools: Counter;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-map-'));
  events = [];
  tools = { runs: 0, atOnce: 0, most: 0, isThere: true };
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

type Counter = { runs: number; atOnce: number; most: number; isThere: boolean };
type Made = { readonly value: number; readonly kind: 'made' | 'reused' | 'failed' };

const make: MappedStage<{ value: number }, Made, Counter, { value: number }> = {
  name: 'make things',
  items: 'things',
  bind: ({ value }) => ({ value }),
  async run({ value }, tools, signal) {
    tools.runs++;
    tools.most = Math.max(tools.most, ++tools.atOnce);
    await Promise.resolve();
    tools.atOnce--;
    signal.throwIfAborted();
    if (value === 13) throw new RangeError('bad luck');
    if (value === 99) throw new DiskError('disk.full', 'no room');
    return { value, kind: 'made' };
  },
  reuse: (earlier, _inputs, { isThere }) => (isThere ? { ...earlier, kind: 'reused' } : undefined),
  recover(_name, error) {
    if (error instanceof RangeError) return { value: 0, kind: 'failed' };
    throw error;
  },
};

function run(
  values: readonly number[],
  {
    program = 'program',
    ...more
  }: Omit<Partial<MapOptions<Counter>>, 'program'> & { program?: string } = {},
): Promise<ReadonlyMap<string, Made>> {
  const items = values.map((value, index) => {
    const name = `thing-${index}`;
    return { name, value, record: join(directory, `${name}.json`) };
  });
  return mapStage(make, items, {
    tools,
    atOnce: 2,
    program: digestOf(program),
    signal: new AbortController().signal,
    emit: (event) => void events.push(event),
    now: () => 0,
    ...more,
  });
}

const kindsOf = (made: ReadonlyMap<string, Made>): string[] =>
  [...made.values()].map(({ kind }) => kind);

describe('a stage that is mapped over a list', () => {
  it('runs a bounded number of items at a time and returns the outputs in the order of the list', async () => {
    const made = await run([5, 4, 3, 2, 1]);
    expect([...made.keys()]).toEqual(['thing-0', 'thing-1', 'thing-2', 'thing-3', 'thing-4']);
    expect([...made.values()].map(({ value }) => value)).toEqual([5, 4, 3, 2, 1]);
    expect(tools.most).toBe(2);
  });

  it('emits the events of one stage, regardless of the number of items', async () => {
    await run([1, 2, 3]);
    expect(events).toEqual([
      { type: 'stage-started', stage: 'make things' },
      {
        type: 'stage-progress',
        stage: 'make things',
        bytes: 0,
        note: '3 of 3 things',
        items: { done: 3, total: 3, name: 'things' },
      },
      { type: 'stage-done', stage: 'make things', milliseconds: 0 },
    ]);
  });

  it('reuses each item whose inputs are the same and whose output still exists', async () => {
    await run([1, 2]);
    expect(kindsOf(await run([1, 3]))).toEqual(['reused', 'made']);
    tools.isThere = false;
    expect(kindsOf(await run([1, 3]))).toEqual(['made', 'made']);
  });

  it('runs every item again when another version of the program made the records', async () => {
    await run([1, 2]);
    expect(kindsOf(await run([1, 2], { program: 'newer' }))).toEqual(['made', 'made']);
    expect(kindsOf(await run([1, 2], { program: 'newer' }))).toEqual(['reused', 'reused']);
  });

  it('runs an item again whose record is damaged', async () => {
    await run([1]);
    writeFileSync(join(directory, 'thing-0.json'), '{"fingerprint":');
    expect(kindsOf(await run([1]))).toEqual(['made']);
    expect(kindsOf(await run([1]))).toEqual(['reused']);
  });

  it('continues after an item that fails, and does not record that item', async () => {
    expect(kindsOf(await run([13, 1, 2]))).toEqual(['failed', 'made', 'made']);
    expect(readdirSync(directory)).toEqual(['thing-1.json', 'thing-2.json']);
  });

  it('begins no further item after a failure that concerns all items', async () => {
    await expect(run([1, 99, 1, 1, 1, 1])).rejects.toMatchObject({ code: 'disk.full' });
    expect(tools.runs).toBeLessThan(5);
    expect(tools.atOnce).toBe(0);
    expect(events.map(({ type }) => type)).not.toContain('stage-done');
  });

  it('ends with the reason of an abort', async () => {
    const stop = new AbortController();
    stop.abort(new Error('interrupted'));
    await expect(run([1, 2], { signal: stop.signal })).rejects.toThrow('interrupted');
    expect(tools.runs).toBe(0);
  });
});
