import { readFile, rm } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  growHybrid,
  locateBackupGpt,
  readBackupGpt,
  readPartitionTables,
  sizeOfImage,
} from '../../../src/iso/boot/hybrid.ts';
import { makeCoreosIso, makeIso, makeTestDirectory } from '../../support/iso.ts';
import { requireTool } from '../../support/tools.ts';

const MIB = 1024 * 1024;
const AREA = 32_768;
const hasTools = ['genisoimage', 'isohybrid', 'mformat', 'xorriso'].map(requireTool).every(Boolean);

/** An MBR with these partitions: number, type, first block, blocks. */
function makeMbr(...partitions: [number, number, number, number][]): Uint8Array {
  const area = new Uint8Array(AREA);
  const view = new DataView(area.buffer);
  for (const [number, type, start, blocks] of partitions) {
    const at = 446 + (number - 1) * 16;
    view.setUint8(at + 4, type);
    view.setUint32(at + 8, start, true);
    view.setUint32(at + 12, blocks, true);
  }
  area.set([0x55, 0xaa], 510);
  return area;
}

const partitionsOf = (area: Uint8Array): unknown[] =>
  (readPartitionTables(area).mbr ?? []).map(({ number, start, blocks }) => [number, start, blocks]);

describe('an MBR', () => {
  it('of isohybrid gets a first partition as large as the image', () => {
    const area = makeMbr([1, 0, 0, 2048], [2, 0xef, 180, 1000]);
    const { systemArea, tail } = growHybrid(area, MIB, 5 * MIB);
    expect(partitionsOf(systemArea)).toEqual([
      [1, 0, 10_240],
      [2, 180, 1000],
    ]);
    expect(tail).toBeUndefined();
    expect([...systemArea.subarray(446 + 5, 446 + 8)]).toEqual([63, 32, 4]);
  });

  it('of isohybrid also grows if a cylinder was added after the partition for the backup GPT', () => {
    const area = makeMbr([1, 0, 0, 2048], [2, 0xef, 180, 1000]);
    expect(partitionsOf(growHybrid(area, 2 * MIB, 5 * MIB).systemArea)).toContainEqual([
      1, 0, 10_240,
    ]);
  });

  it('has the last address of its geometry for a partition that ends past 1 GiB', () => {
    const ofIsohybrid = growHybrid(makeMbr([1, 0, 0, 2048]), MIB, 3000 * MIB).systemArea;
    expect([...ofIsohybrid.subarray(451, 454)]).toEqual([63, 0xe0, 0xff]);
    const other = growHybrid(makeMbr([1, 0xcd, 1, 2047]), MIB, 3000 * MIB + 2048).systemArea;
    expect([...other.subarray(451, 454)]).toEqual([0xfe, 0xff, 0xff]);
  });

  it('of a protective kind covers all blocks except the first', () => {
    const area = makeMbr([1, 0xee, 1, 2047]);
    expect(partitionsOf(growHybrid(area, MIB, 3 * MIB).systemArea)).toEqual([[1, 1, 6143]]);
  });

  it('keeps an EFI partition that comes last unchanged, and so all others', () => {
    const area = makeMbr([1, 0xcd, 1, 1000], [2, 0xef, 1001, 1047]);
    const { systemArea } = growHybrid(area, MIB, 3 * MIB);
    expect(systemArea).toEqual(area);
  });

  it('does not grow a partition that ended long before the end of the image', () => {
    const area = makeMbr([1, 0x83, 64, 1000]);
    expect(growHybrid(area, 3 * MIB, 9 * MIB).systemArea).toEqual(area);
  });

  it('does not grow a partition that begins after the end of the image', () => {
    const area = makeMbr([1, 0x83, 1_000_000, 10]);
    expect(growHybrid(area, MIB, 2 * MIB).systemArea).toEqual(area);
  });

  it('never has a partition of more blocks than 32 bits can count', () => {
    const { systemArea } = growHybrid(makeMbr([1, 0, 0, 2048]), MIB, 3 * 2 ** 40);
    expect(partitionsOf(systemArea)).toEqual([[1, 0, 0xffff_ffff]]);
  });
});

