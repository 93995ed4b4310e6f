import { execFileSync } from 'node:child_process';
import { copyFile, mkdtemp, open, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openRandomAccess } from '../../../src/base/random-access.ts';
import { readMetalImage, type MetalImage } from '../../../src/iso/index.ts';
import { makeMetalImage, METAL_PARTITIONS } from '../../support/metal-image.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['sgdisk', 'mkfs.ext4', 'mkfs.vfat'].map(requireTool).every(Boolean);
const BLOCK = 512;
const ENTRIES = 2 * BLOCK;
const [, , BOOT] = METAL_PARTITIONS;
const SUPER_BLOCK = (BOOT.start << 20) + 1024;

describe.skipIf(!hasTools)('a metal image', () => {
  let directory: string;
  let good: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'metal-test-'));
    good = await makeMetalImage(directory);
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function read(path: string): Promise<MetalImage> {
    const access = await openRandomAccess(path);
    try {
      return await readMetalImage(access);
    } finally {
      await access.close();
    }
  }

  type Change = (bytes: Buffer) => void;

  /** A copy whose first blocks are changed; the CRCs are right again afterwards. */
  async function withTable(change: Change, { sign = true } = {}): Promise<string> {
    const path = join(directory, 'bad.raw');
    await copyFile(good, path);
    const file = await open(path, 'r+');
    const head = Buffer.alloc(34 * BLOCK);
    await file.read(head, 0, head.length, 0);
    change(head);
    if (sign) {
      head.writeUInt32LE(crc32(head.subarray(ENTRIES, 34 * BLOCK)), BLOCK + 88);
      head.writeUInt32LE(0, BLOCK + 16);
      head.writeUInt32LE(crc32(head.subarray(BLOCK, BLOCK + 92)), BLOCK + 16);
    }
    await file.write(head, 0, head.length, 0);
    await file.close();
    return path;
  }

  async function withBytes(offset: number, bytes: Uint8Array): Promise<string> {
    const path = join(directory, 'bad.raw');
    await copyFile(good, path);
    const file = await open(path, 'r+');
    await file.write(bytes, 0, bytes.length, offset);
    await file.close();
    return path;
  }

  const entry = (head: Buffer, number: number): Buffer =>
    head.subarray(ENTRIES + (number - 1) * 128, ENTRIES + number * 128);

  const rename =
    (number: number, name: string): Change =>
    (head) => {
      const field = entry(head, number).subarray(56, 128);
      field.fill(0);
      field.write(name, 'utf16le');
    };

  const refuses = (path: string, code: string): Promise<void> =>
    expect(read(path)).rejects.toThrow(expect.objectContaining({ code }));

  test('in the form of CoreOS is read up to the end of its boot file system', async () => {
    const { kept, boot, end } = await read(good);
    expect(kept.map(({ name }) => name)).toEqual(['BIOS-BOOT', 'EFI-SYSTEM', 'boot']);
    expect(boot).toEqual({ offset: BOOT.start << 20, size: BOOT.size << 20 });
    expect(end).toBe((BOOT.start + BOOT.size) << 20);
  });

  test.each<[string, number]>([
    ['of no bytes', 0],
    ['cut in the table', 5000],
    ['cut in the boot file system', SUPER_BLOCK + 5000],
    ['cut before the backup table', 114 << 20],
  ])('%s is refused', async (_, size) => {
    const path = join(directory, 'bad.raw');
    await copyFile(good, path);
    await truncate(path, size);
    await refuses(path, 'metal-image.truncated');
  });

  test('without a partition table is refused', async () => {
    const path = join(directory, 'bad.raw');
    await writeFile(path, Buffer.alloc(1 << 20));
    await refuses(path, 'metal-image.no-gpt');
  });

  test('for disks of 4096-byte blocks is refused', async () => {
    const path = await withTable((head) => head.fill(0, BLOCK, 2 * BLOCK), { sign: false });
    const file = await open(path, 'r+');
    await file.write('EFI PART', 4096);
    await file.close();
    await refuses(path, 'metal-image.block-size');
  });

  test.each<[string, string, Change]>([
    ['of ppc64le', 'metal-image.architecture', rename(1, 'PReP')],
    ['of aarch64', 'metal-image.architecture', rename(1, 'reserved')],
    ['with another name', 'metal-image.partitions', rename(3, 'bot')],
    ['without a root partition', 'metal-image.partitions', (head) => entry(head, 4).fill(0)],
    [
      'with partitions that overlap',
      'metal-image.partitions',
      (head) => entry(head, 3).writeBigUInt64LE(5000n, 32),
    ],
    [
      'with a partition that ends before it starts',
      'metal-image.partitions',
      (head) => entry(head, 3).writeBigUInt64LE(1n, 40),
    ],
    [
      'with a partition on the table itself',
      'metal-image.partitions',
      (head) => entry(head, 1).writeBigUInt64LE(2n, 32),
    ],
    [
      'with a partition far behind its end',
      'metal-image.truncated',
      (head) => {
        entry(head, 3).writeBigUInt64LE(2n ** 40n, 40);
        entry(head, 4).writeBigUInt64LE(2n ** 40n + 1n, 32);
        entry(head, 4).writeBigUInt64LE(2n ** 40n + 9n, 40);
      },
    ],
    [
      'with addresses that no number can hold',
      'metal-image.partitions',
      (head) => entry(head, 4).writeBigUInt64LE(2n ** 63n, 40),
    ],
    [
      'with entries elsewhere',
      'metal-image.malformed-gpt',
      (head) => head.writeUInt8(3, BLOCK + 72),
    ],
    [
      'with four thousand million entries',
      'metal-image.malformed-gpt',
      (head) => head.writeUInt32LE(0xffff_ffff, BLOCK + 80),
    ],
    [
      'with entries of no size',
      'metal-image.malformed-gpt',
      (head) => head.writeUInt32LE(0, BLOCK + 84),
    ],
  ])('%s is refused with %s', async (_, code, change) => {
    await refuses(await withTable(change), code);
  });

  test('whose table has a wrong CRC is refused', async () => {
    const path = await withTable((head) => head.writeUInt8(9, ENTRIES + 40), { sign: false });
    await refuses(path, 'metal-image.malformed-gpt');
  });

  test('whose journal must be replayed is refused', async () => {
    const file = await open(good);
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, SUPER_BLOCK + 96);
    await file.close();
    buffer.writeUInt32LE(buffer.readUInt32LE() | 4);
    await refuses(await withBytes(SUPER_BLOCK + 96, buffer), 'metal-image.dirty-journal');
  });

  test.each([
    ['without ext4', SUPER_BLOCK + 56, Buffer.of(0, 0)],
    ['with another label', SUPER_BLOCK + 120, Buffer.from('root')],
  ])('%s in its boot partition is refused', async (_, offset, bytes) => {
    await refuses(await withBytes(offset, bytes), 'metal-image.boot-filesystem');
  });

  test('made by the fixture has a table that sgdisk accepts', () => {
    expect(execFileSync('sgdisk', ['-v', good], { encoding: 'utf8' })).toContain('No problems');
  });
});
