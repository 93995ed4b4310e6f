import {
  copyFile,
  mkdir,
  open,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digestFile } from '../../src/base/disk/files.ts';
import { findDiskTools } from '../../src/openshift/release/boot-partition.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { makeMetalImage, METAL_PARTITIONS } from '../support/metal-image.ts';
import { askTool, requireTool } from '../support/tools.ts';

type Part = { readonly name: string; readonly offset: number; readonly size: number };

let world: LiveWorld;
/** Progress of the first build. */
let told = '';
const at = (name: string): string => join(world.directory, name);

const INPUTS = ['--metal-image', 'metal.raw', '--base-iso', 'test.iso'];
const build = (...more: readonly string[]): Promise<Outcome> =>
  world.run('build', 'disk-image', ...INPUTS, ...more);

async function expectDone(...more: readonly string[]): Promise<Outcome> {
  const outcome = await build(...more);
  expect([outcome.exitCode, outcome.stderr]).toEqual([0, expect.not.stringContaining('error')]);
  return outcome;
}

const listParts = async (): Promise<readonly Part[]> => {
  const text = await readFile(at('appliance.raw.report.json'), 'utf8');
  return (JSON.parse(text) as { readonly partitions: readonly Part[] }).partitions;
};

/** Copies a part of the image to a file of its own. */
async function cut(image: string, { name, offset, size }: Part): Promise<string> {
  const path = at(`${name}.part`);
  const file = await open(image, 'r');
  const { buffer } = await file.read(Buffer.alloc(size), 0, size, offset);
  await file.close();
  await writeFile(path, buffer);
  return path;
}

const [, , BOOT] = METAL_PARTITIONS;
const BOOT_PART = { name: 'boot', offset: BOOT.start << 20, size: BOOT.size << 20 };

const hasTools = ['sgdisk', 'mkfs.ext4', 'mkfs.vfat', 'debugfs', 'qemu-img', 'bsdtar']
  .map(requireTool)
  .every(Boolean);

beforeAll(async () => {
  if (!hasTools) return;
  world = await createLiveWorld();
  await world.writeConfig();
  await makeMetalImage(world.directory);
  ({ stderr: told } = await expectDone());
});
afterAll(() => (hasTools ? world.close() : undefined));

