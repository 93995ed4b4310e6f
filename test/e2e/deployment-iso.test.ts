import { mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digestFile } from '../../src/base/disk/files.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { makeMetalImage, METAL_PARTITIONS } from '../support/metal-image.ts';
import { askTool, requireTool } from '../support/tools.ts';

let world: LiveWorld;
const at = (name: string): string => join(world.directory, name);

const SCRIPT = ['--post-script', 'power-off.sh'];
const INPUTS = ['--metal-image', 'metal.raw', '--base-iso', 'test.iso'];
const build = (...more: readonly string[]): Promise<Outcome> =>
  world.run('build', 'deployment-iso', ...INPUTS, ...more);

async function expectDone(outcome: Promise<Outcome>): Promise<Outcome> {
  const done = await outcome;
  expect([done.exitCode, done.stderr]).toEqual([0, expect.not.stringContaining('error')]);
  return done;
}

type Report = {
  readonly isoSize: number;
  readonly diskSize: number;
  readonly bytes: { readonly written: number };
  readonly contentSize: number;
};

const readReport = async (): Promise<Report> =>
  JSON.parse(await readFile(at('deployment.iso.report.json'), 'utf8')) as Report;

type Ignition = {
  readonly systemd: { readonly units: readonly unknown[] };
  readonly storage: {
    readonly files: readonly {
      readonly path: string;
      readonly contents: { readonly source: string };
    }[];
  };
};

async function readIgnition(iso: string) {
  const { stdout: config } = await world.run('ignition', 'show', iso);
  const { systemd, storage } = JSON.parse(config) as Ignition;
  const files = new Map(
    storage.files.map(({ path, contents }) => [path, decodeSource(contents.source)]),
  );
  return { config, units: systemd.units, files };
}

const decodeSource = (source: string): string => {
  const [, base64] = source.split(';base64,');
  return base64 === undefined
    ? decodeURIComponent(source.replace(/^data:[^,]*,/, ''))
    : Buffer.from(base64, 'base64').toString('utf8');
};

/** By xorriso: the first block of the file. */
function findDiskStart(): number {
  const text = askTool(
    ...(['xorriso', '-indev', at('deployment.iso')] as const),
    ...['-find', '/deploy', '-type', 'f', '-exec', 'report_lba'],
  );
  const [, block] = /^File data lba: +\d+ , +(\d+) ,/m.exec(text) ?? [];
  return Number(block) * 2048;
}

const hasTools = ['sgdisk', 'mkfs.ext4', 'mkfs.vfat', 'debugfs', 'bsdtar', 'xorriso', 'e2fsck']
  .map(requireTool)
  .every(Boolean);

beforeAll(async () => {
  if (!hasTools) return;
  world = await createLiveWorld();
  await world.writeConfig();
  await makeMetalImage(world.directory);
  await writeFile(at('power-off.sh'), '#!/bin/sh\nsystemctl poweroff\n');
  await expectDone(build('--target-device', '/dev/vdb', ...SCRIPT));
});
afterAll(() => (hasTools ? world.close() : undefined));

