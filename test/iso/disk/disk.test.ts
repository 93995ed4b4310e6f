import { describe, expect, test } from 'vitest';
import { planDisk } from '../../../src/iso/index.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
/** 513 MiB, as CoreOS's metal image has it. */
const END = 513 * MIB;

/** Sizes of real media: not multiples of 64 KiB, as ISO images are not. */
const REAL = { end: END, recovery: 1_363_148_800 + 2048, data: 38_654_705_664 + 3 * 2048 };

const blocksOf = ({ first, last }: { readonly first: number; readonly last: number }): number =>
  last + 1 - first;

describe('a disk layout', () => {
  test.each([
    ['compact', undefined],
    ['of 150 GiB', 150],
    ['of 512 GiB', 512],
  ])('%s has aligned partitions that do not overlap, and 1 MiB free at the end', (_, gib) => {
    const { size, root, recovery, data } = planDisk(REAL, gib);
    for (const { first } of [root, recovery, data]) expect(first % 128).toBe(0);
    expect(root.first * 512).toBeGreaterThanOrEqual(END);
    expect(recovery.first).toBe(root.last + 1 + 128);
    expect(data.first).toBe(recovery.last + 1 + 128);
    expect(size - (data.last + 1) * 512).toBe(MIB);
    expect(blocksOf(recovery) * 512).toBeGreaterThanOrEqual(REAL.recovery);
    expect(blocksOf(recovery) * 512 - REAL.recovery).toBeLessThan(64 * 1024);
    expect(blocksOf(data) * 512).toBeGreaterThanOrEqual(REAL.data);
  });

  test('that is compact has whole GiB and a root partition of 64 KiB', () => {
    const { size, root } = planDisk(REAL);
    expect(size).toBe(38 * GIB);
    expect(blocksOf(root)).toBe(128);
  });

  test('of 150 GiB has a root partition of 150 GB less the contents, and unused blocks before it', () => {
    const { size, root } = planDisk(REAL, 150);
    const wanted = 150e9 - (END + MIB + REAL.recovery + REAL.data);
    expect(size).toBe(150 * GIB);
    expect(blocksOf(root) * 512).toBeGreaterThanOrEqual(wanted);
    expect(blocksOf(root) * 512 - wanted).toBeLessThan(64 * 1024 + 512);
    expect(root.first * 512).toBeGreaterThan(END + 10 * GIB);
  });

  test('takes another GiB if only the alignment does not fit', () => {
    const data = GIB - END - MIB - 2048 - 2048;
    const { size, root } = planDisk({ end: END, recovery: 2048, data });
    expect(size).toBe(2 * GIB);
    expect(root.first * 512).toBeGreaterThanOrEqual(END);
  });

  test('of a size without room for the contents is refused', () => {
    expect(() => planDisk(REAL, 20)).toThrow(
      expect.objectContaining({
        code: 'disk-image.too-small',
        found: '20 GiB',
        expected: 'at least 38 GiB',
      }),
    );
  });
});
