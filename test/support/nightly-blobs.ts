import { digestOf, type Digest } from '../../src/base/digest.ts';
import type { Sized } from '../../src/iso/extent.ts';

/** Numbers in [0, 1) that are the same at every run (MINSTD). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

export const named = (name: string, size: number): Sized => ({ digest: digestOf(name), size });

/** Layers of images have such sizes: most are small, most bytes are in large ones. */
export function createBlobs(count: number, total: number, random: () => number): Sized[] {
  const spread = 1.1;
  const normal = (): number =>
    Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
  const weights = Array.from({ length: count }, () => Math.exp(spread * normal()));
  const sum = weights.reduce((a, b) => a + b);
  return weights.map((weight, i) => named(`blob ${i}`, Math.ceil((weight / sum) * total)));
}

/** The next night: blobs with 5 % of the bytes are replaced by others of nearly their size. */
export function change(blobs: readonly Sized[], night: number, random: () => number): Sized[] {
  const order = blobs.map((blob) => ({ blob, key: random() })).sort((a, b) => a.key - b.key);
  let left = 0.05 * bytesOf(blobs);
  const gone = new Set<Digest>();
  for (const { blob } of order) {
    if (blob.size > left) continue;
    left -= blob.size;
    gone.add(blob.digest);
  }
  return blobs.map((blob, i) =>
    gone.has(blob.digest)
      ? named(`night ${night} blob ${i}`, Math.ceil(blob.size * (0.97 + 0.06 * random())))
      : blob,
  );
}

export const bytesOf = (blobs: readonly Sized[]): number =>
  blobs.reduce((bytes, { size }) => bytes + size, 0);
