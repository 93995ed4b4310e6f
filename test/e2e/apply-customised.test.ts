import { copyFile, open, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findEmbedArea, locateKargAreas } from '../../src/iso/index.ts';
import { useMedium } from '../../src/media/open.ts';
import { TEST_SSH_KEY } from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { buildTwoNights, expectDone } from '../support/two-nights.ts';

const SECRET = '{"auths":{"quay.io":{"auth":"dXNlcjpob3N0LXdvcmQ="}}}';
const VALUES = [
  ...['--ssh-key', TEST_SSH_KEY, '--pull-secret', 'file:secret.json'],
  ...['--kargs-append', 'console=ttyS0'],
];
const KEPT = ['storage.files /root/.docker/config.json', 'passwd.users core', 'kernel arguments'];

let world: LiveWorld;
const at = (name: string): string => join(world.directory, name);
const done = async (...args: readonly string[]): Promise<string> =>
  (await expectDone(world, ...args)).stdout;

/** Monday's ISO, tuesday's with other Ignition and one more kernel argument, and the delta. */
beforeAll(async () => {
  world = await createLiveWorld();
  await buildTwoNights(world, { replaces: true });
  await done('delta', 'monday.iso', 'tuesday.iso', '--output', 'night.delta');
  await writeFile(at('secret.json'), SECRET);
}, 120_000);
afterAll(() => world.close());

const readIso = (name: string): Promise<Buffer> => readFile(at(name));

async function expectEqual(name: string, other: string): Promise<void> {
  const [found, expected] = [await readIso(name), await readIso(other)];
  expect(found.equals(expected), `${name} equals ${other}`).toBe(true);
}

describe('a delta for an ISO that was customised since', () => {
  test('makes the new ISO with the same values, as a copy and in place', async () => {
    await done('customize', 'monday.iso', ...VALUES, '--output', 'old.iso');
    await done('customize', 'tuesday.iso', ...VALUES, '--output', 'expected.iso');
    const report = await done(
      'apply',
      'old.iso',
      'night.delta',
      '--output',
      'new.iso',
      '-o',
      'json',
    );
    expect((JSON.parse(report) as { readonly values: unknown }).values).toEqual(KEPT);
    expect(report).not.toContain('dXNlcjpob3N0LXdvcmQ=');
    await expectEqual('new.iso', 'expected.iso');
    expect((await stat(at('new.iso'))).mode & 0o077).toBe(0);
    await done('apply', 'old.iso', 'night.delta', '--in-place');
    await expectEqual('old.iso', 'expected.iso');
    expect(await done('apply', 'old.iso', 'night.delta', '--in-place')).toContain('is complete');
    await expectEqual('old.iso', 'expected.iso');
    expect(await done('verify', 'old.iso')).toContain('old.iso');
    await done('customize', 'old.iso', '--reset', '--in-place');
    await expectEqual('old.iso', 'tuesday.iso');
  });

  test('makes the ISO as built if only the build’s own arguments changed back', async () => {
    await done('customize', 'monday.iso', '--kargs-append', 'quiet', '--output', 'old.iso');
    await done('customize', 'old.iso', '--kargs-delete', 'quiet', '--in-place');
    await done('apply', 'old.iso', 'night.delta', '--output', 'same.iso');
    await expectEqual('same.iso', 'tuesday.iso');
  });

  test('keeps replaced arguments in their place, and merged configs without naming their contents', async () => {
    const config = { ignition: { version: '3.2.0' }, passwd: { users: [{ name: 'site' }] } };
    await writeFile(at('site.ign'), JSON.stringify(config));
    const shown = await done('customize', 'monday.iso', '--show', '-o', 'json');
    const { now } = (JSON.parse(shown) as { kernelArguments: { now: string } }).kernelArguments;
    const [, karg = ''] = /(?:^| )([^ =]+=[^ =]+) /.exec(now) ?? [];
    const values = ['--live-ignition', 'site.ign', '--kargs-replace', `${karg}=other`];
    await done('customize', 'monday.iso', ...values, '--output', 'old.iso');
    await done('customize', 'tuesday.iso', ...values, '--output', 'expected.iso');
    const told = await done('apply', 'old.iso', 'night.delta', '--output', 'kept.iso');
    expect(told).toMatch(/^ {2}kept {6}ignition\.config\.merge$/m);
    expect(told).not.toContain('data:');
    await expectEqual('kept.iso', 'expected.iso');
  });

  test('is refused if the ISO is damaged beside an area', async () => {
    await done('customize', 'monday.iso', '--kargs-append', 'quiet', '--output', 'hurt.iso');
    for (const name of ['monday.iso', 'hurt.iso']) {
      await copyFile(at(name), at('x.iso'));
      await damageMenu('x.iso');
      const args = ['apply', 'x.iso', 'night.delta'];
      const before = await readIso('x.iso');
      for (const place of [['--output', 'none.iso'], ['--in-place']]) {
        const { exitCode, stderr } = await world.run(...args, ...place);
        expect([exitCode, stderr]).toEqual([5, expect.stringContaining('[delta.damaged]')]);
      }
      expect(before.equals(await readIso('x.iso'))).toBe(true);
    }
    await expect(stat(at('none.iso'))).rejects.toThrow('ENOENT');
  });

  test('is refused if the delta is damaged, anywhere in its body', async () => {
    await done('customize', 'monday.iso', ...VALUES, '--output', 'whole.iso');
    const delta = await readIso('night.delta');
    for (const place of [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99]) {
      const bytes = Buffer.from(delta);
      const at = Math.floor(bytes.length * place);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      await writeFile(join(world.directory, 'flipped.delta'), bytes);
      const args = ['apply', 'whole.iso', 'flipped.delta', '--output', 'none.iso'];
      expect([place, (await world.run(...args)).exitCode]).toEqual([place, 5]);
    }
    await expect(stat(at('none.iso'))).rejects.toThrow('ENOENT');
  });

  test('is refused if another program took the own config of the ISO away', async () => {
    await copyFile(at('monday.iso'), at('emptied.iso'));
    await empty('emptied.iso');
    const args = ['apply', 'emptied.iso', 'night.delta', '--output', 'none.iso'];
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([8, expect.stringContaining('[delta.values]')]);
    expect(stderr).toContain('customize --reset');
  });
});

/** Fills the embed area with zeros, as `coreos-installer iso ignition remove` does. */
async function empty(name: string): Promise<void> {
  const area = await useMedium(at(name), findEmbedArea);
  const file = await open(at(name), 'r+');
  await file.write(new Uint8Array(area.size), 0, area.size, area.offset);
  await file.close();
}

/** Changes a byte in front of the kernel arguments in the menu of GRUB. */
async function damageMenu(name: string): Promise<void> {
  const place = await useMedium(at(name), async (iso) => {
    const { areas } = await locateKargAreas(iso);
    return areas[0]?.offset ?? 0;
  });
  const file = await open(at(name), 'r+');
  await file.write(Buffer.from('#'), 0, 1, place - 2);
  await file.close();
}
