import { execFileSync } from 'node:child_process';
import { copyFile, open, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { digestFile } from '../../src/base/disk/files.ts';
import { readIndex, type IndexExtent } from '../../src/media/media-index.ts';
import { useMedium } from '../../src/media/open.ts';
import type { RepairReport } from '../../src/media/repair/repair.ts';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { mayMount } from '../support/may-mount.ts';
import { startNginx } from '../support/nginx.ts';
import { freePort } from '../support/local-http.ts';
import { requireTool } from '../support/tools.ts';

let world: LiveWorld;
let whole: string;
let extents: readonly IndexExtent[];

const at = (name: string): string => join(world.directory, name);

/** Monday's ISO, and tuesday's in its place with other Ignition. */
beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
  await build('monday.iso');
  await copyFile(at('monday.iso'), at('tuesday.iso'));
  await world.writeConfig('  kernelArguments: [debug]', 'stopLocalRegistry: true');
  await build('tuesday.iso');
  whole = await digestFile(at('tuesday.iso'));
  extents = await useMedium(
    at('tuesday.iso'),
    async (iso) => (await readIndex(iso))?.extents ?? [],
  );
});
afterAll(() => world.close());
beforeEach(async () => {
  await copyFile(at('tuesday.iso'), at('x.iso'));
  await rm(at('x.iso.report.json'), { force: true });
});

async function build(output: string): Promise<void> {
  const { exitCode, stderr } = await world.run(
    'build',
    '--output',
    output,
    '--base-iso',
    'test.iso',
  );
  expect(exitCode, stderr).toBe(0);
}

const extentOf = (part: string): IndexExtent => {
  const found = extents.find(({ paths }) => paths.some((path) => path.includes(part)));
  if (!found) throw new Error(`no extent of ${part}`);
  return found;
};

/** Other bytes at these places of x.iso. */
async function damage(...offsets: readonly number[]): Promise<void> {
  const file = await open(at('x.iso'), 'r+');
  for (const offset of offsets) await file.write(Buffer.from('damaged!'), 0, 8, offset);
  await file.close();
}

async function repair(...from: readonly string[]): Promise<RepairReport & { exitCode: number }> {
  const words = from.flatMap((source) => ['--from', source]);
  const options = ['--config', 'appliance-config.yaml', '-o', 'json'];
  const { exitCode, stdout, stderr } = await world.run('repair', 'x.iso', ...words, ...options);
  if (stdout === '') throw new Error(stderr);
  return { ...(JSON.parse(stdout) as RepairReport), exitCode };
}

async function expectWhole(...from: readonly string[]): Promise<RepairReport> {
  const report = await repair(...from);
  expect(report).toMatchObject({ exitCode: 0, ok: true, problems: [], unrepaired: [] });
  expect(await digestFile(at('x.iso'))).toBe(whole);
  return report;
}

const blob = (): IndexExtent => extentOf('/blobs/sha256/');

