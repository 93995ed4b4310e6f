import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checkIgnition, textFile } from '../../../src/ignition/index.ts';
import { renderDeploymentIgnition } from '../../../src/openshift/node/deployment.ts';
import { attachLoop, mayAttachLoops, type LoopDevice } from '../../support/loop-device.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot, type Run } from '../../support/throw-away-root.ts';
import { requireTool } from '../../support/tools.ts';

/** An image of 16 MiB whose partitions stand as those of a disk image do. */
const PLACES = {
  imageBlocks: 32_768,
  bootEnd: 8192,
  rootStart: 26_240,
  recoveryStart: 26_496,
  dataStart: 28_672,
  dataEnd: 30_720,
};
const PARTITIONS = [
  [1, 2048, 4095],
  [2, 4096, 6143],
  [3, 6144, 8191],
  [4, 26_240, 26_367],
  [5, 26_496, 28_543],
  [6, 28_672, 30_719],
] as const;
const NAMES = ['BIOS-BOOT', 'EFI-SYSTEM', 'boot', 'root', 'agentboot', 'agentdata'];

const OPTIONS = { targetDevice: '/dev/none', isSparse: false, isDryRun: false } as const;
const INPUT = { ...OPTIONS, places: PLACES, sshKeys: ['ssh-ed25519 AAAA'] };

const POST_SCRIPT = {
  name: 'after.sh',
  bytes: Buffer.from('#!/bin/sh\necho after the disk\nexit 9\n'),
};

/** Stand-ins for programs that ask udev and the kernel; `MEDIUM` and `MOUNTED` are their answers. */
const MACHINE = [
  ['udevadm', ''],
  ['sleep', ''],
  ['findmnt', 'echo "${MEDIUM:-/dev/sr0}"'],
  [
    'lsblk',
    `case "$*" in
      *PKNAME*) ;;
      *TYPE,TRAN*) echo the disks of the machine ;;
      *TYPE*) echo disk ;;
      *MOUNTPOINT*) echo "\${MOUNTED:-}" ;;
      *) echo /dev/sda ;;
    esac`,
  ],
].map(([name, body]) =>
  textFile(`/usr/local/bin/${name ?? ''}`, `#!/usr/bin/env bash\n${body ?? ''}\n`, 0o755),
);

