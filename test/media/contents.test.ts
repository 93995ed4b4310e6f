import { expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { readImageContents } from '../../src/media/contents.ts';
import type { MediaIndex } from '../../src/media/media-index.ts';

const COUNT = 200;
const SIZE = 4096;
const layer = (number: number) => digestOf(`layer ${number}`);
const manifest = (number: number): Buffer =>
  Buffer.from(`{"layers":[{"digest":"${layer(number)}"},{"digest":"${layer(number + 1)}"}]}`);

/** Each image has a manifest of two layers, the second of which the next image has too. */
const INDEX: MediaIndex = {
  format: 2,
  product: 'live-iso',
  release: { version: '4.21.3', reference: 'a', architecture: 'x86_64' },
  images: Array.from({ length: COUNT }, (_, number) => ({
    name: `image-${number}`,
    set: 'release',
    source: 'a',
    repository: 'a',
    tags: [],
    manifests: [digestOf(manifest(number))],
  })),
  extents: Array.from({ length: COUNT }, (_, number) => [
    { offset: number * SIZE, size: SIZE, digest: digestOf(manifest(number)), paths: [] },
    { offset: (COUNT + number) * SIZE, size: 1, digest: layer(number), paths: [] },
  ]).flat(),
};

it('the manifests of a medium are read 16 at a time, and reported in the order of its index', async () => {
  const waiting: (() => void)[] = [];
  let most = 0;
  let reads = 0;
  const answerLast = (): void => {
    most = Math.max(most, waiting.length);
    waiting.pop()?.();
  };
  const iso = {
    async readBytes(offset: number) {
      reads++;
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        setImmediate(answerLast);
      });
      return manifest(offset / SIZE);
    },
  };
  const told: (readonly [string, readonly number[]])[] = [];
  for await (const { image, extents } of readImageContents(iso, INDEX)) {
    told.push([image.name, extents.map(({ offset }) => offset / SIZE)]);
  }
  expect(told).toEqual(
    INDEX.images.map(({ name }, number) => {
      const next = number + 1 < COUNT ? [COUNT + number + 1] : [];
      return [name, [number, COUNT + number, ...next]];
    }),
  );
  expect([most, reads]).toEqual([16, COUNT]);
});
