import type { Digest } from '../../base/digest.ts';
import type { Extent, Layout } from '../../iso/extent.ts';
import type { IndexExtent } from '../index/media-index.ts';

/** What stands in an object that a build of ours finished: zeros wherever none of its extents are. */
export type EarlierIso = { readonly size: number; readonly extents: readonly IndexExtent[] };

/** A stretch of the new ISO. */
export type Run = {
  readonly offset: number;
  readonly size: number;
} & (
  | { readonly kind: 'send' }
  /** The earlier ISO has the same bytes at `from`. */
  | { readonly kind: 'copy'; readonly from: number }
);

/**
 * The stretches that an earlier ISO has, at the same offset or at another one, and those that it has not.
 * They cover the new ISO in order.
 */
export function findRuns({ extents, size }: Layout, earlier?: EarlierIso): readonly Run[] {
  if (!earlier) return [{ kind: 'send', offset: 0, size }];
  const find = createFinder(earlier);
  const runs: Run[] = [];
  for (const extent of extents) {
    const last = runs.at(-1);
    const shift = last?.kind === 'copy' ? last.from - last.offset : undefined;
    const from = find(extent, shift);
    const { offset, size } = extent;
    const continues = from === undefined ? last?.kind === 'send' : from - offset === shift;
    if (last && continues) runs[runs.length - 1] = { ...last, size: last.size + size };
    else if (from === undefined) runs.push({ kind: 'send', offset, size });
    else runs.push({ kind: 'copy', offset, size, from });
  }
  return runs;
}

/** Where the earlier ISO has an extent: best where the run that is being made goes on. */
function createFinder({ size, extents }: EarlierIso) {
  const sorted = extents.toSorted((a, b) => a.offset - b.offset);
  const byOffset = new Map(sorted.map((extent) => [extent.offset, extent]));
  const byDigest = new Map<Digest, IndexExtent>();
  for (const extent of sorted) {
    if (extent.digest !== undefined) byDigest.set(extent.digest, extent);
  }
  const hasZeros = (start: number, end: number): boolean => {
    if (start < 0 || end > size) return false;
    const before = sorted[countBefore(sorted, end) - 1];
    return !before || before.offset + before.size <= start;
  };
  const isAt = (extent: Extent, from: number): boolean => {
    if (extent.source.kind === 'zero') return hasZeros(from, from + extent.size);
    const found = byOffset.get(from);
    return (
      found?.digest !== undefined && found.digest === extent.digest && found.size === extent.size
    );
  };
  return (extent: Extent, shift: number | undefined): number | undefined => {
    if (shift !== undefined && isAt(extent, extent.offset + shift)) return extent.offset + shift;
    if (isAt(extent, extent.offset)) return extent.offset;
    const found = extent.digest && byDigest.get(extent.digest);
    return found?.size === extent.size ? found.offset : undefined;
  };
}

/** How many extents begin before a byte; sorted. */
function countBefore(sorted: readonly IndexExtent[], position: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle]?.offset ?? Infinity) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
