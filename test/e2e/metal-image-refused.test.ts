import { execFileSync } from 'node:child_process';
import { mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { makeMetalImage, METAL_PARTITIONS } from '../support/metal-image.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['sgdisk', 'mkfs.ext4', 'mkfs.vfat', 'debugfs', 'xz']
  .map(requireTool)
  .every(Boolean);

const [, , BOOT] = METAL_PARTITIONS;
const BOOT_START = BOOT.start << 20;

let world: LiveWorld;
beforeAll(async () => {
  if (!hasTools) return;
  world = await createLiveWorld();
  await world.writeConfig();
});
afterAll(() => (hasTools ? world.close() : undefined));

/** Builds with a metal image that has other bytes, and returns what is said. */
async function refuse(
  { at, size }: { readonly at: number; readonly size: number },
  pack = false,
): Promise<string> {
  const path = await makeMetalImage(world.directory, { name: 'bad.raw' });
  const file = await open(path, 'r+');
  await file.write(Buffer.alloc(size, 0xa5), 0, size, at);
  await file.close();
  if (pack) execFileSync('xz', ['-f', '-0', path]);
  const metal = pack ? 'bad.raw.xz' : 'bad.raw';
  const { exitCode, stderr } = await world.run(
    ...['build', 'disk-image', '--metal-image', metal, '--base-iso', 'test.iso'],
  );
  expect([exitCode, stderr]).toEqual([5, expect.stringContaining('[metal-image.')]);
  return stderr.slice(stderr.indexOf('error: '));
}

describe.skipIf(!hasTools)('a metal image', () => {
  test.each([
    ['group descriptors', 4096, 64],
    ['inode tables', 34 * 4096, 12_288],
    ['super block and inodes', 4096, 1 << 20],
  ])('with damaged %s is refused with the reason of e2fsck', async (_, from, size) => {
    const said = await refuse({ at: BOOT_START + from, size });
    expect(said).toMatch(/partition "boot" of the metal image is damaged: e2fsck reports ".+" \[/);
    expect(said).toContain('[metal-image.boot-filesystem]');
    expect(said).not.toMatch(/e2fsck \d|debugfs \d|\? no|exit code/);
    expect(said).not.toContain(world.directory);
  });

  test('with a wrong CRC is refused without values that are equal', async () => {
    const said = await refuse({ at: 512 + 88, size: 4 });
    expect(said).toContain('has a wrong CRC [metal-image.malformed-gpt]');
    expect(said).not.toMatch(/expected:|found:/);
  });

  test('that was packed is named as the user named it', async () => {
    const said = await refuse({ at: 512, size: 8 }, true);
    expect(said).toMatch(/metal image \S+\/bad\.raw\.xz has no GUID partition table/);
    expect(said).not.toContain('.sealift');
  });
});

test.skipIf(!hasTools)(
  'a disk larger than any file leaves nothing in the output folder',
  async () => {
    await makeMetalImage(world.directory);
    await mkdir(join(world.directory, 'out'));
    const { exitCode, stderr } = await world.run(
      ...['build', 'disk-image', '--metal-image', 'metal.raw', '--base-iso', 'test.iso'],
      ...['--output', 'out/disk.raw', '--size', '65536', '--work-dir', 'work'],
    );
    expect([exitCode, stderr]).toEqual([7, expect.stringContaining('[output.too-large]')]);
    expect(await readdir(join(world.directory, 'out'))).toEqual([]);
  },
);
