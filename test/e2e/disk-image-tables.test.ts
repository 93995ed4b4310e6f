import { open, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { makeMetalImage } from '../support/metal-image.ts';
import { askTool, requireTool } from '../support/tools.ts';

let world: LiveWorld;
const at = (name: string): string => join(world.directory, name);
/** Verifies a copy of the image that a program has changed. */
async function verifyChanged(program: string, ...args: readonly string[]): Promise<Outcome> {
  askTool('cp', '--sparse=always', at('appliance.raw'), at('changed.raw'));
  try {
    askTool(program, ...args, at('changed.raw'));
    return await world.run('verify', 'changed.raw');
  } finally {
    await rm(at('changed.raw'));
  }
}

const hasTools = ['sgdisk', 'mkfs.ext4', 'mkfs.vfat', 'debugfs'].map(requireTool).every(Boolean);

beforeAll(async () => {
  if (!hasTools) return;
  world = await createLiveWorld();
  await world.writeConfig();
  await makeMetalImage(world.directory);
  const args = ['build', 'disk-image', '--metal-image', 'metal.raw', '--base-iso', 'test.iso'];
  const { exitCode, stderr } = await world.run(...args);
  expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('error')]);
});
afterAll(() => (hasTools ? world.close() : undefined));

describe.skipIf(!hasTools)('the partition tables of a disk image', () => {
  test('are as built if sgdisk has only moved the copy to where it was', async () => {
    const { exitCode, stdout } = await verifyChanged('sgdisk', '-e');
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('whole')]);
  });

  test.each([
    ['without a partition', ['-d', '2']],
    ['with another partition', ['-n', '7:300000:+1M']],
    ['with another name of a partition', ['-c', '2:EFI']],
    ['with another type of a partition', ['-t', '3:8200']],
    ['with another attribute of a partition', ['-A', '2:set:0']],
    ['with another GUID of a partition', ['-u', '6:R']],
    ['with another GUID of the disk', ['-U', 'R']],
  ])('%s and right CRCs are damage', async (_, args) => {
    const { exitCode, stdout } = await verifyChanged('sgdisk', ...args);
    expect([exitCode, stdout]).toEqual([8, expect.stringContaining('differs from the disk image')]);
  });
});

describe.skipIf(!hasTools)('a damaged disk image', () => {
  /** Writes another first or last block of the last partition into its entry. */
  const misplace = (field: number, block: bigint) => async (): Promise<void> => {
    const file = await open(at('changed.raw'), 'r+');
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(block);
    await file.write(bytes, 0, 8, 1024 + 5 * 128 + field);
    await file.close();
  };
  const resize = (change: (size: number) => number) => async (): Promise<void> => {
    await truncate(at('changed.raw'), change((await stat(at('changed.raw'))).size));
  };

  test.each([
    ['with 100 bytes more', resize((size) => size + 100), 'its tables are for'],
    ['with 100 bytes less', resize((size) => size - 100), 'backup partition table'],
    ['cut to 500 MiB', resize(() => 500 << 20), 'partition agentdata begins at byte'],
    ['cut in its last partition', resize((size) => size - (3 << 19)), 'agentdata ends at byte'],
    ['whose partition ends before it begins', misplace(40, 1n), 'is in front of its first'],
    ['whose partition begins at 2^63', misplace(32, 1n << 63n), 'partition agentdata'],
    ['whose partition ends past the end', misplace(40, 1n << 40n), 'agentdata ends at byte'],
  ])('%s is called damaged', async (_, damage, said) => {
    askTool('cp', '--sparse=always', at('appliance.raw'), at('changed.raw'));
    await damage();
    const { exitCode, stdout, stderr } = await world.run('verify', 'changed.raw');
    const inspected = await world.run('inspect', 'changed.raw');
    expect([exitCode, stderr]).toEqual([8, expect.stringContaining('[verify.differences]')]);
    expect(stdout).toContain(said);
    expect(stdout).toContain('damaged');
    expect(stdout).not.toMatch(/ -\d|bytes 0 to 4194303/);
    expect(inspected.stderr).not.toContain('delta');
    expect([0, 5]).toContain(inspected.exitCode);
    await rm(at('changed.raw'));
  });
});
