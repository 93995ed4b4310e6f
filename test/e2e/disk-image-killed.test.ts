import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SourceRegistry } from '../../demo/source-registry.ts';
import { digestFile, readAllocated } from '../../src/base/disk/files.ts';
import { startSealift, type Child } from '../support/child.ts';
import { type SlowRelease, startSlowRelease } from '../support/slow-release.ts';
import { makeMetalImage } from '../support/metal-image.ts';
import { requireTool } from '../support/tools.ts';

const MIB = 1024 * 1024;
const BLOBS = 16;
const BLOB_SIZE = 6 * MIB;
/** `npm run test:kills` kills at 20 moments. */
const MOMENTS = process.env['KILL_SEED'] === 'all' ? 20 : 4;
const hasTools = ['sgdisk', 'mkfs.ext4', 'mkfs.vfat', 'debugfs'].map(requireTool).every(Boolean);

describe.skipIf(!hasTools)('a disk image whose build is killed', () => {
  let release: SlowRelease;
  let directory: string;
  let registry: SourceRegistry;

  beforeAll(async () => {
    release = await startSlowRelease({ blobs: BLOBS, blobSize: BLOB_SIZE, lanes: 2 });
    ({ directory, registry } = release);
    await makeMetalImage(directory);
  });
  afterAll(() => release.close());

  const build = (name: string): Child =>
    startSealift(
      ['build', 'disk-image', '--metal-image', 'metal.raw'].concat([
        ...['--output', `${name}.raw`, '--work-dir', `work-${name}`, '--no-seed'],
      ]),
      { cwd: directory },
    );

  test(`at ${MOMENTS} moments has the bytes of one that ran through, and fetches little again`, async () => {
    const start = registry.bytesServed();
    const whole = await build('whole').ended;
    expect(whole.code, whole.stderr).toBe(0);
    const needed = registry.bytesServed() - start;
    const before = registry.bytesServed();
    for (let moment = 1; moment <= MOMENTS; moment += 1) {
      const child = build('killed');
      const goal = before + (moment * needed) / (MOMENTS + 1);
      while (registry.bytesServed() < goal && child.process.exitCode === null) {
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      child.process.kill('SIGKILL');
      await child.ended;
    }
    const { code, stderr } = await build('killed').ended;
    expect(code, stderr).toBe(0);
    const fetched = registry.bytesServed() - before;
    const report = JSON.parse(
      await readFile(join(directory, 'killed.raw.report.json'), 'utf8'),
    ) as { readonly contentSize: number };
    const allocated = await readAllocated(join(directory, 'killed.raw'));
    console.log(
      `kills: ${MOMENTS}; fetched again ${((fetched - needed) / MOMENTS / MIB).toFixed(1)} MiB a kill; ` +
        `on the disk ${(allocated / report.contentSize).toFixed(4)} of the contents`,
    );
    expect(await digestFile(join(directory, 'killed.raw'))).toBe(
      await digestFile(join(directory, 'whole.raw')),
    );
    // Two lanes lose their buffers, and what their connections held: a part of any real payload.
    expect((fetched - needed) / MOMENTS).toBeLessThanOrEqual(16 * MIB);
    expect(allocated / report.contentSize).toBeLessThanOrEqual(1.01);
  });
});
