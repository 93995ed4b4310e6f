import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TEST_SSH_KEY } from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';
import { expectSameValues } from '../support/same-values.ts';
import { expectDone } from '../support/two-nights.ts';

const MIB = 2 ** 20;

const hasTools = ['genisoimage', 'isohybrid', 'xorriso'].map(requireTool).every(Boolean);

describe.skipIf(!hasTools)('the area for Ignition of a live ISO', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    // What no compression makes smaller than 1.5 MiB.
    const source = `data:;base64,${randomBytes(1.5 * MIB).toString('base64')}`;
    const files = [{ path: '/etc/large', contents: { source } }];
    const override = { ignition: { version: '3.2.0' }, storage: { files } };
    await writeFile(join(world.directory, 'large.ign'), JSON.stringify(override));
    await done('build', '--output', 'default.iso');
    await done('build', ...WIDE, '--output', 'wide.iso');
  });
  afterAll(() => world.close());

  const done = async (...args: readonly string[]): Promise<string> =>
    (await expectDone(world, ...args)).stdout;

  const sizeOf = async (name: string): Promise<number> =>
    (await stat(join(world.directory, name))).size;

  /** As xorriso lists the file. */
  const areaOf = (name: string): number => {
    const args = ['-indev', join(world.directory, name), '-lsl', '/images/ignition.img'];
    const listed = execFileSync('xorriso', args, { encoding: 'utf8', stdio: 'pipe' });
    return Number(/^-\S+\s+\d+\s+\S+\s+\S+\s+(\d+)/m.exec(listed)?.[1]);
  };

  test('has the chosen size, and the ISO has the planned size to the byte', async () => {
    for (const [name, size, args] of [
      ['default.iso', MIB, []],
      ['wide.iso', 3 * MIB, WIDE],
    ] as const) {
      const plan = JSON.parse(await done('plan', ...args, '-o', 'json')) as {
        readonly isoSize: number;
        readonly ignitionArea: { readonly size: number; readonly used: number };
        readonly base: { readonly osStream?: string };
      };
      expect(plan.ignitionArea.size).toBe(size);
      expect(plan.base.osStream).toBe('rhel-9');
      expect(plan.isoSize).toBe(await sizeOf(name));
      expect(areaOf(name)).toBe(size);
      const inspected = JSON.parse(await done('inspect', name, '-o', 'json')) as object;
      expect(inspected).toMatchObject({ coreos: { embedArea: { size } } });
    }
    expect(await done('plan', ...WIDE)).toMatch(/^Ignition area {2}.* of 3\.0 MiB used$/m);
  });

  test('has the same size with and without values, and never grows', async () => {
    const values = ['--set', `sshKey=${TEST_SSH_KEY}`];
    await done('build', '--set', 'build.ignitionArea=3MiB', ...values, '--output', 'built.iso');
    expect(areaOf('built.iso')).toBe(areaOf('wide.iso'));
    await done('customize', 'wide.iso', '--ssh-key', TEST_SSH_KEY, '--output', 'site.iso');
    await expectSameValues(join(world.directory, 'site.iso'), join(world.directory, 'built.iso'));
    await done(
      'customize',
      'wide.iso',
      '--ignition-override',
      'large.ign',
      '--output',
      'large.iso',
    );
    expect([areaOf('large.iso'), await sizeOf('large.iso')]).toEqual([
      3 * MIB,
      await sizeOf('wide.iso'),
    ]);
  });

  test('refuses a config that does not fit, with both sizes, and leaves the ISO unchanged', async () => {
    const before = execFileSync('sha256sum', [join(world.directory, 'default.iso')]).toString();
    const args = ['customize', 'default.iso', '--ignition-override', 'large.ign', '--in-place'];
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining('[customize.too-large]')]);
    expect(stderr).toMatch(/takes 1\d{6} bytes, but its area has 1048576/);
    const after = execFileSync('sha256sum', [join(world.directory, 'default.iso')]).toString();
    expect(after).toBe(before);
  });

  test('cannot have a size with which no machine would boot', async () => {
    const flag = await world.run('plan', '--ignition-area', '65MiB');
    expect([flag.exitCode, flag.stderr]).toEqual([
      2,
      expect.stringContaining('[usage.ignition-area]'),
    ]);
    const set = await world.run('plan', '--set', 'build.ignitionArea=100KiB');
    expect([set.exitCode, set.stderr]).toEqual([
      3,
      expect.stringContaining('must be from 256KiB to 64MiB, but is 100KiB'),
    ]);
  });
});

const WIDE = ['--ignition-area', '3MiB'];
