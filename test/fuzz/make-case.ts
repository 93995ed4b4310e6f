import type { Random } from '../faults/random.ts';
import { mutate, type Shape } from './mutate.ts';
import type { Seed } from './seeds.ts';

/** A case out of valid files: the same for the same seed of `random`. */
export function makeCase({
  seeds,
  shape,
  random,
}: {
  readonly seeds: readonly Seed[];
  readonly shape: Shape;
  readonly random: Random;
}): Buffer {
  const seed = seeds[random.below(seeds.length)];
  if (!seed) throw new Error('a reader has seeds');
  const others = seeds.map(({ bytes }) => bytes);
  const bytes = mutate(seed.bytes, shape, { random, others });
  return seed.finish ? seed.finish(bytes) : bytes;
}
