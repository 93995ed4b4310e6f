import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import type { FileInput } from '../../src/base/disk/file-digests.ts';
import { Secret } from '../../src/base/secret.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { BuildEvent } from '../../src/engine/engine.ts';
import type { Reuse, Sealed, Stage } from '../../src/engine/stage.ts';
import { createStageStore } from '../../src/engine/stage.ts';

let directory: string;
let events: BuildEvent[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-engine-'));
  events = [];
  counter.runs = 0;
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const counter = { runs: 0 };
type Counter = typeof counter;

const engineOf = ({
  signal = new AbortController().signal,
  program = digestOf('program'),
  seal = 'key',
} = {}): Engine<Counter> =>
  createEngine({
    store: createStageStore(directory, '/proc/1/fd/3'),
    signal,
    program,
    tools: counter,
    sealKey: Buffer.alloc(32, seal),
    emit: (event) => void events.push(event),
  });

const reuse: Reuse<number> = { kind: 'same-program', isUsable: () => true };
const count = (_inputs: unknown, tools: Counter): Promise<number> => Promise.resolve(++tools.runs);
const two: Stage<object, number, Counter> = { name: 'two', run: () => Promise.resolve(2) };
const sum: Stage<{ two: number; three: number }, number, Counter> = {
  name: 'sum',
  run: (inputs) => Promise.resolve(inputs.two + inputs.three),
};
const once: Stage<{ value: number }, number, Counter> = { name: 'once', reuse, run: count };
const drawn: Stage<{ value: number }, number, Counter> = {
  name: 'drawn',
  reuse: { kind: 'drawn' },
  run: count,
};
const failing: Stage<object, number, Counter> = {
  name: 'failing',
  reuse,
  run: () => Promise.reject(new Error('broken')),
};
const slow: Stage<object, number, Counter> = {
  name: 'slow',
  run: (_inputs, _tools, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        reject(new Error('aborted'));
      });
    }),
};
const behind: Stage<{ failed: number }, number, Counter> = { name: 'behind', run: count };

