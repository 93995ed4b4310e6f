import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import type { Extent, Layout } from '../../../src/iso/extent.ts';
import { placeAreas } from '../../../src/iso/places/areas.ts';
import type { Places, Sized } from '../../../src/iso/extent.ts';
import {
  partsOf,
  planObjectParts,
  S3_LIMITS,
  type PartPlan,
} from '../../../src/outputs/object/parts.ts';
import { bytesOf, change, createBlobs, createRandom, named } from '../../support/nightly-blobs.ts';
import { runs } from '../../support/properties.ts';

const MIB = 1024 * 1024;

/** Contents at their offsets, zeros between. */
function layOut(contents: readonly (Sized & { readonly offset: number })[], size: number): Layout {
  const extents: Extent[] = [];
  let end = 0;
  const fill = (offset: number): void => {
    const gap = { offset: end, size: offset - end, source: { kind: 'zero' as const }, paths: [] };
    if (gap.size > 0) extents.push(gap);
  };
  for (const content of contents.toSorted((a, b) => a.offset - b.offset)) {
    fill(content.offset);
    extents.push({ ...content, source: { kind: 'blob' }, paths: [] });
    end = content.offset + content.size;
  }
  fill(size);
  return { size, extents };
}

/** What the index of an ISO says of its layout. */
const earlierOf = ({ size, extents }: Layout) => ({
  size,
  extents: extents.filter(({ source }) => source.kind !== 'zero'),
});

/** A number for each stretch of bytes between two edges: its content, or 0 for zeros. */
function paint({ extents }: Layout): (offset: number, size: number) => readonly string[] {
  const units = extents.map(({ offset, size, digest }) => ({
    offset,
    size,
    name: digest ?? 'zero',
  }));
  return (offset, size) => {
    const names: string[] = [];
    for (const unit of units) {
      const start = Math.max(offset, unit.offset);
      const end = Math.min(offset + size, unit.offset + unit.size);
      if (start >= end) continue;
      const isZero = unit.name === 'zero';
      const last = names.at(-1);
      if (isZero && last?.startsWith('zero')) {
        names[names.length - 1] = `zero ${Number(last.slice(5)) + end - start}`;
      } else
        names.push(
          isZero ? `zero ${end - start}` : `${unit.name} ${start - unit.offset} ${end - start}`,
        );
    }
    return names;
  };
}

/** What every plan of parts holds to. */
function expectSound({ groups }: PartPlan, layout: Layout, earlier?: Layout): void {
  const now = paint(layout);
  const before = earlier ? paint(earlier) : () => [];
  let end = 0;
  const parts = groups.flatMap(partsOf);
  for (const [index, { number, offset, size }] of parts.entries()) {
    const least = number === parts.length ? 1 : S3_LIMITS.minPart;
    const isSound =
      number === index + 1 && offset === end && size >= least && size <= S3_LIMITS.maxPart;
    if (!isSound) expect.fail(`part ${number} has ${size} bytes at ${offset}`);
    end += size;
  }
  expect(end).toBe(layout.size);
  expect(parts.length).toBeLessThanOrEqual(S3_LIMITS.maxParts);
  for (const group of groups) {
    const [first] = partsOf(group);
    const size = partsOf(group).reduce((sum, part) => sum + part.size, 0);
    if (group.kind === 'copy') {
      expect(before(group.from, size)).toEqual(now(first?.offset ?? 0, size));
      continue;
    }
    let at = first?.offset ?? 0;
    for (const piece of group.pieces) {
      expect(piece.offset).toBe(at);
      at += piece.size;
      if ('from' in piece) {
        expect(before(piece.from, piece.size)).toEqual(now(piece.offset, piece.size));
      } else expect(layout.extents).toContain(piece);
    }
    expect(at).toBe((first?.offset ?? 0) + size);
  }
}

const contents = fc
  .array(
    fc.tuple(
      fc.integer({ min: 0, max: 12 }),
      fc.integer({ min: 1, max: 30 * MIB }),
      fc.integer({ min: 0, max: 6 * MIB }),
    ),
    {
      minLength: 1,
      maxLength: 25,
    },
  )
  .map((list) => {
    let end = 0;
    const sizes = new Map<number, number>();
    const placed = list.map(([id, size, gap]) => {
      const known = sizes.get(id) ?? size;
      sizes.set(id, known);
      const offset = end + gap;
      end = offset + known;
      return { digest: digestOf(`${id}`), size: known, offset };
    });
    return layOut(placed, end);
  });

describe('the parts of an upload', () => {
  test('cover the ISO within the limits of S3, and copy only bytes that the earlier object has', () => {
    fc.assert(
      fc.property(contents, contents, (layout, earlier) => {
        expectSound(planObjectParts(layout), layout);
        expectSound(planObjectParts(layout, earlierOf(earlier)), layout, earlier);
        const same = planObjectParts(layout, earlierOf(layout));
        expectSound(same, layout, layout);
        if (layout.size >= S3_LIMITS.minPart) expect(same.sent).toBe(0);
      }),
      { numRuns: runs(60) },
    );
  });

  test('are larger for an ISO of 2 TB, so that there are at most 10,000', () => {
    const sizes = Array.from({ length: 1000 }, (_, i) => ({
      ...named(`blob ${i}`, 2e9),
      offset: i * 2e9,
    }));
    const layout = layOut(sizes, 2e12);
    const plan = planObjectParts(layout);
    expectSound(plan, layout);
    expect(plan.partSize).toBeLessThanOrEqual(320 * MIB);
  });

  test('are copied, except 6 % of the bytes, for a nightly of 40 GB of which 5 % changed', () => {
    const random = createRandom(11);
    const base = { ...named('base', 1300 * MIB), offset: 0 };
    const frontOf = (night: number) => ({
      structures: named(`structures ${night}`, 4 * MIB),
      index: named(`index ${night}`, 2 * MIB),
    });
    const layOutNight = (blobs: readonly Sized[], night: number, hint?: Places) => {
      const files = Array.from({ length: 50 }, (_, i) => named(`file ${i}`, 71));
      const { structures, index } = frontOf(night);
      const placed = placeAreas(
        { base: base.size, structures: structures.size, index: index.size, files, blobs },
        hint,
      );
      const all = [...files, ...blobs].map((one) => ({
        ...one,
        offset: placed.offsets.get(one.digest) ?? 0,
      }));
      const rendered = [
        { ...structures, offset: placed.areas.structures },
        { ...index, offset: placed.areas.index },
      ];
      const places = { areas: placed.areas, offsets: [...placed.offsets] };
      return { layout: layOut([base, ...rendered, ...all], placed.end), places };
    };
    let blobs = createBlobs(2000, 38.6e9, random);
    let last = layOutNight(blobs, 0);
    const sent = [];
    for (let night = 1; night <= 5; night += 1) {
      blobs = change(blobs, night, random);
      const next = layOutNight(blobs, night, last.places);
      const plan = planObjectParts(next.layout, earlierOf(last.layout));
      sent.push(plan.sent / next.layout.size);
      last = next;
    }
    console.log(
      `bytes sent of a nightly of ${bytesOf(blobs)} bytes: ${sent.map((part) => part.toFixed(4)).join(' ')}`,
    );
    expect(Math.max(...sent)).toBeLessThan(0.06);
  });
});
