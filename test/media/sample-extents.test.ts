import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IndexExtent } from '../../src/media/media-index.ts';
import { sampleExtents, type Sample } from '../../src/media/sample-extents.ts';
import type { Verification } from '../../src/media/verify-contents.ts';
import { verifyIso } from '../../src/media/verify.ts';
import { makeMedium, type TestMedium } from '../support/medium.ts';

/** 400 extents with sizes as blobs have them, each four times another. */
const others = Array.from({ length: 400 }, (_, at): IndexExtent => {
  const size = 70_000 * 4 ** (at % 6);
  return {
    offset: at * 100_000_000,
    size,
    digest: `sha256:${String(at).padStart(64, '0')}`,
    paths: [],
  };
});
const total = others.reduce((sum, { size }) => sum + size, 0);

const sample = (seed: string, share = 0.1): ReturnType<typeof sampleExtents> =>
  sampleExtents({ always: [], others }, { seed, share }, 'sha256:index');

const stated = ({ confidence }: Sample, damaged: number): number =>
  confidence.find((row) => row.damaged === damaged)?.together ?? 0;

describe('a sample', () => {
  it('is the same for equal seeds, and differs for different seeds', () => {
    expect(sample('a').checked).toEqual(sample('a').checked);
    expect(sample('b').checked).not.toEqual(sample('a').checked);
  });

  it.each([0.05, 0.1, 0.3])('has about the share of the bytes that was asked for, %d', (share) => {
    const sizes = Array.from({ length: 40 }, (_, seed) =>
      sample(`${seed}`, share).checked.reduce((sum, { size }) => sum + size, 0),
    );
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length / total;
    expect(mean).toBeGreaterThan(share * 0.8);
    expect(mean).toBeLessThan(share * 1.25);
  });

  it.each([
    ['in the largest extents', others.toSorted((a, b) => b.size - a.size)],
    ['in the smallest extents', others.toSorted((a, b) => a.size - b.size)],
    ['in one place', others],
  ])('finds damage %s at least as often as its confidence states', (_where, order) => {
    for (const part of [0.01, 0.05]) {
      const damaged = new Set<IndexExtent>();
      let bytes = 0;
      for (const extent of order) {
        if (bytes >= part * total) break;
        damaged.add(extent);
        bytes += extent.size;
      }
      const seeds = Array.from({ length: 400 }, (_, seed) => `${seed}`);
      const found = seeds.filter((seed) => sample(seed).checked.some((each) => damaged.has(each)));
      // Four standard deviations of so many throws; the seeds are always the same.
      expect(found.length / seeds.length).toBeGreaterThan(stated(sample('0').sample, part) - 0.1);
    }
  });

  it('is certain only if it has all bytes', () => {
    expect(
      sampleExtents({ always: others, others: [] }, { seed: 'a', share: 0.1 }, '').sample
        .confidence,
    ).toEqual([0.001, 0.01, 0.05].map((damaged) => ({ damaged, scattered: 1, together: 1 })));
    for (const { scattered, together } of sample('a', 0.9).sample.confidence) {
      expect(Math.max(scattered, together)).toBeLessThan(1);
    }
  });
});

describe('a quick verification', () => {
  let directory: string;
  let medium: TestMedium;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-quick-'));
    medium = await makeMedium(directory);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const verify = (path: string, seed: string): Promise<Verification> =>
    verifyIso(path, {
      signal: new AbortController().signal,
      onProgress: () => undefined,
      quick: { seed, share: 0.01 },
    });

  async function damage(offset: number): Promise<string> {
    const path = join(directory, 'damaged.iso');
    await writeFile(path, await readFile(medium.path));
    const file = await open(path, 'r+');
    await file.write(Buffer.from('damaged'), 0, 7, offset);
    await file.close();
    return path;
  }

  it('reads a part of an intact medium, and reports its sample', async () => {
    const { ok, sample, checked } = await verify(medium.path, 'a');
    expect([ok, sample?.seed, checked.bytes < (sample?.bytes ?? 0)]).toEqual([true, 'a', true]);
  });

  it('finds damage to structures and small files with any seed', async () => {
    const small = medium.index.extents.filter(
      ({ size, paths }) => size < 65_536 || paths.length === 0,
    );
    for (const { offset, digest } of small.filter((_, at) => at % 5 === 0)) {
      if (digest !== undefined)
        expect(await verify(await damage(offset), 'a')).toMatchObject({ ok: false });
    }
  });

  it('finds damage to a large file with some seeds, and not with others', async () => {
    const large = medium.index.extents.find(({ size }) => size > 200_000 && size < 1_000_000);
    const path = await damage(large?.offset ?? 0);
    const found = new Set<boolean>();
    for (let seed = 0; seed < 60 && found.size < 2; seed++)
      found.add((await verify(path, `${seed}`)).ok);
    expect(found).toEqual(new Set([true, false]));
  });
});
