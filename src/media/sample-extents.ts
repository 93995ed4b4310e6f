import { createHash } from 'node:crypto';
import { findFirst, sumSizes } from '../base/lists.ts';
import type { IndexExtent } from './media-index.ts';

/* A random sample of the extents of a medium, and the confidence that it gives. */

export type SampleOptions = {
  /** Equal media and seeds give equal samples. */
  readonly seed: string;
  /** Approximate share of the bytes to read: above 0, up to 1. */
  readonly share: number;
};

/** Sizes are bytes. */
export type Sample = {
  readonly seed: string;
  readonly draws: number;
  /** Extents that could have been checked. */
  readonly extents: number;
  readonly bytes: number;
  /** Least probability of finding damage, for some shares of damaged bytes. */
  readonly confidence: readonly Confidence[];
};

export type Confidence = {
  /** Share of the bytes: 0.01 is 1 %. */
  readonly damaged: number;
  /** Confidence if single blocks are damaged here and there, as flash and disks wear. */
  readonly scattered: number;
  /** Confidence for any distribution, even if the damage is in as few extents as possible. */
  readonly together: number;
};

/** Largest extent that is always checked: such extents are adjacent and have few bytes. */
const ALWAYS_CHECKED = 64 * 1024;

/** Bytes that a worn medium loses at once. */
const BLOCK = 4096;

const DAMAGED = [0.001, 0.01, 0.05];

/**
 * Only whole extents have a digest, so whole extents are drawn: each draw picks the extent of a random byte,
 * so that the probability of an extent is proportional to its size. If a share f of the bytes is damaged, a
 * draw finds a damaged extent with probability f or more, and n draws miss all of them with (1 - f)^n at
 * most. n depends on sizes alone.
 *
 * @param always extents that are checked in any case
 */
export function sampleExtents(
  {
    always,
    others,
  }: { readonly always: readonly IndexExtent[]; readonly others: readonly IndexExtent[] },
  { seed, share }: SampleOptions,
  identity: string,
): { readonly checked: readonly IndexExtent[]; readonly sample: Sample } {
  const isSmall = ({ size }: IndexExtent): boolean => size <= ALWAYS_CHECKED;
  const sure = [...always, ...others.filter(isSmall)];
  const drawn = others.filter((extent) => !isSmall(extent));
  const [bytes, drawnBytes] = [sumSizes(always) + sumSizes(others), sumSizes(drawn)];
  const draws = planDraws(drawn, share * bytes - sumSizes(sure));
  const checked = [...sure, ...draw(drawn, draws, `${identity} ${seed}`)];
  const checkedBytes = sumSizes(checked);
  const confidence = DAMAGED.map((damaged): Confidence => {
    const part = drawnBytes === 0 ? 1 : Math.min(1, (damaged * bytes) / drawnBytes);
    const isAll = checkedBytes === bytes;
    return {
      damaged,
      scattered: isAll ? 1 : chanceOf(damaged, Math.floor(checkedBytes / BLOCK)),
      together: isAll ? 1 : chanceOf(part, draws),
    };
  });
  const extents = always.length + others.length;
  return { checked, sample: { seed, draws, extents, bytes, confidence } };
}

/** Probability that one of some draws meets the damaged part. A sample is never certain. */
const chanceOf = (part: number, tries: number): number => Math.min(0.9999, 1 - (1 - part) ** tries);

const MOST_DRAWS = 1 << 20;

/** Number of draws expected to read so many bytes; at least one. */
function planDraws(extents: readonly IndexExtent[], bytes: number): number {
  const total = sumSizes(extents);
  const expect = (draws: number): number => {
    let sum = 0;
    for (const { size } of extents) sum += size * (1 - (1 - size / total) ** draws);
    return sum;
  };
  let [low, high] = [1, MOST_DRAWS];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (expect(middle) >= bytes) high = middle;
    else low = middle + 1;
  }
  return extents.length === 0 ? 0 : low;
}

function draw(
  extents: readonly IndexExtent[],
  draws: number,
  key: string,
): ReadonlySet<IndexExtent> {
  const ends: number[] = [];
  let total = 0;
  for (const { size } of extents) ends.push((total += size));
  const chosen = new Set<IndexExtent>();
  for (let number = 0; number < draws && chosen.size < extents.length; number++) {
    const hash = createHash('sha256').update(`${key} ${number}`).digest();
    const at = Number(hash.readBigUInt64BE() % BigInt(total));
    const extent = extents[findFirst(ends, (end) => end > at)];
    if (extent) chosen.add(extent);
  }
  return chosen;
}
