import { createHash } from 'node:crypto';
import { sumSizes } from '../base/lists.ts';
import type { IndexExtent } from './index/media-index.ts';

export type SampleOptions = {
  /** Draws are the same for the same medium and seed. */
  readonly seed: string;
  /** Part of the bytes that is read, about: over 0, up to 1. */
  readonly share: number;
};

/** What a sample found out is worth. Sizes are bytes. */
export type Sample = {
  readonly seed: string;
  readonly draws: number;
  /** All that could have been checked. */
  readonly extents: number;
  readonly bytes: number;
  /** With what probability damage of so much of the bytes would have been found, at least. */
  readonly confidence: readonly Confidence[];
};

export type Confidence = {
  /** Of the bytes: 0.01 is 1 %. */
  readonly damaged: number;
  /** Where single blocks are damaged here and there, as flash and disks wear. */
  readonly scattered: number;
  /** Wherever it is, in as few extents as there can be. */
  readonly together: number;
};

/** Up to this size an extent is always checked: they lie together, and there are few bytes in them. */
const SMALL = 64 * 1024;

/** What a worn medium loses at once. */
const BLOCK = 4096;

const DAMAGED = [0.001, 0.01, 0.05];

/**
 * Draws extents to check. Bytes have no digest but that of their extent, so whole extents are drawn: each time
 * one by a random byte, so that an extent comes with the probability of its size. Whatever bytes are damaged,
 * if they are the part f of those drawn from, a draw meets one of their extents with a probability of at
 * least f, and n draws miss all of them with (1 - f)^n at most. n depends on sizes alone.
 *
 * @param always checked in any case
 */
export function sampleExtents(
  {
    always,
    others,
  }: { readonly always: readonly IndexExtent[]; readonly others: readonly IndexExtent[] },
  { seed, share }: SampleOptions,
  identity: string,
): { readonly checked: readonly IndexExtent[]; readonly sample: Sample } {
  const isSmall = ({ size }: IndexExtent): boolean => size <= SMALL;
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

/** That one of some tries meets the part that is damaged. A sample is never certain. */
const chanceOf = (part: number, tries: number): number => Math.min(0.9999, 1 - (1 - part) ** tries);

const MOST_DRAWS = 1 << 20;

/** As many draws as bring about so many bytes; at least one. */
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
    const extent = extents[findEnd(ends, at)];
    if (extent) chosen.add(extent);
  }
  return chosen;
}

/** The first end behind a byte. */
function findEnd(ends: readonly number[], at: number): number {
  let [low, high] = [0, ends.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? Infinity) > at) high = middle;
    else low = middle + 1;
  }
  return low;
}
