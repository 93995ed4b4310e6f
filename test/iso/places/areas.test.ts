import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { placeAreas, type AreaContents } from '../../../src/iso/places/areas.ts';
import type { Places, Sized } from '../../../src/iso/extent.ts';
import { bytesOf, change, createBlobs, createRandom, named } from '../../support/nightly-blobs.ts';

const MIB = 1024 * 1024;

const placesOf = (contents: AreaContents, hint?: Places): Places => {
  const { areas, offsets } = placeAreas(contents, hint);
  return { areas, offsets: [...offsets] };
};

/** No two overlap, and each lies behind what is in front of its area. */
function expectSound(contents: AreaContents, { areas, offsets }: Places): void {
  const places = new Map(offsets);
  const runs = [
    { offset: areas.structures, size: contents.structures },
    { offset: areas.index, size: contents.index },
    ...[...contents.files, ...contents.blobs].map(({ digest, size }) => ({
      offset: places.get(digest) ?? -1,
      size,
    })),
  ].toSorted((a, b) => a.offset - b.offset);
  let end = contents.base;
  for (const { offset, size } of runs) {
    if (offset < end) expect.fail(`${size} bytes at ${offset} begin before ${end}`);
    end = offset + size;
  }
  expect(offsets).toHaveLength(contents.files.length + contents.blobs.length);
}

const withBlobs = (blobs: readonly Sized[], base = 1300 * MIB): AreaContents => ({
  base,
  structures: 4 * MIB,
  index: 2 * MIB,
  files: Array.from({ length: 50 }, (_, i) => named(`file ${i}`, 71)),
  blobs,
});

describe('places of an earlier layout', () => {
  test('keep 94 % of the bytes in place over 30 nights of 5 % change, and the ISO grows by 1 %', () => {
    const random = createRandom(7);
    let blobs = createBlobs(2000, 37e9, random);
    let places = placesOf(withBlobs(blobs));
    const compact = ({ blobs }: AreaContents): number => placeAreas(withBlobs(blobs)).end;
    const nights = Array.from({ length: 30 }, (_, night) => {
      blobs = change(blobs, night, random);
      const contents = withBlobs(blobs);
      const before = new Map(places.offsets);
      const next = placeAreas(contents, places);
      places = { areas: next.areas, offsets: [...next.offsets] };
      expectSound(contents, places);
      const stay = blobs.filter(({ digest }) => next.offsets.get(digest) === before.get(digest));
      return {
        inPlace: bytesOf(stay) / bytesOf(blobs),
        size: next.end / compact(contents),
      };
    });
    console.log(
      nights.map(({ inPlace, size }) => `${inPlace.toFixed(4)} ${size.toFixed(4)}`).join('\n'),
    );
    expect(Math.min(...nights.map(({ inPlace }) => inPlace))).toBeGreaterThan(0.94);
    expect(Math.max(...nights.map(({ size }) => size))).toBeLessThan(1.015);
  });

  const contentsOf = fc
    .record({
      base: fc.integer({ min: 0, max: 3 * MIB }),
      structures: fc.integer({ min: 1, max: MIB }),
      index: fc.integer({ min: 1, max: MIB }),
      files: fc.uniqueArray(fc.integer({ min: 1, max: 9999 }), { maxLength: 30 }),
      blobs: fc.uniqueArray(fc.integer({ min: 1, max: 12 * MIB }), { maxLength: 40 }),
    })
    .map(({ files, blobs, ...sizes }) => ({
      ...sizes,
      files: files.map((size) => named(`file ${size}`, size)),
      blobs: blobs.map((size) => named(`blob ${size}`, size)),
    }));

  /** What is in one and not in the other changes; the rest stays. */
  const nights = fc.tuple(contentsOf, contentsOf, contentsOf).map(([a, b, c]) => [
    a,
    {
      ...b,
      files: [...a.files.slice(3), ...without(b.files, a.files)],
      blobs: [...a.blobs.slice(2), ...without(b.blobs, a.blobs)],
    },
    { ...c, files: a.files, blobs: [...a.blobs, ...without(c.blobs, a.blobs)] },
  ]);

  const without = (some: readonly Sized[], others: readonly Sized[]): Sized[] => {
    const known = new Set(others.map(({ digest }) => digest));
    return some.filter(({ digest }) => !known.has(digest));
  };

  /** Each night is laid out with the places of the one before, in whatever order they are told. */
  function expectSettled(nights: readonly AreaContents[]): void {
    let places: Places | undefined;
    for (const night of nights) {
      places = placesOf(night, places);
      expectSound(night, places);
      expect(placesOf(night, places)).toEqual(places);
      const offsets = places.offsets.toReversed();
      expect(placesOf(night, { ...places, offsets })).toEqual(places);
    }
  }

  test('give the same layout again if they are the places just written', () => {
    fc.assert(fc.property(nights, expectSettled));
  });

  test('give the same layout again when files return that fill gaps before one that stayed', () => {
    const sizes = { base: 0, structures: 1, index: 1 };
    const file = (size: number): Sized => named(`file ${size}`, size);
    const blob = (size: number): Sized => named(`blob ${size}`, size);
    const blobs = [blob(1), blob(2), blob(110_592)];
    const first = { ...sizes, files: [3, 1, 4, 2].map(file), blobs };
    const second = { ...sizes, files: [file(2), file(5)], blobs: [blob(110_592)] };
    expectSettled([first, second, first]);
  });

  test('cause no overlap if they are impossible', () => {
    const area = fc.oneof(fc.nat({ max: 1e7 }), fc.constant(4096 * 100), fc.constant(2 ** 51));
    const areas = fc.record({
      structures: area,
      files: area,
      index: area,
      smallBlobs: area,
      blobs: area,
    });
    fc.assert(
      fc.property(contentsOf, areas, fc.array(area), (contents, areas, offsets) => {
        const all = [...contents.files, ...contents.blobs];
        const hint = all.map(({ digest }, i) => [digest, (offsets[i] ?? i) * 4096] as const);
        const places = placesOf(contents, { areas, offsets: hint });
        expectSound(contents, places);
        expect(placesOf(contents, places)).toEqual(places);
      }),
    );
  });

  test('are kept only at multiples of 4096, so that file systems can share the blocks', () => {
    const blobs = createBlobs(20, 6e8, createRandom(5));
    const { areas, offsets } = placeAreas(withBlobs(blobs));
    const placed = [...offsets].toSorted(([, a], [, b]) => a - b);
    const hint = placed.map(([digest, offset], at) =>
      at === placed.length - 1 ? ([digest, offset + 2048] as const) : ([digest, offset] as const),
    );
    const after = placeAreas(withBlobs(blobs), { areas, offsets: hint });
    expect(blobs.filter(({ digest }) => (after.offsets.get(digest) ?? 1) % 4096 !== 0)).toEqual([]);
  });

  test('change only for contents that a growing base needs to move', () => {
    const random = createRandom(3);
    const blobs = createBlobs(300, 6e9, random);
    const before = placeAreas(withBlobs(blobs));
    const { areas, offsets } = placeAreas(withBlobs(blobs, 1340 * MIB), {
      areas: before.areas,
      offsets: [...before.offsets],
    });
    const moved = blobs.filter(({ digest }) => offsets.get(digest) !== before.offsets.get(digest));
    expect(moved.length).toBeGreaterThan(0);
    for (const { digest } of moved) {
      expect(before.offsets.get(digest)).toBeLessThan(areas.smallBlobs);
    }
  });
});
