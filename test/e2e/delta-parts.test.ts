import { copyFile, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digestFile } from '../../src/base/disk/files.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { buildTwoNights, expectDone } from '../support/two-nights.ts';

let world: LiveWorld;
let tuesday: string;

const at = (name: string): string => join(world.directory, name);

const PARTS = ['night.delta.1', 'night.delta.2', 'night.delta.3', 'night.delta.4'];
const PARITY = 'night.delta.parity';
const LARGEST = 9 * 1024;

/** Monday's ISO, tuesday's, and the delta in parts. */
beforeAll(async () => {
  world = await createLiveWorld();
  await buildTwoNights(world, { replaces: true });
  tuesday = await digestFile(at('tuesday.iso'));
  await done(...DELTA);
});
afterAll(() => world.close());

const DELTA = [
  'delta',
  'monday.iso',
  'tuesday.iso',
  '--output',
  'night.delta',
  '--max-part-size',
  `${LARGEST}`,
];

const done = async (...args: readonly string[]): Promise<string> =>
  (await expectDone(world, ...args)).stderr;

async function expectMade(parts: readonly string[]): Promise<string> {
  const stderr = await done('apply', 'monday.iso', ...parts, '--output', 'x.iso');
  expect(await digestFile(at('x.iso'))).toBe(tuesday);
  await rm(at('x.iso'));
  return stderr;
}

async function expectRefused(code: string, parts: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await world.run(
    'apply',
    'monday.iso',
    ...parts,
    '--output',
    'x.iso',
  );
  expect([exitCode, stderr]).toEqual([5, expect.stringContaining(`[${code}]`)]);
}

/** Other bytes in a part, at its start or near its end, for as long as something is done. */
async function whileDamaged(
  name: string,
  place: 'head' | 'end',
  work: () => Promise<unknown>,
): Promise<void> {
  const whole = await readFile(at(name));
  const file = await open(at(name), 'r+');
  await file.write(Buffer.from('damaged'), 0, 7, place === 'head' ? 40 : whole.length - 30);
  await file.close();
  await work();
  await writeFile(at(name), whole);
}

describe('a delta in parts', () => {
  test('has files smaller than the largest size, one of them the parity, and no whole file', async () => {
    const made = (await readdir(world.directory)).filter((name) => name.startsWith('night.delta'));
    expect(made.sort()).toEqual([...PARTS, PARITY]);
    for (const name of made) expect((await stat(at(name))).size).toBeLessThan(LARGEST);
  });

  test('makes the new ISO with the parts in any order, even without the parity', async () => {
    expect(await expectMade([PARITY, ...PARTS.toReversed()])).not.toContain('lost');
    expect(await expectMade(PARTS)).toContain('the parity of the delta is lost');
  });

  test.each(PARTS.map((name, number) => [name, number + 1]))(
    'makes the new ISO without %s, which it names',
    async (name, number) => {
      const others = [...PARTS, PARITY].filter((part) => part !== name);
      expect(await expectMade(others)).toContain(`part ${number} of the delta is lost (not given)`);
    },
  );

  test.each(['head', 'end'] as const)(
    'makes the new ISO if the %s of a part is damaged',
    async (place) => {
      await whileDamaged('night.delta.2', place, async () => {
        const said = await expectMade([...PARTS, PARITY]);
        expect(said).toContain(
          `part 2 of the delta is lost (cannot be used: ${at('night.delta.2')})`,
        );
      });
    },
  );

  test('is refused if two parts are lost, or one belongs to another delta', async () => {
    await expectRefused('delta.parts-lost', PARTS.slice(1));
    await whileDamaged('night.delta.2', 'end', () =>
      expectRefused('delta.parts-lost', [...PARTS.slice(1), PARITY]),
    );
    const other = DELTA.map((word) => (word === 'night.delta' ? 'back.delta' : word));
    await done(...other.with(1, 'tuesday.iso').with(2, 'monday.iso'));
    await expectRefused('delta.other-part', [...PARTS, 'back.delta.1']);
  });

  test('can be applied in place, and overwrites no foreign file', async () => {
    await copyFile(at('monday.iso'), at('y.iso'));
    await done('apply', 'y.iso', ...PARTS.slice(1), PARITY, '--in-place');
    expect(await digestFile(at('y.iso'))).toBe(tuesday);
    await writeFile(at('night.delta.1'), 'a text');
    expect((await world.run(...DELTA)).stderr).toContain('[output.exists]');
  });
});