describe.skipIf(!hasTools)('a disk image', () => {
  test('has partition tables that sgdisk and sfdisk accept', () => {
    expect(askTool('sgdisk', '-v', at('appliance.raw'))).toContain('No problems found');
    expect(askTool('sfdisk', '--verify', at('appliance.raw'))).toContain('No errors detected');
    const parts = askTool('sfdisk', '-d', at('appliance.raw'));
    expect(parts).toContain('label-id: 00000000-0000-4000-A000-000000000001');
    expect([...parts.matchAll(/name="([^"]*)"/g)].map(([, name]) => name)).toEqual([
      'BIOS-BOOT',
      'EFI-SYSTEM',
      'boot',
      'root',
      'agentboot',
      'agentdata',
    ]);
    expect(parts).toMatch(
      /type=8DA63339-0007-60C0-C436-083AC8230908, uuid=[-0-9A-F]{36}, name="agentboot"/,
    );
    expect(parts).toMatch(/name="BIOS-BOOT", attrs="LegacyBIOSBootable"/);
  });

  test('has our menu entry alone in a boot file system that e2fsck accepts', async () => {
    const boot = await cut(at('appliance.raw'), BOOT_PART);
    askTool('e2fsck', '-fn', boot);
    const menu = askTool('debugfs', '-R', 'cat /grub2/grub.cfg', boot);
    expect(menu).toMatch(/^# menu of CoreOS\n/);
    expect(menu).toContain("set default='Agent-Based Installer'\nset timeout=10\n");
    expect(menu).toContain('coreos.liveiso=agentboot');
    expect(askTool('debugfs', '-R', 'ls -p /loader/entries', boot)).not.toContain('.conf');
    expect(askTool('debugfs', '-R', 'stat /grub2/grub.cfg', boot)).toMatch(/Mode: {2}0644/);
  });

  test('has ISO images with the labels of its partitions, which other programs read', async () => {
    const [, recovery, data] = await listParts();
    if (!recovery || !data) throw new Error('no partitions');
    for (const part of [recovery, data]) {
      const path = await cut(at('appliance.raw'), part);
      expect(askTool('blkid', '-p', '-o', 'value', '-s', 'LABEL', path).trim()).toBe(part.name);
    }
    const recoveryFiles = askTool('bsdtar', '-tf', at('agentboot.part'));
    expect(recoveryFiles).toContain('images/pxeboot/vmlinuz');
    expect(recoveryFiles).not.toContain('registry/');
    const dataFiles = askTool('bsdtar', '-tf', at('agentdata.part'));
    expect(dataFiles).toContain('registry/images/registry/manifest.json');
    expect(dataFiles).not.toContain('vmlinuz');
  });

  test('is sparse, and its bytes on the disk are at most 1.01 of its contents', async () => {
    const text = await readFile(at('appliance.raw.report.json'), 'utf8');
    const report = JSON.parse(text) as {
      readonly contentSize: number;
      readonly bytes: { readonly written: number };
    };
    const { size, blocks } = await stat(at('appliance.raw'));
    expect(size % 2 ** 30).toBe(0);
    // Small: blocks of the file system count, and gaps of less than 64 KiB.
    const most = 1.01 * report.contentSize + 512 * 1024;
    expect(report.bytes.written).toBeLessThanOrEqual(most);
    expect(blocks * 512).toBeLessThanOrEqual(most);
  });

  test('is verified whole, and inspected', async () => {
    const verified = await world.run('verify', 'appliance.raw');
    expect([verified.exitCode, verified.stdout]).toEqual([0, expect.stringContaining('whole')]);
    const { stdout } = await world.run('inspect', 'appliance.raw', '-o', 'json');
    const found = JSON.parse(stdout) as Record<string, { readonly product: string }>;
    expect(found['kind']).toBe('disk-image');
    expect(found['recovery']?.product).toBe('recovery-iso');
    expect(found['data']?.product).toBe('data-iso');
  });

  test('has the same bytes when it is built again from the start', async () => {
    const digest = await digestFile(at('appliance.raw'));
    await mkdir(at('again'));
    await expectDone('--output', 'again/appliance.raw', '--work-dir', 'again/work');
    expect(await digestFile(at('again/appliance.raw'))).toBe(digest);
    await rm(at('again'), { recursive: true });
  });

  test('is poured by a stage of its own name', () => {
    expect(told).toContain('pour disk image: done');
    expect(told).not.toContain('pour ISO');
  });

  test('is left as it is when nothing has changed', async () => {
    const { mtimeMs } = await stat(at('appliance.raw'));
    await expectDone();
    expect((await stat(at('appliance.raw'))).mtimeMs).toBe(mtimeMs);
  });

  test('is compared with what a build makes, by the options of the build', async () => {
    const reproduce = (...more: readonly string[]): Promise<Outcome> =>
      world.run('reproduce', 'appliance.raw', ...INPUTS, ...more);
    const { exitCode, stdout } = await reproduce();
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^appliance\.raw is equal: /m)]);
    const other = await reproduce('--size', '3');
    expect([other.exitCode, other.stdout]).toEqual([8, expect.stringMatching(/^size: \d+ bytes/m)]);
  });

  test('of a given size has that size, and a copy for QEMU with the same bytes', async () => {
    await expectDone('--output', 'sized.raw', '--size', '3', '--qcow2', 'sized.qcow2');
    expect((await stat(at('sized.raw'))).size).toBe(3 * 2 ** 30);
    expect(askTool('sgdisk', '-v', at('sized.raw'))).toContain('No problems found');
    expect(askTool('qemu-img', 'compare', at('sized.raw'), at('sized.qcow2'))).toContain(
      'identical',
    );
    const { blocks } = await stat(at('sized.raw'));
    expect(blocks * 512).toBeLessThan(64 << 20);
    const again = await build('--output', 'other.raw', '--qcow2', 'sized.qcow2');
    expect([again.exitCode, again.stderr]).toEqual([2, expect.stringContaining('[output.exists]')]);
  });

  test('whose build was killed when its copy for QEMU had its name is finished by the same command', async () => {
    const records = at('.sealift/finished');
    for (const name of await readdir(records))
      if (/^\w+\.json$/.test(name)) await rm(join(records, name)); // written last
    await expectDone('--output', 'sized.raw', '--size', '3', '--qcow2', 'sized.qcow2');
  });

  test('of another size replaces the copy for QEMU of the last build, but no other file', async () => {
    const sized = ['--output', 'sized.raw', '--size', '4'];
    await expectDone(...sized, '--qcow2', 'sized.qcow2');
    expect(askTool('qemu-img', 'compare', at('sized.raw'), at('sized.qcow2'))).toContain(
      'identical',
    );
    await writeFile(at('sized.qcow2'), 'foreign');
    const { exitCode, stderr } = await build(...sized, '--qcow2', 'sized.qcow2');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.exists]')]);
  });

  test.each(['verify', 'inspect', 'ls', 'customize --kargs-append quiet --output new.iso'])(
    'has a copy for QEMU that "%s" refuses by its format',
    async (command) => {
      askTool('qemu-img', 'create', '-q', '-f', 'qcow2', at('empty.qcow2'), '1M');
      const { exitCode, stdout, stderr } = await world.run(...command.split(' '), 'empty.qcow2');
      expect([exitCode, stdout]).toEqual([5, '']);
      expect(stderr).toContain('empty.qcow2 is a qcow2 copy of a disk');
      expect(stderr).toContain('[disk-image.qcow2]');
      expect(stderr).toContain('qemu-img convert -O raw');
      expect(stderr).not.toContain('ISO 9660');
    },
  );

  test('is not built again over a copy for QEMU that has grown over 2 GiB', async () => {
    const large = ['--output', 'large.raw', '--qcow2', 'large.qcow2'];
    await expectDone(...large);
    await truncate(at('large.qcow2'), 2 ** 31 + 512);
    const { exitCode, stderr } = await build(...large);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.exists]')]);
    await rm(at('large.qcow2'));
  });

  test("with secrets is its owner's alone, and so is its copy for QEMU", async () => {
    await world.writeConfig('userCorePass: four-words-of-test');
    await expectDone('--output', 'secret.raw', '--qcow2', 'new/secret.qcow2').finally(() =>
      world.writeConfig(),
    );
    const found = await Promise.all([stat(at('secret.raw')), stat(at('new/secret.qcow2'))]);
    expect(found.map(({ mode }) => mode & 0o777)).toEqual([0o600, 0o600]);
  });

  test.each(['', '.sha256', '.report.json', '.partial', '.partial.journal', '.lock'])(
    'refuses a copy for QEMU with the name of the output and "%s"',
    async (suffix) => {
      await rm(at('link'), { force: true });
      await symlink('.', at('link'));
      for (const folder of ['', 'link/']) {
        const args = ['--output', 'taken.raw', '--qcow2', `${folder}taken.raw${suffix}`, '--force'];
        const { exitCode, stderr } = await build(...args);
        expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.reserved]')]);
      }
      expect((await readdir(world.directory)).filter((name) => name.startsWith('taken'))).toEqual(
        [],
      );
    },
  );

  test.each([
    [['--size', '1', '--output', 'small.raw'], 0, ''],
    [['--metal-image', 'test.iso', '--output', 'b.raw'], 5, 'metal-image.'],
    [['--metal-image', 'none.raw', '--output', 'b.raw'], 3, 'metal image "'],
    [['--metal-image', 'http://a.example/b.raw', '--output', 'b.raw'], 2, 'usage.base-iso'],
    [['--output', 's3://bucket/key'], 2, 'usage.disk-output'],
    [['--size', '1.5'], 2, 'usage.size'],
  ])('asked for with %j ends with code %i', async (args, code, said) => {
    const { exitCode, stderr } = await build(...args);
    expect([exitCode, stderr]).toEqual([code, expect.stringContaining(said)]);
  });

  test('without the metal image is refused with a hint', async () => {
    const { exitCode, stderr } = await world.run('build', 'disk-image');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('usage.metal-image')]);
  });

  test('needs its programs before anything is fetched', async () => {
    const { signal } = new AbortController();
    await expect(findDiskTools({ qcow2: true, signal, path: '/nowhere' })).rejects.toThrow(
      expect.objectContaining({ code: 'disk-image.no-tool' }),
    );
  });

  test('of which a sample is verified has no damage, and its holes are not read', async () => {
    const { exitCode, stdout } = await world.run('verify', 'appliance.raw', '--quick');
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('outside of the sample')]);
  });

  test('on a larger disk is whole, with a note about the end of the disk', async () => {
    await copyFile(at('appliance.raw'), at('larger.raw'));
    const { size } = await stat(at('larger.raw'));
    await truncate(at('larger.raw'), size + (3 << 20));
    const file = await open(at('larger.raw'), 'r+');
    await file.write('of the last owner', size + 512);
    await file.close();
    const { exitCode, stdout } = await world.run('verify', 'larger.raw');
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('larger.raw is whole')]);
    expect(stdout).toContain(
      `note: the disk has ${size + (3 << 20)} bytes and the image on it ${size}`,
    );
    await rm(at('larger.raw'));
  });

  test.each([
    ['the boot file system', () => Promise.resolve(BOOT_PART.offset + 1024)],
    ['the boot code', () => Promise.resolve(100)],
    ['the protective MBR', () => Promise.resolve(460)],
    ['an entry of the partition table', () => Promise.resolve(1100)],
    ['the gap behind the partition table', () => Promise.resolve(100_000)],
    ['the backup partition table', async () => (await stat(at('appliance.raw'))).size - 400],
    ['the recovery ISO', async () => ((await listParts())[1]?.offset ?? 0) + 36_000],
    ['the registry', async () => ((await listParts())[2]?.offset ?? 0) + 500_000],
    ['the root partition', async () => (await listParts())[0]?.offset ?? 0],
  ])('with another byte in %s is reported as damaged', async (_, findOffset) => {
    const file = await open(at('appliance.raw'), 'r+');
    const offset = await findOffset();
    try {
      const { buffer } = await file.read(Buffer.alloc(1), 0, 1, offset);
      await file.write(Buffer.of((buffer[0] ?? 0) ^ 0xff), 0, 1, offset);
      const { exitCode, stdout } = await world.run('verify', 'appliance.raw');
      expect([exitCode, stdout]).toEqual([8, expect.stringContaining('damaged')]);
      await file.write(buffer, 0, 1, offset);
    } finally {
      await file.close();
    }
  });
});