describe('repair restores a damaged ISO, byte for byte,', () => {
  test('with an ISO of another night, which has the same blobs', async () => {
    const { offset, size, paths } = blob();
    await damage(offset + 9);
    const { damaged, bytes } = await expectWhole('monday.iso');
    expect(damaged).toEqual([
      {
        offset,
        size,
        path: paths[0],
        problem: 'does not match its digest in the index',
        source: at('monday.iso'),
        written: Math.min(size, 65536),
      },
    ]);
    expect(bytes.written).toBeLessThanOrEqual(65536);
  });

  test('with the registries of its images, except for bytes that the build itself made', async () => {
    const isData = ({ paths }: IndexExtent): boolean =>
      paths.some((path) => path.endsWith('/data'));
    await damage(...extents.filter(isData).map(({ offset }) => offset));
    const { damaged, unrepaired } = await repair('registries');
    expect(unrepaired.length).toBeLessThanOrEqual(3); // the release bundle: manifest, config and layer
    const { host } = world.registry;
    for (const { source } of damaged) if (source !== undefined) expect(source).toBe(host);
    expect(damaged.length).toBeGreaterThan(5);
    await expectWhole('monday.iso');
  });

  test('in structures, small files and zeros, with an ISO of the same build', async () => {
    const ends = extents.map(({ offset, size }) => offset + size);
    const starts = new Set(extents.map(({ offset }) => offset));
    const hole = ends.find((end) => !starts.has(end) && end < blob().offset) ?? 0;
    await damage(16 * 2048 + 100, 17 * 2048, hole, extentOf('bootstrap-appliance').offset);
    await expectWhole('tuesday.iso');
  });

  test('after it was truncated, even in the middle of a blob', async () => {
    const last = extents.filter(({ paths }) => paths.length > 0).at(-1) ?? blob();
    await truncate(at('x.iso'), last.offset + 5);
    await expectWhole('registries', 'tuesday.iso');
    await truncate(at('x.iso'), 40_000);
    await copyFile(at('tuesday.iso.report.json'), at('x.iso.report.json'));
    await expectWhole('tuesday.iso');
  });

  test.skipIf(!requireTool('nginx'))(
    'with an ISO of the same build that nginx serves',
    async () => {
      const port = await freePort();
      const nginx = await startNginx(at('web'), port);
      try {
        await copyFile(at('tuesday.iso'), at('web/files/tuesday.iso'));
        const index = extentOf('/sealift/index.json');
        const address = `http://127.0.0.1:${port}/tuesday.iso`;
        await damage(17 * 2048, extentOf('bootstrap-appliance').offset, index.offset + 4000);
        const { bytes } = await expectWhole('monday.iso', address);
        expect(bytes.read).toBeLessThan(extents.reduce((sum, { size }) => sum + size, 0) / 2);
      } finally {
        await nginx.kill();
      }
    },
  );

  test.skipIf(!mayMount())('on a device', async () => {
    await damage(17 * 2048, blob().offset);
    const device = execFileSync('losetup', ['--find', '--show', at('x.iso')], { encoding: 'utf8' });
    try {
      const args = ['--from', 'tuesday.iso', '--work-dir', 'work'];
      expect(await world.run('repair', device.trim(), ...args)).toMatchObject({ exitCode: 0 });
    } finally {
      execFileSync('losetup', ['--detach', device.trim()]);
    }
    expect(await digestFile(at('x.iso'))).toBe(whole);
  });

  test('with a damaged index, by the digest left in the index, or by its report', async () => {
    const index = extentOf('/sealift/index.json');
    await damage(index.offset + index.size - 3000);
    await expectWhole('monday.iso', 'tuesday.iso');
    const file = await open(at('x.iso'), 'r+');
    await file.write(new Uint8Array(index.size), 0, index.size, index.offset);
    await file.close();
    expect((await world.run('repair', 'x.iso', '--from', 'tuesday.iso')).stderr).toContain(
      '[repair.no-index]',
    );
    await copyFile(at('tuesday.iso.report.json'), at('x.iso.report.json'));
    await expectWhole('monday.iso', 'tuesday.iso');
  });
});

describe('repair', () => {
  test('writes nothing to a whole ISO', async () => {
    const { bytes } = await expectWhole('monday.iso');
    expect(bytes).toEqual({ damaged: 0, read: 0, written: 0 });
  });

  test('names the bytes that no source has, repairs the rest, and ends as verify does', async () => {
    const { offset } = extentOf('bootstrap-appliance');
    await damage(offset, blob().offset);
    const { exitCode, ok, unrepaired, damaged } = await repair('monday.iso');
    expect([exitCode, ok, damaged.length]).toEqual([8, false, 2]);
    expect(unrepaired).toMatchObject([{ offset, written: 0 }]);
    await expectWhole('tuesday.iso');
  });

  test('takes no byte of a damaged source', async () => {
    await copyFile(at('x.iso'), at('bad.iso'));
    const { offset } = blob();
    await damage(offset);
    await copyFile(at('x.iso'), at('bad.iso'));
    expect(await repair('bad.iso')).toMatchObject({ exitCode: 8, bytes: { written: 0 } });
    await expectWhole('bad.iso', 'monday.iso');
  });

  test('leaves no byte worse when it is killed in the middle of a write, and finishes when it runs again', async () => {
    await damage(...extents.filter(isLarge).map(({ offset }) => offset));
    const before = await readFile(at('x.iso'));
    const good = await readFile(at('tuesday.iso'));
    for (const count of [1, 3]) {
      const { code, stderr } = await startSealift(['repair', 'x.iso', '--from', 'tuesday.iso'], {
        cwd: world.directory,
        env: { NODE_OPTIONS: `--import=${KILLER}`, KILL_AT: String(count) },
      }).ended;
      expect(code, stderr).toBe(null);
      const now = await readFile(at('x.iso'));
      const worse = now.findIndex((byte, i) => byte !== before[i] && byte !== good[i]);
      expect([now.length, worse, now.equals(before)]).toEqual([good.length, -1, false]);
    }
    await expectWhole('tuesday.iso');
  });
});

const isLarge = ({ size, digest }: IndexExtent): boolean => digest !== undefined && size > 4096;

const KILLER = new URL('../support/kill-at-write.mjs', import.meta.url).href;