describe('the Ignition config of a deployment ISO', () => {
  it('is valid, and lets core log in', () => {
    const config = renderDeploymentIgnition({
      ...INPUT,
      passwordHash: '$6$salt$hash',
      postScript: POST_SCRIPT,
    });
    expect(checkIgnition(config, 'config')).toEqual([]);
    expect(config.passwd?.users).toEqual([
      { name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA'], passwordHash: '$6$salt$hash' },
    ]);
    expect(config.storage?.files?.map(({ path, mode }) => [path, mode])).toEqual([
      ['/usr/local/bin/deploy.sh', 0o555],
      ['/usr/local/bin/after.sh', 0o755],
    ]);
  });
});

const canRun =
  hasThrowAwayRoot() && mayAttachLoops() && ['sgdisk', 'sfdisk', 'wipefs'].every(requireTool);

describe.skipIf(!canRun)('the program that writes the disk image', () => {
  const folder = mkdtempSync(join(tmpdir(), 'deploy-'));
  const image = join(folder, 'image');
  const disk = join(folder, 'disk');
  let medium: LoopDevice;
  let target: LoopDevice | undefined;

  beforeAll(() => {
    writeFileSync(image, '');
    truncateSync(image, PLACES.imageBlocks * 512);
    execFileSync('sgdisk', [
      ...['-Z', '-a', '1'],
      ...PARTITIONS.flatMap(([number, first, last], index) => [
        `-n${number}:${first}:${last}`,
        `-c${number}:${NAMES[index] ?? ''}`,
      ]),
      image,
    ]);
    const bytes = readFileSync(image);
    for (const [number, first, last] of PARTITIONS) {
      if (number !== 4) bytes.fill(`content of ${number} `, first * 512, (last + 1) * 512);
    }
    bytes.fill('boot code ', 0, 440);
    writeFileSync(image, bytes);
    medium = attachLoop(image, ['--read-only']);
  });
  afterAll(() => {
    medium.detach();
    rmSync(folder, { recursive: true });
  });

  beforeEach(() => {
    makeDisk(PLACES.imageBlocks);
  });
  afterEach(() => {
    target?.detach();
    target = undefined;
  });

  /** A disk full of other bytes. */
  function makeDisk(blocks: number): void {
    target?.detach();
    writeFileSync(disk, Buffer.alloc(blocks * 512, 'old '));
    target = attachLoop(disk);
  }

  const deploy = (
    options: Partial<Parameters<typeof renderDeploymentIgnition>[0]> = {},
    command = 'deploy.sh',
  ): Promise<Run> => {
    const config = renderDeploymentIgnition({
      ...INPUT,
      targetDevice: target?.path ?? '',
      ...options,
    });
    return runInThrowAwayRoot(
      [...(config.storage?.files ?? []), ...MACHINE],
      `mkdir --parents /run/media/iso/deploy
      dd if=${medium.path} of=/run/media/iso/deploy/appliance.raw bs=1M status=none
      ${command}`,
    );
  };

  const isOld = (): boolean =>
    readFileSync(disk).equals(Buffer.alloc(readFileSync(disk).length, 'old '));

  it('makes a disk of the same size equal to the image', async () => {
    const { stdout, stderr, exitCode } = await deploy();
    expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('deploy:')]);
    expect(stdout).toContain('has the disk image');
    expect(readFileSync(disk).equals(readFileSync(image))).toBe(true);
  });

  it('leaves the zeros of the image out for a sparse clone', async () => {
    await deploy({ isSparse: true });
    const [written, wanted] = [readFileSync(disk), readFileSync(image)];
    const hole = written.subarray(PLACES.bootEnd * 512, PLACES.rootStart * 512);
    expect(hole.equals(Buffer.alloc(hole.length, 'old '))).toBe(true);
    const data = [PLACES.recoveryStart * 512, PLACES.dataEnd * 512] as const;
    expect(written.subarray(...data).equals(wanted.subarray(...data))).toBe(true);
    expect(execFileSync('sgdisk', ['-v', disk], { encoding: 'utf8' })).toContain('No problems');
  });

  it.each([1, 2047, 2048, 100_003])(
    'gives partition root the room of a disk that has %i blocks more',
    async (more) => {
      makeDisk(PLACES.imageBlocks + more);
      expect(await deploy()).toMatchObject({ exitCode: 0 });
      const shift = Math.floor(more / 2048) * 2048;
      expect(execFileSync('sgdisk', ['-v', disk], { encoding: 'utf8' })).toContain('No problems');
      const [before, after] = [dump(image), dump(disk)];
      expect(after).toEqual(
        before.map((one) => {
          const { number, start } = one;
          if (number === 4) return { ...one, start: 8192, size: 26_368 + shift - 8192 };
          return { ...one, start: number > 4 ? start + shift : start };
        }),
      );
      const [written, wanted] = [readFileSync(disk), readFileSync(image)];
      expect(written.subarray(0, 440).equals(wanted.subarray(0, 440))).toBe(true);
      for (const [number, first, last] of PARTITIONS.filter(([number]) => number !== 4)) {
        const by = number > 4 ? shift : 0;
        const found = written.subarray((first + by) * 512, (last + 1 + by) * 512);
        expect(found.equals(wanted.subarray(first * 512, (last + 1) * 512))).toBe(true);
      }
    },
  );

  it('runs the post-script afterwards, whose exit status does not count', async () => {
    const { stdout, exitCode } = await deploy({ postScript: POST_SCRIPT });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/has the disk image[^]*after the disk\n[^]*exit status 9/);
  });

  it('shows the disks in a dry run and writes nothing', async () => {
    const { stdout, exitCode } = await deploy({ isDryRun: true, postScript: POST_SCRIPT });
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('the disks of the machine')]);
    expect(stdout).not.toContain('after the disk');
    expect(isOld()).toBe(true);
  });

  it('writes a disk that a person names after a dry run', async () => {
    const command = `deploy.sh ${target?.path ?? ''}`;
    expect(await deploy({ isDryRun: true }, command)).toMatchObject({ exitCode: 0 });
    expect(readFileSync(disk).equals(readFileSync(image))).toBe(true);
  });

  it.each([
    ['is mounted', () => 'MOUNTED=/mnt deploy.sh', 'is mounted'],
    ['is the booted medium', (path: string) => `MEDIUM=${path} deploy.sh`, 'was booted from'],
    ['is not there', () => 'deploy.sh /dev/absent', 'there is no disk /dev/absent: /dev/sda'],
  ])('writes nothing to a disk that %s', async (_, command, said) => {
    const { stderr, exitCode } = await deploy({}, command(target?.path ?? ''));
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(said)]);
    expect(isOld()).toBe(true);
  });

  it('writes nothing to a disk that is smaller than the image', async () => {
    makeDisk(PLACES.imageBlocks - 8);
    const { stderr, exitCode } = await deploy({ postScript: POST_SCRIPT });
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('but the disk image has')]);
    expect(isOld()).toBe(true);
  });
});

type Dumped = { readonly number: number; readonly start: number };

/** All that sfdisk says of each partition. */
const dump = (path: string): readonly Dumped[] =>
  (
    JSON.parse(execFileSync('sfdisk', ['--json', path], { encoding: 'utf8' })) as {
      readonly partitiontable: { readonly partitions: readonly { readonly start: number }[] };
    }
  ).partitiontable.partitions.map((partition, index) => ({
    ...partition,
    node: '',
    number: index + 1,
  }));
