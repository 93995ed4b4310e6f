import { mkdtemp, open, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasBootHost } from './boot-host.ts';
import { shareLiveMedium } from './live-medium.ts';
import { boot, BOOT_FAILURES, type Boot } from './qemu.ts';
import { askTool } from '../support/tools.ts';

type Partition = { readonly start: number; readonly size: number; readonly name: string };

/** Blocks, by sfdisk. */
const listPartitions = (disk: string): readonly Partition[] =>
  (
    JSON.parse(askTool('sfdisk', '--json', disk)) as {
      readonly partitiontable: { readonly partitions: readonly Partition[] };
    }
  ).partitiontable.partitions;

const EMPTY: Partition = { start: 0, size: 0, name: '' };

/** Blocks of the larger disk that the image does not have; partitions stay at multiples of 1 MiB all the same. */
const MORE_BLOCKS = 3_000_001;

describe.skipIf(!hasBootHost())('a deployment ISO that a machine boots', () => {
  let result: Boot = { lines: [], seconds: 0 };
  let folder = '';
  let image = '';
  const at = (name: string): string => join(folder, name);

  beforeAll(async () => {
    const { disk, deployment } = await shareLiveMedium(AbortSignal.timeout(1_500_000));
    image = disk;
    folder = await mkdtemp(join(tmpdir(), 'deployed-'));
    const { size } = await stat(disk);
    await writeOldDisk(at('same'), size);
    await writeFile(at('larger'), '');
    await truncate(at('larger'), size + MORE_BLOCKS * 512);
    result = await boot({
      firmware: 'seabios',
      as: 'disk',
      iso: deployment,
      disks: ['same', 'larger'].map((name) => ({ path: at(name), readonly: false })),
      until: /deploy: after\.sh ended with exit status 3/,
      fail: BOOT_FAILURES,
    });
    console.log(`deployment ISO: ${result.seconds.toFixed(0)} s`);
  }, 3_600_000);
  afterAll(() => (folder === '' ? undefined : rm(folder, { recursive: true })));

  it('makes a disk of the size of the image equal to it, whatever the disk had before', () => {
    askTool('cmp', at('same'), image);
  });

  it('gives a larger disk the same contents, with the last partitions at its end', () => {
    expect(askTool('sgdisk', '-v', at('larger'))).toContain('No problems found');
    const [before, after] = [listPartitions(image), listPartitions(at('larger'))];
    const shift = Math.floor(MORE_BLOCKS / 2048) * 2048;
    expect(after.map(({ name }) => name)).toEqual(before.map(({ name }) => name));
    for (const number of [0, 1, 2, 4, 5]) {
      const [old, now] = [before[number] ?? EMPTY, after[number] ?? EMPTY];
      expect(now).toMatchObject({
        size: old.size,
        start: old.start + (number > 3 ? shift : 0),
      });
      const skip = `${now.start * 512}:${old.start * 512}`;
      askTool('cmp', '--ignore-initial', skip, `--bytes=${now.size * 512}`, at('larger'), image);
    }
  });

  it('gives partition root everything between boot and agentboot', () => {
    const [, , bootPart = EMPTY, root = EMPTY, recovery = EMPTY] = listPartitions(at('larger'));
    expect(root.start - (bootPart.start + bootPart.size)).toBeLessThan(2048);
    expect(recovery.start - (root.start + root.size)).toBe(128);
  });

  it('says what it writes, and refuses the medium that it was booted from', () => {
    expect(result.lines.join('\n')).toMatch(/deploy: recovery system and registry: \d+ of \d+ MiB/);
    expect(result.lines.join('\n')).toContain('PROOF the medium is refused');
  });
});

/** A disk with other bytes at its ends, and where the image has contents, tables or nothing. */
async function writeOldDisk(path: string, size: number): Promise<void> {
  const file = await open(path, 'w');
  try {
    await file.truncate(size);
    const old = Buffer.alloc(1 << 20, 'old bytes ');
    for (const offset of [0, 60 << 20, 300 << 20, size - old.length]) {
      await file.write(old, 0, old.length, offset);
    }
  } finally {
    await file.close();
  }
}
