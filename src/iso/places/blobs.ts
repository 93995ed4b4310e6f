import type { Digest } from '../../base/digest.ts';
import { append, findFirst } from '../../base/lists.ts';
import { BLOB_ALIGNMENT, roundUp, SMALL_BLOB, type Sized } from '../extent.ts';

export type Run = { readonly offset: number; readonly size: number };

/** Room between runs; placing a blob there makes it smaller. */
export type Gap = { offset: number; size: number };

/** The room from `start` to `end` that runs, sorted by offset, leave free. */
export function listGaps(runs: readonly Run[], start: number, end: number): Gap[] {
  const gaps: Gap[] = [];
  let at = start;
  for (const { offset, size } of runs) {
    if (offset >= end) break;
    if (offset > at) gaps.push({ offset: at, size: offset - at });
    at = Math.max(at, offset + size);
  }
  if (end > at && end !== Infinity) gaps.push({ offset: at, size: end - at });
  return gaps;
}

/** Takes `size` bytes from the start of the smallest gap that has them; returns their offset. */
export function takeBestFit(gaps: readonly Gap[], size: number): number | undefined {
  let best: Gap | undefined;
  for (const gap of gaps) if (gap.size >= size && (!best || gap.size < best.size)) best = gap;
  if (!best) return undefined;
  const { offset } = best;
  best.offset += size;
  best.size -= size;
  return offset;
}

/** A blob at its place; `size` is that of its blocks. */
type PlacedBlob = Run & {
  readonly digest: Digest;
  /** True if an earlier layout has it there. */
  readonly stood: boolean;
};

export type BlobPlaces = {
  readonly offsets: ReadonlyMap<Digest, number>;
  /** Position after the last blob. */
  readonly end: number;
};

/** The part of all blobs that holes may reach before blobs from the end move into them. */
const MOST_HOLES = 0.006;

/** The part of all blobs that may move into holes in one layout; without clones they are fetched again. */
const MOST_MOVED = 0.009;

/** Room for small blobs that later layouts bring. */
const roomForSmall = (size: number): number => roundUp(size + size / 32, BLOB_ALIGNMENT);

/** Places blobs one after another in the order given; small ones have their own area in front. */
export function placeInOrder(
  blobs: readonly Sized[],
  start: number,
): BlobPlaces & { readonly large: number } {
  const alignment = BLOB_ALIGNMENT;
  const small = blobs.filter(isSmall);
  const first = placeRow(small, { start, alignment });
  const large = start + roomForSmall(first.end - start);
  const rest = placeRow(
    blobs.filter((blob) => !isSmall(blob)),
    { start: large, alignment },
  );
  const end = blobs.length > small.length ? rest.end : first.end;
  return { offsets: new Map([...first.offsets, ...rest.offsets]), end, large };
}

const isSmall = ({ size }: Sized): boolean => size < SMALL_BLOB;

type Row = { readonly start: number; readonly alignment: number };

export function placeRow(contents: readonly Sized[], { start, alignment }: Row): BlobPlaces {
  const offsets = new Map<Digest, number>();
  let end = start;
  for (const { digest, size } of contents) {
    const offset = roundUp(end, alignment);
    offsets.set(digest, offset);
    end = offset + size;
  }
  return { offsets, end };
}

/** Blobs of an earlier layout, and the areas they may use now. */
export type KeptBlobs = {
  readonly offsets: ReadonlyMap<Digest, number>;
  /** Start of the small blobs, and of the others. */
  readonly small: number;
  readonly large: number;
  /** True if the earlier layout had blobs that this one lacks. */
  readonly hasGone: boolean;
};

/**
 * Leaves blobs where an earlier layout has them and places new ones in the gaps of removed ones, best fit
 * first, or at the end. Only blobs before the new `small` must move. If holes exceed {@link MOST_HOLES},
 * blobs from the end move into them. Same arguments, same places.
 */
export function placeKept(blobs: readonly Sized[], kept: KeptBlobs): BlobPlaces {
  const limits = { start: kept.small, end: Infinity, alignment: BLOB_ALIGNMENT };
  const runs = listKept(blobs, kept.offsets, limits);
  const standing = new Set(runs.map(({ digest }) => digest));
  const added = blobs.filter(({ digest }) => !standing.has(digest));
  if (added.length > 0) addBlobs(runs, added, kept);
  if (added.length > 0 || kept.hasGone) fillHoles(runs, kept.large);
  const sizes = new Map(blobs.map(({ digest, size }) => [digest, size]));
  const ends = runs.map(({ digest, offset }) => offset + (sizes.get(digest) ?? 0));
  return {
    offsets: new Map(runs.map(({ digest, offset }) => [digest, offset])),
    end: ends.reduce((end, one) => Math.max(end, one), kept.small),
  };
}

type Limits = Row & { readonly end: number };

/** Contents whose earlier place is free, by offset. The hint is not trusted: places must not overlap. */
export function listKept(
  contents: readonly Sized[],
  offsets: ReadonlyMap<Digest, number>,
  { start, end, alignment }: Limits,
): PlacedBlob[] {
  const found = contents.flatMap(({ digest, size }) => {
    const offset = offsets.get(digest);
    if (offset === undefined || offset % alignment !== 0) return [];
    return [{ digest, offset, size: roundUp(size, alignment), stood: true }];
  });
  found.sort((a, b) => a.offset - b.offset);
  let free = start;
  return found.filter(({ offset, size }) => {
    if (offset < free || offset + size > end) return false;
    free = offset + size;
    return true;
  });
}

