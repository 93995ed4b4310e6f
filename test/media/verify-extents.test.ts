import { mkdtemp, open, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import type { IndexExtent } from '../../src/media/media-index.ts';
import { useImage, type IsoSource } from '../../src/media/open.ts';
import { verifyExtents, type DamagedExtent } from '../../src/media/verify-extents.ts';
import { runs } from '../support/properties.ts';

const MIB = 1024 * 1024;
/** Four times what a lane holds, so that a large extent comes round its memory several times. */
const SIZE = 64 * MIB;
const wrong = digestOf('something else');

let directory: string;
let path: string;
let bytes: Buffer;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-extents-'));
  path = join(directory, 'file');
  bytes = Buffer.alloc(SIZE);
  for (let at = 0; at < SIZE; at += 4096) bytes.writeUInt32LE(at, at);
  const file = await open(path, 'w');
  await file.write(bytes);
  await file.close();
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const extentAt = (offset: number, size: number): IndexExtent => ({
  offset,
  size,
  paths: [],
  digest: digestOf(bytes.subarray(offset, offset + size)),
});

const verify = (
  extents: readonly IndexExtent[],
  options: Partial<Parameters<typeof verifyExtents>[2]> = {},
  of: IsoSource = path,
): Promise<DamagedExtent[]> =>
  useImage(of, (image) =>
    verifyExtents(image, extents, {
      signal: new AbortController().signal,
      onProgress: () => undefined,
      ...options,
    }),
  );

describe('verification of extents', () => {
  it('finds the only damaged extent among extents of any size and place', async () => {
    const place = fc.tuple(fc.nat(SIZE - 1), fc.nat(9 * MIB));
    await fc.assert(
      fc.asyncProperty(fc.array(place, { maxLength: 12 }), fc.nat(11), async (places, turn) => {
        const right = places.map(([at, size]) => extentAt(at, Math.min(size, SIZE - at)));
        const extents = right.map((extent, at) =>
          at === turn ? { ...extent, digest: wrong } : extent,
        );
        const damaged = await verify(extents);
        const found = right[turn]?.digest;
        expect(damaged).toEqual(found ? [{ extent: extents[turn], found }] : []);
      }),
      { numRuns: runs(12) },
    );
  });

  it('reports damaged extents by offset, in any order of the list', async () => {
    const offsets = [40 * MIB, 0, 20 * MIB, 5000];
    const sizes = [5 * MIB, 100, 8 * MIB, 1];
    const extents = offsets.map((at, n) => ({ ...extentAt(at, sizes[n] ?? 0), digest: wrong }));
    const damaged = await verify(extents);
    expect(damaged.map(({ extent }) => extent.offset)).toEqual([0, 5000, 20 * MIB, 40 * MIB]);
  });

  it('does not read extents without a digest', async () => {
    const told: number[] = [];
    const extents = [{ offset: 0, size: 10, paths: [] }, extentAt(10, 20)];
    expect(await verify(extents, { onProgress: (size) => told.push(size) })).toEqual([]);
    expect(told).toEqual([20]);
    expect(await verify([])).toEqual([]);
  });

  it('reports progress inside a large extent, up to its size', async () => {
    const told: number[] = [];
    expect(await verify([extentAt(0, SIZE)], { onProgress: (size) => told.push(size) })).toEqual(
      [],
    );
    expect(told.length).toBeGreaterThan(8);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(told.at(-1)).toBe(SIZE);
  });

  it('stops in the middle of a large extent when it is aborted', async () => {
    const stop = new AbortController();
    const told: number[] = [];
    const running = verify([extentAt(0, SIZE)], {
      signal: stop.signal,
      onProgress(size) {
        told.push(size);
        stop.abort(new Error('enough'));
      },
    });
    await expect(running).rejects.toThrow('enough');
    expect(told.at(-1)).toBeLessThan(SIZE / 2);
    await expect(verify([extentAt(0, 10)], { signal: stop.signal })).rejects.toThrow('enough');
  });

  it('reports extents past the end of the file as unreadable, and checks the others', async () => {
    const short = join(directory, 'short');
    const file = await open(short, 'w');
    await file.write(bytes.subarray(0, 10 * MIB));
    await file.close();
    await truncate(short, 9 * MIB);
    const extents = [extentAt(100, 200), extentAt(9 * MIB - 10, 20), extentAt(5 * MIB, 6 * MIB)];
    const damaged = await verify([...extents, { ...extentAt(7, 7), digest: wrong }], {}, short);
    const unreadable = `cannot be read: the file ends at byte ${9 * MIB}`;
    expect(damaged).toEqual([
      { extent: { ...extentAt(7, 7), digest: wrong }, found: extentAt(7, 7).digest },
      { extent: extents[2], unreadable },
      { extent: extents[1], unreadable },
    ]);
  });

  it('reports extents as unreadable when the device reports a read error', async () => {
    // Nothing is mapped at the first page of a process: reading it fails as a worn sector does.
    const extents = [extentAt(0, 10), extentAt(0, 5 * MIB)];
    const memory = await open('/proc/self/mem');
    const damaged = await verify(
      extents,
      {},
      {
        path: '/proc/self/mem',
        size: SIZE,
        read: async (offset, size, buffer = Buffer.alloc(size)) =>
          (await memory.read(buffer, 0, size, offset)).buffer,
        close: () => memory.close(),
      },
    );
    const unreadable = 'cannot be read: the device reports a read error';
    expect(damaged.map((found) => found.unreadable)).toEqual([unreadable, unreadable]);
  });

  it('fails when the file does not exist', async () => {
    await expect(verify([extentAt(0, 10)], {}, join(directory, 'none'))).rejects.toThrow(
      'it does not exist',
    );
  });
});