describe.skipIf(!hasTools)('a deployment ISO', () => {
  test('carries the disk image with the bytes that "build disk-image" makes', async () => {
    await expectDone(world.run('build', 'disk-image', ...INPUTS, '--output', 'appliance.raw'));
    askTool('bsdtar', '-xf', at('deployment.iso'), '-C', world.directory, 'deploy/appliance.raw');
    const disk = at('deploy/appliance.raw');
    expect(await digestFile(disk)).toBe(await digestFile(at('appliance.raw')));
    expect(askTool('sgdisk', '-v', disk)).toContain('No problems found');
    const [, , boot] = METAL_PARTITIONS;
    const part = ['bs=1M', `skip=${boot.start}`, `count=${boot.size}`, 'status=none'];
    askTool('dd', `if=${disk}`, `of=${at('boot.part')}`, ...part);
    askTool('e2fsck', '-fn', at('boot.part'));
    await rm(at('deploy'), { recursive: true });
  });

  test('is a bootable ISO with one more file, as xorriso reads it', () => {
    const list = (iso: string): readonly string[] =>
      askTool('xorriso', '-indev', iso, '-find', '/', '-type', 'f').trim().split('\n').sort();
    const added = list(at('deployment.iso')).filter((path) => !list(at('test.iso')).includes(path));
    expect(added).toEqual([
      "'/deploy/appliance.raw'",
      "'/sealift/ignition.img'",
      "'/sealift/index.json'",
    ]);
    const boot = askTool('xorriso', '-indev', at('deployment.iso'), '-report_el_torito', 'plain');
    expect(boot).toBe(askTool('xorriso', '-indev', at('test.iso'), '-report_el_torito', 'plain'));
  });

  test('takes no more of this disk than its contents, and the work directory has no copy', async () => {
    const { bytes, contentSize } = await readReport();
    const { blocks } = await stat(at('deployment.iso'));
    const base = (await stat(at('test.iso'))).size;
    const most = 1.01 * (contentSize + base) + 1024 * 1024;
    expect(bytes.written).toBeLessThanOrEqual(most);
    expect(blocks * 512).toBeLessThanOrEqual(most);
    const others = await readdir(at('.sealift'), { recursive: true });
    expect(others.filter((name) => /\.raw$|\.iso$/.test(name))).toEqual([]);
  });

  test('has the program that writes the disk in its Ignition config', async () => {
    const { units, files } = await readIgnition('deployment.iso');
    expect(units).toEqual([expect.objectContaining({ name: 'deploy.service', enabled: true })]);
    expect([...files.keys()]).toEqual(['/usr/local/bin/deploy.sh', '/usr/local/bin/power-off.sh']);
    expect(files.get('/usr/local/bin/power-off.sh')).toBe('#!/bin/sh\nsystemctl poweroff\n');
    const script = files.get('/usr/local/bin/deploy.sh') ?? '';
    expect(script).toContain("readonly named='/dev/vdb'\n");
    expect(script).toContain("dry_run='no'\n");
    const { diskSize } = await readReport();
    expect(script).toContain(`readonly image_blocks='${diskSize / 512}'\n`);
  });

  test('is verified whole, and inspected with the disk image on it', async () => {
    const verified = await world.run('verify', 'deployment.iso');
    expect([verified.exitCode, verified.stdout]).toEqual([0, expect.stringContaining('whole')]);
    const { stdout } = await world.run('inspect', 'deployment.iso', '-o', 'json');
    const found = JSON.parse(stdout) as {
      readonly product: string;
      readonly disk: Record<string, { readonly product: string }>;
    };
    expect(found.product).toBe('deployment-iso');
    expect(found.disk['recovery']?.product).toBe('recovery-iso');
    expect(found.disk['data']?.product).toBe('data-iso');
    const { stdout: text } = await world.run('inspect', 'deployment.iso');
    expect(text).toMatch(/agentdata: .* from byte/);
  });

  test('has the same bytes when it is built again from the start', async () => {
    const digest = await digestFile(at('deployment.iso'));
    const given = ['--target-device', '/dev/vdb', ...SCRIPT];
    await mkdir(at('again'));
    await expectDone(
      build(...given, '--output', 'again/deployment.iso', '--work-dir', 'again/work'),
    );
    expect(await digestFile(at('again/deployment.iso'))).toBe(digest);
    await rm(at('again'), { recursive: true });
  });

  test('is left as it is when nothing has changed', async () => {
    const { mtimeMs } = await stat(at('deployment.iso'));
    await expectDone(build('--target-device', '/dev/vdb', ...SCRIPT));
    expect((await stat(at('deployment.iso'))).mtimeMs).toBe(mtimeMs);
  });

  test('is compared with what a build makes, by the options of the build', async () => {
    const reproduce = (disk: string): Promise<Outcome> =>
      world.run('reproduce', 'deployment.iso', ...INPUTS, '--target-device', disk, ...SCRIPT);
    const { stdout } = await expectDone(reproduce('/dev/vdb'));
    expect(stdout).toMatch(/^deployment\.iso is equal: a build makes the same /m);
    const other = await reproduce('/dev/vdc');
    expect([other.exitCode, other.stdout]).toEqual([
      8,
      expect.stringMatching(/^rendered: \d+ bytes at \d+ differ: \/sealift\/ignition\.img$/m),
    ]);
  });

  test('that another disk is named for keeps the disk image, and changes its Ignition config', async () => {
    await expectDone(build('--sparse-clone', '--output', 'other.iso'));
    const script = (await readIgnition('other.iso')).files.get('/usr/local/bin/deploy.sh') ?? '';
    expect(script).toContain("readonly named='/dev/sda'\n");
    expect(script).toContain("readonly sparse='yes'\n");
    const { stdout } = await world.run('plan', 'deployment-iso', ...INPUTS, '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({
      product: 'deployment-iso',
      targetDevice: '/dev/sda',
    });
  });

  test.each([
    [['--target-device', 'sda'], 2, 'usage.target-device'],
    [['--target-device', "/dev/s'da"], 2, 'usage.target-device'],
    [['--post-script', 'none.sh'], 3, 'none.sh'],
    [['--post-script', 'deploy.sh'], 2, 'usage.post-script'],
    [['--post-script', 'a b.sh'], 2, 'usage.post-script'],
    [['--dry-run'], 2, 'usage.dry-run'],
  ])('asked for with %j ends with code %i', async (args, code, said) => {
    const { exitCode, stderr } = await build('--output', 'b.iso', ...args);
    expect([exitCode, stderr]).toEqual([code, expect.stringContaining(said)]);
  });

  test.each([
    ['the partition table of the disk image', 1100],
    ['the hole in front of the root partition', 200 << 20],
    ['the registry', -(2 << 20)],
  ])('with another byte in %s is reported as damaged', async (_, within) => {
    const { disk } = JSON.parse(
      (await world.run('inspect', 'deployment.iso', '-o', 'json')).stdout,
    ) as { readonly disk: { readonly size: number } };
    const start = findDiskStart();
    const offset = start + (within < 0 ? disk.size + within : within);
    const file = await open(at('deployment.iso'), 'r+');
    try {
      const { buffer } = await file.read(Buffer.alloc(1), 0, 1, offset);
      await file.write(Buffer.of((buffer[0] ?? 0) ^ 0xff), 0, 1, offset);
      const { exitCode, stdout } = await world.run('verify', 'deployment.iso');
      expect([exitCode, stdout]).toEqual([8, expect.stringContaining('damaged')]);
      await file.write(buffer, 0, 1, offset);
    } finally {
      await file.close();
    }
  });
});

describe.skipIf(!hasTools)('a deployment ISO for a dry run', () => {
  test('is made if core can log in, and its program writes nothing by itself', async () => {
    await world.writeConfig(
      `  embed: { pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}' }`,
      'userCorePass: "secret-of-core"',
    );
    await expectDone(build('--dry-run', '--output', 'dry.iso'));
    const { config, files } = await readIgnition('dry.iso');
    expect(config).toMatch(/"passwordHash":"\$6\$/);
    expect(files.get('/usr/local/bin/deploy.sh')).toContain("dry_run='yes'\n");
  });

  test('is not pushed without consent: the disk image on it has a pull secret', async () => {
    const { exitCode, stderr } = await world.run('push', 'dry.iso', 'oci://127.0.0.1:1/a/b:c');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.allow-secrets]')]);
    expect(stderr).toContain('a password, a pull secret');
  });
});