/** Places new blobs, the largest first, because the fewest gaps fit it. */
function addBlobs(runs: PlacedBlob[], added: readonly Sized[], { small, large }: KeptBlobs): void {
  const smallGaps = listGaps(runs, small, large);
  const largeGaps = listGaps(runs, large, Infinity);
  let end = Math.max(large, endOf(runs));
  const sorted = added.toSorted((a, b) => b.size - a.size || (a.digest < b.digest ? -1 : 1));
  for (const blob of sorted) {
    const size = roundUp(blob.size, BLOB_ALIGNMENT);
    const near = isSmall(blob) ? takeBestFit(smallGaps, size) : undefined;
    const offset = near ?? takeBestFit(largeGaps, size) ?? end;
    runs.push({ digest: blob.digest, offset, size, stood: false });
    end = Math.max(end, offset + size);
  }
  runs.sort((a, b) => a.offset - b.offset);
}

const endOf = (runs: readonly Run[]): number => {
  const last = runs.at(-1);
  return last ? last.offset + last.size : 0;
};

/** Moves the last blob into a gap, or makes one for it, until holes are few or nothing else helps. */
function fillHoles(runs: PlacedBlob[], large: number): void {
  const total = runs.reduce((sum, { size }) => sum + size, 0);
  let budget = total * MOST_MOVED;
  for (;;) {
    const gaps = listGaps(runs, large, Infinity);
    const holes = gaps.reduce((sum, { size }) => sum + size, 0);
    const last = runs.at(-1);
    if (!last || last.offset < large || holes <= total * MOST_HOLES) return;
    const cost = costOf(last);
    const move = findMove(runs, { gaps, last, budget: budget - cost });
    if (!move || cost > budget) return;
    budget -= cost + move.cost;
    applyMove(runs, move);
  }
}

/** A blob that an earlier layout has elsewhere must be written again. */
const costOf = ({ stood, size }: PlacedBlob): number => (stood ? size : 0);

type Move = {
  /** New place of the last blob. */
  readonly offset: number;
  /** Blobs at that place with their new offsets; without an offset, they go to the end. */
  readonly evicted: readonly { readonly blob: PlacedBlob; readonly offset: number | undefined }[];
  /** Bytes of evicted blobs that are written again. */
  readonly cost: number;
  /** Bytes by which the end moves towards the start. */
  readonly gain: number;
};

type Shift = { readonly gaps: readonly Gap[]; readonly last: PlacedBlob; readonly budget: number };

/** The cheapest way to bring the end nearer: into a gap, or into several after moving blobs between them. */
function findMove(runs: readonly PlacedBlob[], shift: Shift): Move | undefined {
  const { gaps, last } = shift;
  const below = gaps.filter(({ offset }) => offset < last.offset).map((gap) => ({ ...gap }));
  const offset = takeBestFit(below, last.size);
  if (offset !== undefined) return { offset, evicted: [], cost: 0, gain: last.size };
  let best: Move | undefined;
  const worth = ({ gain, cost }: Move): number => gain / (cost + costOf(last) + 1);
  for (const gap of gaps) {
    const move = evictFrom(runs, gap, shift);
    if (move && move.gain > 0 && (!best || worth(move) > worth(best))) best = move;
  }
  return best;
}

/** Makes room from a gap on by moving away the blobs after it, if that costs no more than the budget. */
function evictFrom(
  runs: readonly PlacedBlob[],
  { offset }: Gap,
  { gaps, last, budget }: Shift,
): Move | undefined {
  const blobs: PlacedBlob[] = [];
  let cost = 0;
  let end = offset;
  for (let i = findFirst(runs, (one) => one.offset >= offset); end < offset + last.size; i += 1) {
    const blob = runs[i];
    if (!blob || blob === last) return undefined;
    blobs.push(blob);
    cost += costOf(blob);
    if (cost > budget) return undefined;
    end = runs[i + 1]?.offset ?? offset;
  }
  const others = gaps.filter((gap) => gap.offset < offset || gap.offset >= end);
  const left = { offset: offset + last.size, size: end - offset - last.size };
  const room = [...others.filter((gap) => gap.offset < last.offset), left].map((gap) => ({
    ...gap,
  }));
  const evicted = blobs
    .toSorted((a, b) => b.size - a.size)
    .map((blob) => ({ blob, offset: takeBestFit(room, blob.size) }));
  const back = evicted.filter((one) => one.offset === undefined);
  const gain = last.size - back.reduce((sum, { blob }) => sum + blob.size, 0);
  return { offset, evicted, cost, gain };
}

function applyMove(runs: PlacedBlob[], { offset, evicted }: Move): void {
  const last = runs.pop();
  if (!last) return;
  const gone = new Set(evicted.map(({ blob }) => blob));
  const placed = runs.filter((blob) => !gone.has(blob));
  placed.push({ ...last, offset, stood: false });
  for (const { blob, offset } of evicted) {
    if (offset !== undefined) placed.push({ ...blob, offset, stood: false });
  }
  placed.sort((a, b) => a.offset - b.offset);
  for (const { blob, offset } of evicted) {
    if (offset === undefined) placed.push({ ...blob, offset: endOf(placed), stood: false });
  }
  runs.length = 0;
  append(runs, placed);
}