describe('the size of an image', () => {
  it('is a multiple of 1 MiB for a disk, and of a sector otherwise', () => {
    expect(sizeOfImage(makeMbr([1, 0, 0, 2048]), 5 * MIB + 1)).toBe(6 * MIB);
    expect(sizeOfImage(new Uint8Array(AREA), 5 * MIB + 1)).toBe(5 * MIB + 2048);
  });
});

describe('a system area', () => {
  it('without partition tables stays unchanged', () => {
    const area = new Uint8Array(AREA).fill(0x41);
    expect(readPartitionTables(area)).toEqual({});
    expect(growHybrid(area, MIB, 2 * MIB)).toEqual({ systemArea: area });
  });

  it('of random bytes is read or refused, and never causes a bug', () => {
    const arbitraryArea = fc.record({
      noise: fc.uint8Array({ minLength: 1024, maxLength: 4096 }),
      marks: fc.subarray(['mbr', 'gpt', 'apple']),
    });
    fc.assert(
      fc.property(arbitraryArea, ({ noise, marks }) => {
        const area = new Uint8Array(AREA);
        area.set(noise);
        if (marks.includes('mbr')) area.set([0x55, 0xaa], 510);
        if (marks.includes('gpt')) area.set(Buffer.from('EFI PART'), 512);
        if (marks.includes('apple')) area.set([0x45, 0x52, 2, 0], 0);
        const tables = readPartitionTables(area);
        expect(tables.gpt?.crcOk ?? false).toBe(false);
        if (tables.gpt) locateBackupGpt(tables.gpt, 10 * MIB);
        if (tables.gpt) expect(() => growHybrid(area, MIB, 2 * MIB)).toThrow(/CRC of the GPT/);
        else growHybrid(area, MIB, 2 * MIB);
      }),
    );
  });
});

describe.skipIf(!hasTools)('partition tables', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await makeTestDirectory();
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('of isohybrid --uefi are read with right CRCs, and grown with right CRCs', async () => {
    const image = await readFile(await makeCoreosIso(directory));
    const area = image.subarray(0, AREA);
    const { gpt } = readPartitionTables(area);
    expect(gpt?.crcOk).toBe(true);
    expect(gpt?.partitions.map(({ name }) => name)).toEqual(['ISOHybrid ISO', 'ISOHybrid']);
    if (!gpt) throw new Error('no GPT');
    const range = locateBackupGpt(gpt, image.length);
    if (!range) throw new Error('no backup GPT');
    const old = image.subarray(range.offset, range.offset + range.size);
    expect(readBackupGpt(gpt, old)?.crcOk).toBe(true);

    const size = sizeOfImage(area, image.length + 7 * MIB);
    const { systemArea, tail } = growHybrid(area, image.length, size);
    const grown = readPartitionTables(systemArea).gpt;
    if (!grown || !tail) throw new Error('no GPT any more');
    const backup = readBackupGpt(grown, tail.bytes);
    expect([grown.crcOk, backup?.crcOk]).toEqual([true, true]);
    expect(tail.offset + tail.bytes.length).toBe(size);
    expect(grown.otherBlock).toBe(size / 512 - 1);
    expect(backup).toMatchObject({ block: size / 512 - 1, otherBlock: 1 });
    expect(grown.lastUsable).toBe(tail.offset / 512 - 1);
    expect(grown.diskId).toBe(gpt.diskId);
    const [whole, esp] = grown.partitions;
    expect(whole?.lastBlock).toBeGreaterThan(grown.lastUsable - 4);
    expect(esp).toEqual(gpt.partitions[1]);
    expect(area).toEqual(image.subarray(0, AREA));
  });

  it('of xorriso with MBR, GPT and Apple partition map keep the ESP in all three', async () => {
    const path = await makeIso(
      directory,
      {
        program: 'xorriso',
        files: {
          'isolinux.bin': await readFile('/usr/lib/ISOLINUX/isolinux.bin'),
          'efi.img': Buffer.alloc(MIB, 'esp'),
        },
        args: [
          ...['-V', 'X', '-b', 'isolinux.bin', '-no-emul-boot', '-boot-load-size', '4'],
          ...['-boot-info-table', '-isohybrid-mbr', '/usr/lib/ISOLINUX/isohdpfx.bin'],
          ...['-eltorito-alt-boot', '-e', 'efi.img', '-no-emul-boot'],
          ...['-isohybrid-gpt-basdat', '-isohybrid-apm-hfsplus'],
        ],
      },
      'apple.iso',
    );
    const image = await readFile(path);
    const before = readPartitionTables(image.subarray(0, AREA));
    expect(before.apple?.partitions.map(({ name }) => name)).toContain('EFI');
    const { systemArea } = growHybrid(image.subarray(0, AREA), image.length, 50 * MIB);
    const after = readPartitionTables(systemArea);
    expect(after.apple).toEqual(before.apple);
    expect(after.mbr?.[0]?.blocks).toBe((50 * MIB) / 512);
    expect(after.mbr?.[1]).toEqual(before.mbr?.[1]);
    expect(after.gpt?.partitions[1]).toEqual(before.gpt?.partitions[1]);
    expect(after.gpt?.crcOk).toBe(true);
  });
});

