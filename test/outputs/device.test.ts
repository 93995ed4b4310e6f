import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { findDevice, type BlockDevice } from '../../src/base/disk/block-device.ts';
import { openDeviceOutput } from '../../src/pour/device.ts';
import { claimDevice } from '../../src/outputs/device.ts';
import { attachLoop, mayAttachLoops, type LoopDevice } from '../support/loop-device.ts';
import { requireTool } from '../support/tools.ts';

const hasAll = ['losetup', 'mkfs.ext4'].map((tool) => requireTool(tool)).every(Boolean);

const claim = (device: BlockDevice, inputs: readonly string[] = [], force = true) =>
  claimDevice(device, { inputs, force });

describe.skipIf(!hasAll || !mayAttachLoops())('a block device', () => {
  let directory: string;
  let loop: LoopDevice | undefined;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-device-'));
  });
  afterEach(() => {
    loop?.detach();
    loop = undefined;
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  async function attach(size = 8 << 20, prepare: readonly string[] = [], ...options: string[]) {
    const image = join(directory, 'image');
    await rm(image, { force: true });
    await writeFile(image, '');
    await truncate(image, size);
    const [program, ...args] = prepare;
    if (program !== undefined) execFileSync(program, [...args, image], { stdio: 'ignore' });
    loop = attachLoop(image, options);
    const device = findDevice(loop.path);
    if (!device) throw new Error(`${loop.path} is not found`);
    return device;
  }

  it('has the same name, serial number and size through every link to it', async () => {
    const device = await attach(10 << 20);
    expect(device).toMatchObject({ serial: join(directory, 'image'), size: 10 << 20 });
    const link = join(directory, 'link');
    await symlink(device.path, link);
    expect(findDevice(link)).toEqual(device);
    expect(findDevice(join(directory, 'image'))).toBeUndefined();
    expect(findDevice(join(directory, 'none'))).toBeUndefined();
    expect(findDevice('/dev/null')).toBeUndefined();
  });

  it('may be overwritten by force when it is not in use', async () => {
    const device = await attach();
    await claim(device);
    await expect(claim(device, [], false)).rejects.toMatchObject({ code: 'device.force' });
  });

  it('is refused while a file system on it is mounted', async () => {
    const device = await attach(16 << 20, ['mkfs.ext4', '-q']);
    const where = join(directory, 'mounted here');
    await mkdir(where);
    execFileSync('mount', [device.path, where]);
    try {
      await expect(claim(device)).rejects.toMatchObject({
        code: 'device.mounted',
        message: expect.stringContaining(`is mounted at ${where}`) as string,
      });
    } finally {
      execFileSync('umount', [where]);
    }
    await claim(device);
  });

  it('is refused while it is used as swap', async (context) => {
    const device = await attach(8 << 20, ['mkswap']);
    if (spawnSync('swapon', [device.path]).status !== 0) return context.skip();
    try {
      await expect(claim(device)).rejects.toMatchObject({ code: 'device.swap' });
    } finally {
      execFileSync('swapoff', [device.path]);
    }
  });

  it('is refused when it is read-only, an input, or a partition', async () => {
    const device = await attach(8 << 20, [], '--read-only');
    await expect(claim(device)).rejects.toMatchObject({ code: 'device.read-only' });
    const usual = { ...device, isReadOnly: false };
    await expect(claim(usual, [device.path])).rejects.toMatchObject({ code: 'device.is-input' });
    const part = { ...usual, partOf: 'sdb' };
    await expect(claim(part)).rejects.toMatchObject({ code: 'device.partition' });
  });

  it('is refused when the file behind it is an input, or a partition of it', async (context) => {
    const device = await attach();
    const link = join(directory, 'link to image');
    await symlink(join(directory, 'image'), link);
    await expect(claim(device, [link])).rejects.toMatchObject({ code: 'device.is-input' });
    await claim(device, [directory]);
    execFileSync('addpart', [device.path, '1', '2048', '4096']);
    try {
      const part = `${device.path}p1`;
      if (!existsSync(part)) return context.skip();
      await expect(claim(device, [part])).rejects.toMatchObject({ code: 'device.is-input' });
    } finally {
      execFileSync('delpart', [device.path, '1']); // no device takes it along when it is detached
    }
  });

  it('is not poured into when another device of its size has its name by then', async () => {
    const device = await attach();
    const other = attachLoop(join(directory, 'image'));
    try {
      const changed = { ...device, path: other.path }; // of the same serial and size
      const opening = openDeviceOutput(
        changed,
        { size: 0, extents: [] },
        new SharedArrayBuffer(4096),
      );
      await expect(opening).rejects.toMatchObject({
        code: 'device.changed',
        expected: expect.stringContaining(`${device.serial}, ${device.size} bytes`) as string,
      });
    } finally {
      other.detach();
    }
  });
});

/** The device of the root directory, where it is one. */
const rootDevice = (): BlockDevice | undefined => {
  const line = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[4] === '/');
  const source = line?.split(' - ')[1]?.split(' ')[1] ?? '';
  return source.startsWith('/dev/') ? findDevice(source) : undefined;
};

it.skipIf(rootDevice() === undefined)('the disk of this system is refused by name', async () => {
  const found = rootDevice();
  const device = found?.partOf === undefined ? found : findDevice(`/dev/${found.partOf}`);
  if (!device) return;
  await expect(claim(device)).rejects.toMatchObject({
    code: 'device.system',
    message: expect.stringContaining(device.path) as string,
  });
});
