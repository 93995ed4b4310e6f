import { chmod, copyFile, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { digestFile } from '../../src/base/disk/files.ts';
import type { DeltaReport } from '../../src/media/delta/make.ts';
import { BUILT_PATH, readIndex, type IndexExtent } from '../../src/media/media-index.ts';
import { readDeltaHead } from '../../src/media/delta/file.ts';
import { useImage, useMedium } from '../../src/media/open.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { buildTwoNights, expectDone } from '../support/two-nights.ts';
import { requireTool } from '../support/tools.ts';

let world: LiveWorld;
let tuesday: string;

/** Monday's ISO, tuesday's in its place with other Ignition and one more kernel argument, and the delta. */
beforeAll(async () => {
  world = await createLiveWorld();
  await buildTwoNights(world, { replaces: true });
  tuesday = await digestFile(at('tuesday.iso'));
  await done('delta', 'monday.iso', 'tuesday.iso', '--output', 'night.delta');
});
afterAll(() => world.close());

const at = (name: string): string => join(world.directory, name);

const done = async (...args: readonly string[]): Promise<string> =>
  (await expectDone(world, ...args)).stdout;

/** What `delta` and `apply` report. */
async function report(...args: readonly string[]): Promise<DeltaReport> {
  return JSON.parse(await done(...args, '-o', 'json')) as DeltaReport;
}

async function expectRefused(old: string, code: string): Promise<void> {
  await rm(at('new.iso.partial'), { force: true }); // else what was verified already is not read again
  const args = ['apply', old, 'night.delta', '--output', 'new.iso'];
  const { exitCode, stderr } = await world.run(...args);
  expect([exitCode, stderr]).toEqual([5, expect.stringContaining(`[${code}]`)]);
  await expect(stat(at('new.iso'))).rejects.toThrow('ENOENT');
}

/** Of the index, with the digests of areas as they are. */
const extentsOf = (name: string): Promise<readonly IndexExtent[]> =>
  useMedium(at(name), (iso) =>
    readIndex(iso).then((index) =>
      Promise.all(
        (index?.extents ?? []).map(async ({ pristine, ...extent }) => {
          if (pristine === undefined) return extent;
          return { ...extent, digest: digestOf(await iso.readBytes(extent.offset, extent.size)) };
        }),
      ),
    ),
  );

/** `damaged.iso` is the ISO with other bytes there. */
async function damage(name: string, offset: number): Promise<void> {
  await copyFile(at(name), at('damaged.iso'));
  const file = await open(at('damaged.iso'), 'r+');
  await file.write(Buffer.from('damaged'), 0, 7, offset);
  await file.close();
}

describe('a delta', () => {
  test('makes the new ISO from the old one, byte for byte, with its checksum', async () => {
    const { digest } = await report('apply', 'monday.iso', 'night.delta', '--output', 'x.iso');
    expect(digest).toBe(tuesday);
    expect(await digestFile(at('x.iso'))).toBe(tuesday);
    expect(await readFile(at('x.iso.sha256'), 'utf8')).toBe(`${tuesday.slice(7)}  x.iso\n`);
    await done('verify', 'x.iso');
  });

  test('carries no byte that the old ISO has', async () => {
    const known = new Set((await extentsOf('monday.iso')).map(({ digest }) => digest));
    const isNew = ({ digest }: IndexExtent): boolean => digest === undefined || !known.has(digest);
    const sum = (extents: readonly IndexExtent[]): number =>
      extents.reduce((bytes, { size }) => bytes + size, 0);
    const extents = await extentsOf('tuesday.iso');
    const { carried, shared } = await report(
      'apply',
      'monday.iso',
      'night.delta',
      '--output',
      'x.iso',
    );
    expect([carried, carried + shared]).toEqual([sum(extents.filter(isNew)), sum(extents)]);
    expect(carried).toBeLessThan(shared);
  });

  test.skipIf(!requireTool('xdelta3'))(
    'carries at most 2 % more than the delta of xdelta3, besides its head and the copy of the built areas',
    async () => {
      const extents = await extentsOf('tuesday.iso');
      const args = ['-e', '-f', '-S', 'none', '-s', 'monday.iso', 'tuesday.iso', 'night.xdelta'];
      execFileSync('xdelta3', args, { cwd: world.directory });
      const { size } = await stat(at('night.xdelta'));
      const { size: copy } = extents.find(({ paths }) => paths.includes(BUILT_PATH)) ?? { size: 0 };
      const { bodySize } = await useImage(at('night.delta'), readDeltaHead);
      expect(bodySize - copy).toBeLessThanOrEqual(1.02 * size);
      expect((await stat(at('night.delta'))).size - bodySize).toBeLessThan(1200);
    },
  );

  test('between an ISO and itself carries no byte', async () => {
    const { carried } = await report('delta', 'monday.iso', 'monday.iso', '--output', 'no.delta');
    expect(carried).toBe(0);
    await done('apply', 'monday.iso', 'no.delta', '--output', 'same.iso');
    expect(await digestFile(at('same.iso'))).toBe(await digestFile(at('monday.iso')));
  });

  test('is as private as the ISO with secrets, and so is the ISO made with it', async () => {
    await copyFile(at('tuesday.iso'), at('secret.iso'));
    await chmod(at('secret.iso'), 0o600);
    await done('delta', 'monday.iso', 'secret.iso', '--output', 'secret.delta');
    await done('apply', 'monday.iso', 'secret.delta', '--output', 'made.iso');
    for (const name of ['secret.delta', 'made.iso']) {
      expect((await stat(at(name))).mode & 0o777).toBe(0o600);
    }
  });

  test('is refused for another ISO before a byte is written', async () => {
    await expectRefused('tuesday.iso', 'delta.other-iso');
    await expectRefused('test.iso', 'delta.no-index');
  });

  test('is refused if it was truncated, has other bytes, or is another kind of file', async () => {
    const bytes = await readFile(at('night.delta'));
    const flipped = Buffer.from(bytes);
    flipped.writeUInt8(flipped.readUInt8(bytes.length - 9) ^ 1, bytes.length - 9);
    try {
      for (const [content, code] of [
        [bytes.subarray(0, bytes.length - 1), 'delta.malformed'],
        [bytes.subarray(0, 100), 'delta.malformed'],
        [bytes.subarray(0, 10), 'delta.malformed'],
        [Buffer.from('sealift delta 1 99999999\n'.padEnd(64)), 'delta.malformed'],
        [Buffer.from(`${'sealift delta 1 2\n'.padEnd(64)}{}`), 'delta.malformed'],
        [await readFile(at('test.iso')), 'delta.malformed'],
        [flipped, 'extent.wrong-digest'],
      ] as const) {
        await writeFile(at('night.delta'), content);
        await expectRefused('monday.iso', code);
      }
    } finally {
      await writeFile(at('night.delta'), bytes);
    }
  });

  test('does not make an ISO from an old one with damaged bytes', async () => {
    const shared = (await extentsOf('monday.iso')).find(({ paths }) =>
      paths.some((path) => path.includes('/blobs/')),
    );
    await damage('monday.iso', shared?.offset ?? 0);
    await expectRefused('damaged.iso', 'extent.wrong-digest');
  });

  test('is not made from a new ISO with damaged bytes', async () => {
    const known = new Set((await extentsOf('monday.iso')).map(({ digest }) => digest));
    const carried = (await extentsOf('tuesday.iso')).find(
      ({ digest, paths }) =>
        !known.has(digest) && paths.includes('/images/bootstrap-appliance.img'),
    );
    await damage('tuesday.iso', carried?.offset ?? 0);
    const args = ['delta', 'monday.iso', 'damaged.iso', '--output', 'd.delta'];
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining('[extent.wrong-digest]')]);
    await expect(stat(at('d.delta'))).rejects.toThrow('ENOENT');
  });

  test('replaces only a delta or an ISO of sealift', async () => {
    await writeFile(at('mine'), 'a text');
    const args = ['delta', 'monday.iso', 'tuesday.iso', '--output'];
    expect((await world.run(...args, 'mine')).stderr).toContain('[output.exists]');
    expect((await world.run(...args, 'monday.iso', '--force')).stderr).toContain(
      '[output.is-input]',
    );
    await truncate(at('night.delta'), 200 * 1024 * 1024); // as large as real ones
    await done(...args, 'night.delta');
  });
});
