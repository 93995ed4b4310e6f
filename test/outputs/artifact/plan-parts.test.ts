import { describe, expect, it } from 'vitest';
import { formatArtifact } from '../../../src/outputs/artifact/manifest.ts';
import { planParts, type Part } from '../../../src/outputs/artifact/parts.ts';
import { fakeDigest } from '../../support/sparse-medium.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** A medium of 2,000 blobs and 40 GB over a base of 1.2 GB, with 20,000 links and 4,000 small blobs. */
function layOutLarge(changed: (blob: number) => boolean): readonly Part[] {
  const extents: Part[] = [];
  let offset = 0;
  const add = (size: number, name: string): void => {
    extents.push({ offset, size, digest: fakeDigest(name) });
    offset = Math.ceil((offset + size) / 4096) * 4096;
  };
  add(32_768, 'system area');
  add(1100 * MIB, 'rootfs');
  add(90 * MIB, 'initrd');
  add(12 * MIB, `directories ${String(changed(0))}`);
  add(20 * MIB, `index ${String(changed(0))}`);
  for (let link = 0; link < 20_000; link += 1) {
    extents.push({
      offset,
      size: 71,
      digest: fakeDigest(`link ${link} ${String(changed(link % 2000))}`),
    });
    offset += 2048;
  }
  for (let blob = 0; blob < 4000; blob += 1)
    add(9000, `small ${blob} ${String(changed(blob % 2000))}`);
  for (let blob = 0; blob < 2000; blob += 1) add(20 * MIB, `blob ${blob} ${String(changed(blob))}`);
  return extents;
}

/** Runs have no digest before their bytes are read; here they are what they are made of. */
const listLayers = (extents: readonly Part[]): ReadonlyMap<string, number> =>
  new Map(
    planParts(extents).map(({ size, digest, extents: run }) => [
      digest ?? fakeDigest(JSON.stringify(run?.map((part) => part.digest))),
      size,
    ]),
  );

describe('the layers of an artifact', () => {
  it('are hardly more than the blobs of a medium of 40 GB, and a change of 5 % costs at most 6 %', () => {
    const before = listLayers(layOutLarge(() => false));
    expect(before.size).toBeLessThan(2050);
    const after = [...listLayers(layOutLarge((blob) => blob % 20 === 0))];
    const total = after.reduce((sum, [, size]) => sum + size, 0);
    const sent = after.reduce((sum, [digest, size]) => sum + (before.has(digest) ? 0 : size), 0);
    expect(total).toBeGreaterThan(39 * GIB);
    expect(sent / total).toBeLessThanOrEqual(0.06);
    // Where the registry has the images, blobs of 64 KiB and more are mounted.
    const own = after.reduce(
      (sum, [digest, size]) => sum + (before.has(digest) || size === 20 * MIB ? 0 : size),
      0,
    );
    expect(own / total).toBeLessThanOrEqual(0.01);
  });

  it('have at most 8 GiB, and contain each byte once', () => {
    const parts = planParts([{ offset: 4096, size: 20 * GIB + 1, digest: fakeDigest('huge') }]);
    expect(parts.map(({ offset, size }) => [offset, size])).toEqual([
      [4096, 8 * GIB],
      [4096 + 8 * GIB, 8 * GIB],
      [4096 + 16 * GIB, 4 * GIB + 1],
    ]);
  });

  it('fit, in any number, in manifests that registries accept', () => {
    const parts = Array.from({ length: 60_000 }, (_, at) => ({
      offset: at * MIB,
      size: MIB,
      digest: fakeDigest(`part ${at}`),
    }));
    const about = { title: 'a.iso', size: 60_000 * MIB, index: 'sha256:0', isPrivate: false };
    const { top, others } = formatArtifact({ ...about, parts }, 4096);
    expect(others.length).toBe(15);
    for (const { bytes } of [top, ...others]) expect(bytes.length).toBeLessThan(2 * MIB);
  });
});