/** A GPT of an image of 1 MiB with one partition of this type, which ends with the image. */
function makeGpt(type: string): Uint8Array {
  const area = makeMbr([1, 0xee, 1, 2047]);
  const entries = new DataView(area.buffer, 1024, 512);
  area.set(Buffer.from(type, 'hex'), 1024);
  entries.setBigUint64(32, 64n, true);
  entries.setBigUint64(40, 2045n, true);
  const header = new DataView(area.buffer, 512, 512);
  area.set(Buffer.from('EFI PART'), 512);
  header.setUint32(12, 92, true);
  header.setBigUint64(24, 1n, true);
  header.setBigUint64(32, 2047n, true);
  header.setBigUint64(48, 2045n, true);
  header.setBigUint64(72, 2n, true);
  header.setUint32(80, 4, true);
  header.setUint32(84, 128, true);
  header.setUint32(88, crc32(area.subarray(1024, 1536)), true);
  header.setUint32(16, crc32(area.subarray(512, 512 + 92)), true);
  return area;
}

describe('a GPT', () => {
  it.each([
    ['basic data', 'a2a0d0ebe5b9334487c068b6b72699c7', 4091],
    ['an EFI System Partition', '28732ac11ff8d211ba4b00a0c93ec93b', 2045],
  ])('whose last partition has the type of %s ends it at block %#', (_kind, type, lastBlock) => {
    const { systemArea } = growHybrid(makeGpt(type), MIB, 2 * MIB);
    const { gpt } = readPartitionTables(systemArea);
    expect(gpt).toMatchObject({ crcOk: true, partitions: [{ firstBlock: 64, lastBlock }] });
  });

  it('whose entries do not match their CRC is refused with a hint', () => {
    const area = makeMbr([1, 0xee, 1, 2047]);
    const view = new DataView(area.buffer, 512, 512);
    area.set(Buffer.from('EFI PART'), 512);
    view.setUint32(12, 92, true);
    view.setBigUint64(72, 2n, true);
    view.setUint32(80, 4, true);
    view.setUint32(84, 128, true);
    view.setUint32(88, 0xbad, true);
    view.setUint32(16, crc32(area.subarray(512, 512 + 92)), true);
    expect(() => growHybrid(area, MIB, 2 * MIB)).toThrow('CRC of the GPT entries');
  });
});
