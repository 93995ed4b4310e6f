import type { Digest } from '../../../base/digest.ts';
import type { ByteRange } from '../../../base/random-access.ts';
import type { DeltaExtent } from '../delta-file.ts';
import type { Move } from './plan-steps.ts';

export type OldIso = {
  /** Bytes. */
  readonly size: number;
  /** All but zeros, by offset. */
  readonly extents: readonly DeltaExtent[];
};

/** What it becomes. */
export type NewIso = OldIso & {
  /** What the old one has not, and where that is. */
  readonly carried: readonly (ByteRange & {
    readonly digest: Digest;
    /** What of it is made by patches is made before anything else. */
    readonly in: 'delta' | 'patched';
  })[];
};

/** Where every byte of the new ISO comes from, by offset and without a gap. */
export function listMoves(old: OldIso, now: NewIso): readonly Move[] {
  const places = new Map(old.extents.map(({ digest, offset }) => [digest, offset] as const));
  const atPlace = new Map(old.extents.map(({ digest, offset }) => [offset, digest] as const));
  const carried = new Map(now.carried.map((extent) => [extent.digest, extent] as const));
  const moves: Move[] = [];
  let end = 0;
  const fill = (offset: number): void => {
    if (offset > end) moves.push({ offset: end, size: offset - end, from: { kind: 'zeros' } });
  };
  for (const { offset, size, digest } of now.extents) {
    fill(offset);
    end = offset + size;
    const place = atPlace.get(offset) === digest ? offset : places.get(digest);
    const made = carried.get(digest);
    if (place !== undefined) moves.push({ offset, size, from: { kind: 'old', offset: place } });
    else if (made) moves.push({ offset, size, from: { kind: made.in, offset: made.offset } });
    else throw new Error(`nobody knows where the extent at byte ${offset} is`);
  }
  fill(now.size);
  return moves;
}

/** Without what is there already: bytes that stay, and zeros between the files of both. */
export function leaveOut(moves: readonly Move[], old: OldIso, boot: ByteRange): readonly Move[] {
  return moves.flatMap((move) => {
    const { from, offset, size } = move;
    if (from.kind === 'old' && from.offset === offset && offset >= boot.size) return [];
    return from.kind === 'zeros' ? listUsed({ offset, size }, old) : [move];
  });
}

/** What of a run is not known to be zeros on the old ISO. */
function listUsed({ offset, size }: ByteRange, old: OldIso): readonly Move[] {
  const end = offset + size;
  const used: Move[] = [];
  const add = (from: number, to: number): void => {
    const start = Math.max(from, offset);
    const stop = Math.min(to, end);
    if (start < stop) used.push({ offset: start, size: stop - start, from: { kind: 'zeros' } });
  };
  for (let at = findBehind(old.extents, offset); at < old.extents.length; at++) {
    const extent = old.extents[at];
    if (!extent || extent.offset >= end) break;
    add(extent.offset, extent.offset + extent.size);
  }
  add(old.size, end);
  return used;
}

/** The first that ends behind an offset. */
function findBehind(extents: readonly DeltaExtent[], offset: number): number {
  let [low, high] = [0, extents.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const extent = extents[middle];
    if (extent && extent.offset + extent.size > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}