describe('the engine', () => {
  it('runs a stage when the stages it waits for are done', async () => {
    const engine = engineOf();
    expect(await engine.run(sum, { two: engine.run(two, {}), three: 3 })).toBe(5);
  });

  it('reuses a result while the inputs are the same, and makes it again when one changed', async () => {
    const run = (value: number): Promise<number> => engineOf().run(once, { value });
    expect(await run(1)).toBe(1);
    expect(await run(1)).toBe(1);
    expect(await run(2)).toBe(2);
    expect(await run(1)).toBe(3);
    expect(events.map(({ type }) => type).slice(0, 5)).toEqual([
      ...['stage-started', 'stage-done', 'stage-reused', 'stage-started', 'stage-done'],
    ]);
    expect(events.filter(({ type }) => type === 'stage-started')).toMatchObject([
      { reason: 'first-run' },
      { reason: 'inputs-changed' },
      { reason: 'inputs-changed' },
    ]);
  });

  it('makes a result again when another version of the program made it', async () => {
    expect(await engineOf().run(once, { value: 1 })).toBe(1);
    expect(await engineOf({ program: digestOf('newer') }).run(once, { value: 1 })).toBe(2);
  });

  it('reuses random results for the same inputs, even with another program', async () => {
    const draw = (value: number, program?: string): Promise<number> =>
      engineOf(program === undefined ? {} : { program: digestOf(program) }).run(drawn, { value });
    expect(await draw(1)).toBe(1);
    expect(await draw(2)).toBe(2);
    expect(await draw(1)).toBe(1);
    expect(await draw(2, 'newer')).toBe(2);
    const files = readdirSync(join(directory, 'drawn'));
    expect(files).toHaveLength(2);
    for (const file of files) {
      expect(statSync(join(directory, 'drawn', file)).mode & 0o777).toBe(0o600);
    }
  });

  it('gives two builds that draw a random result at the same time the same one', async () => {
    const [one, other] = await Promise.all([
      engineOf().run(drawn, { value: 1 }),
      engineOf().run(drawn, { value: 1 }),
    ]);
    expect(counter.runs).toBe(2);
    expect(one).toBe(other);
    expect(await engineOf().run(drawn, { value: 1 })).toBe(one);
  });

  it('draws a random result again if the stored one is damaged', async () => {
    await engineOf().run(drawn, { value: 1 });
    const [file = ''] = readdirSync(join(directory, 'drawn'));
    writeFileSync(join(directory, 'drawn', file), '{"fingerprint":');
    expect(await engineOf().run(drawn, { value: 1 })).toBe(2);
    expect(await engineOf().run(drawn, { value: 1 })).toBe(2);
  });

  it('makes a result again when something that it names is gone, or its entry is damaged', async () => {
    const run = (isUsable: boolean): Promise<number> =>
      engineOf().run(
        { ...once, reuse: { kind: 'same-program', isUsable: () => isUsable } },
        { value: 1 },
      );
    await run(true);
    expect(await run(false)).toBe(2);
    writeFileSync(join(directory, 'once.json'), '{"fingerprint":');
    expect(await run(true)).toBe(3);
  });

  it('leaves no entry of a stage that failed, so that it runs again', async () => {
    await expect(engineOf().run(failing, {})).rejects.toThrow('broken');
    expect(readdirSync(directory)).toEqual([]);
  });

  it('stops all stages when one fails, and rejects each with the first cause', async () => {
    const engine = engineOf();
    const stages = [engine.run(slow, {}), engine.run(failing, {})];
    stages.push(engine.run(behind, { failed: stages[1] ?? 0 }));
    for (const stage of stages) await expect(stage).rejects.toThrow('broken');
    expect(events.filter(({ type }) => type === 'stage-failed')).toHaveLength(1);
  });

  it('starts nothing after an interruption', async () => {
    const stop = new AbortController();
    stop.abort(new Error('interrupted'));
    const stage = engineOf({ signal: stop.signal }).run(two, {});
    await expect(stage).rejects.toThrow('interrupted');
    expect(events).toEqual([]);
  });
});

describe('the fingerprint of a stage', () => {
  const file = (path: string, text: string): FileInput => ({
    kind: 'file',
    path,
    size: text.length,
    digest: digestOf(text),
  });
  const ofFile: Stage<{ file: FileInput }, number, Counter> = { name: 'file', reuse, run: count };
  const ofSecret: Stage<{ secret: Sealed }, number, Counter> = {
    name: 'secret',
    reuse,
    run: count,
  };
  const ofBytes: Stage<{ bytes: Uint8Array }, number, Counter> = {
    name: 'bytes',
    reuse,
    run: count,
  };

  it('depends on the bytes of a file, and not on its path', async () => {
    const run = (input: FileInput): Promise<number> => engineOf().run(ofFile, { file: input });
    expect(await run(file('/a', 'one'))).toBe(1);
    expect(await run(file('/b', 'one'))).toBe(1);
    expect(await run(file('/b', 'two'))).toBe(2);
  });

  it('depends on the digest of bytes', async () => {
    const run = (text: string): Promise<number> =>
      engineOf().run(ofBytes, { bytes: Buffer.from(text) });
    expect([await run('one'), await run('one'), await run('two')]).toEqual([1, 1, 2]);
  });

  it('changes with a secret, and does not reveal it without the key', async () => {
    const run = (text: string, seal = 'key'): Promise<number> =>
      engineOf({ seal }).run(ofSecret, { secret: new Secret(text) });
    expect([await run('one'), await run('one'), await run('two')]).toEqual([1, 1, 2]);
    expect(await run('two', 'another key')).toBe(3);
  });

  it('is refused for an input that is not a plain value', async () => {
    for (const value of [new Date(), () => 1]) {
      const inputs = { value: value as unknown as number };
      await expect(engineOf().run(once, inputs)).rejects.toThrow(/^a stage takes (plain )?values/);
    }
  });
});
