import type { Digest } from '../../base/digest.ts';
import { DiskError } from '../../base/errors.ts';
import { findFirst, maxOf, sumSizes } from '../../base/lists.ts';
import type { ByteRange } from '../../base/random-access.ts';
import type { Extent, Layout } from '../../iso/index.ts';

/** Bytes of an earlier object; the digest is absent if it is not known. */
export type EarlierExtent = ByteRange & { readonly digest?: Digest };

/** The contents of an object that a build of ours finished: zeros outside its extents. */
export type EarlierContents = { readonly size: number; readonly extents: readonly EarlierExtent[] };

/** Bytes of the ISO that one request sends or copies. */
export type ObjectPart = {
  /** From 1. */
  readonly number: number;
  readonly offset: number;
  readonly size: number;
};

/** Bytes to send: an extent, verified as a whole, or bytes of the earlier object that fill a part. */
export type Piece = Extent | Filler;

export type Filler = {
  readonly offset: number;
  readonly size: number;
  /** Offset in the earlier object. */
  readonly from: number;
};

/** Parts that are made together because they contain whole spans. */
export type PartGroup =
  | { readonly kind: 'copy'; readonly part: ObjectPart; readonly from: number }
  | {
      readonly kind: 'send';
      readonly parts: readonly ObjectPart[];
      readonly pieces: readonly Piece[];
    };

export type PartPlan = {
  readonly groups: readonly PartGroup[];
  /** Bytes of the largest part that is sent: the memory that a lane needs. */
  readonly partSize: number;
  readonly sent: number;
  readonly copied: number;
};

/** The limits that S3 promises. Bytes, and a count. */
export const S3_LIMITS = { minPart: 5 << 20, maxPart: 5 * 2 ** 30, maxParts: 10_000 } as const;

/** Has room for two parts of at least the smallest size. */
const PART_SIZE = 2 * S3_LIMITS.minPart;

const COPY_SIZE = 256 << 20;

/**
 * Cuts an ISO into the parts of an upload. The server copies runs that the earlier object has; the rest is
 * sent, in groups of whole spans, so that every span is verified before its group counts as done. If few
 * bytes changed between such runs, a part that is too small is filled from them.
 *
 * Parts are 5 to 10 MiB, and larger only if there would be too many: a kill costs little, and a lane needs
 * little memory. Pure: same layout and same earlier object, same parts.
 *
 * @param most parts that the service takes
 */
export function planObjectParts(
  layout: Layout,
  earlier?: EarlierContents,
  most: number = S3_LIMITS.maxParts,
): PartPlan {
  const runs = findRuns(layout, earlier);
  for (let scale = 1; scale * PART_SIZE <= S3_LIMITS.maxPart; scale *= 2) {
    const plan = planWith(scale, runs, layout);
    if (countParts(plan) <= most) return plan;
  }
  throw new DiskError('object-store.too-large', `the ISO has ${layout.size} bytes`, {
    expected: `at most ${most} parts of ${S3_LIMITS.maxPart} bytes`,
    found: String(layout.size),
  });
}

export const partsOf = (group: PartGroup): readonly ObjectPart[] =>
  group.kind === 'copy' ? [group.part] : group.parts;

export const countParts = ({ groups }: PartPlan): number =>
  groups.reduce((sum, group) => sum + partsOf(group).length, 0);

function planWith(scale: number, runs: readonly ObjectRun[], layout: Layout): PartPlan {
  const groups = cutRuns(fillRuns(runs, scale * S3_LIMITS.minPart), scale, layout);
  const sent = groups.flatMap((group) => (group.kind === 'send' ? group.parts : []));
  const sizes = sent.map(({ size }) => size);
  const size = sumSizes(sent);
  return { groups, partSize: maxOf(sizes, 0), sent: size, copied: layout.size - size };
}

/** A stretch of the new ISO. */
export type ObjectRun = {
  readonly offset: number;
  readonly size: number;
} & (
  | { readonly kind: 'send' }
  /** The earlier ISO has the same bytes at `from`. */
  | { readonly kind: 'copy'; readonly from: number }
);

/** Covers the new ISO in order. An earlier ISO may have a stretch at another offset. */
function findRuns({ extents, size }: Layout, earlier?: EarlierContents): readonly ObjectRun[] {
  if (!earlier) return [{ kind: 'send', offset: 0, size }];
  const find = createFinder(earlier);
  const runs: ObjectRun[] = [];
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

/** Prefers the place at which the current run continues. */
function createFinder({ size, extents }: EarlierContents) {
  const sorted = extents.toSorted((a, b) => a.offset - b.offset);
  const byOffset = new Map(sorted.map((extent) => [extent.offset, extent]));
  const byDigest = new Map<Digest, EarlierExtent>();
  for (const extent of sorted) {
    if (extent.digest !== undefined) byDigest.set(extent.digest, extent);
  }
  const hasZeros = (start: number, end: number): boolean => {
    if (start < 0 || end > size) return false;
    const before = sorted[findFirst(sorted, (one) => one.offset >= end) - 1];
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

type Copied = Extract<ObjectRun, { readonly kind: 'copy' }>;

type Stretch = ObjectRun;

/** A run that parts can be cut from. */
export type FilledRun = Copied | { readonly kind: 'send'; readonly stretches: readonly Stretch[] };

/**
 * Gives every run but the last this length: short copies are sent, a short run to send takes from the next.
 */
function fillRuns(runs: readonly ObjectRun[], least: number): readonly FilledRun[] {
  const filled: FilledRun[] = [];
  let open: Stretch[] = [];
  let size = 0;
  const send = (stretch: Stretch): void => {
    open.push(stretch);
    size += stretch.size;
  };
  const close = (): void => {
    if (open.length > 0) filled.push({ kind: 'send', stretches: open });
    open = [];
    size = 0;
  };
  for (const run of runs) {
    const missing = open.length > 0 ? Math.max(0, least - size) : 0;
    if (run.kind === 'send' || run.size - missing < least) {
      send(run);
      continue;
    }
    if (missing > 0) send({ ...run, size: missing });
    close();
    filled.push({
      ...run,
      offset: run.offset + missing,
      from: run.from + missing,
      size: run.size - missing,
    });
  }
  close();
  return filled;
}

function cutRuns(
  runs: readonly FilledRun[],
  scale: number,
  { extents }: Layout,
): readonly PartGroup[] {
  const cut = createCutter();
  let next = 0;
  const piecesOf = (stretch: ObjectRun): readonly Piece[] => {
    if (stretch.kind === 'copy') return [stretch];
    while ((extents[next]?.offset ?? Infinity) < stretch.offset) next += 1;
    const first = next;
    while ((extents[next]?.offset ?? Infinity) < stretch.offset + stretch.size) next += 1;
    return extents.slice(first, next);
  };
  return runs.flatMap((run): readonly PartGroup[] => {
    if (run.kind === 'copy') {
      return cut(run, Math.min(S3_LIMITS.maxPart, scale * COPY_SIZE)).map((part) => ({
        kind: 'copy',
        from: run.from + part.offset - run.offset,
        part,
      }));
    }
    const groups = groupPieces(run.stretches.flatMap(piecesOf), scale * S3_LIMITS.minPart);
    return groups.map((pieces) => {
      const range = { offset: pieces[0]?.offset ?? 0, size: sumSizes(pieces) };
      return { kind: 'send', pieces, parts: cut(range, scale * PART_SIZE) };
    });
  });
}

/** Groups of whole pieces with at least this many bytes each; a remainder joins the last group. */
function groupPieces(pieces: readonly Piece[], least: number): readonly (readonly Piece[])[] {
  const groups: Piece[][] = [];
  let size = 0;
  let left = sumSizes(pieces);
  for (const piece of pieces) {
    if (groups.length === 0 || (size >= least && left >= least)) {
      groups.push([]);
      size = 0;
    }
    groups.at(-1)?.push(piece);
    size += piece.size;
    left -= piece.size;
  }
  return groups;
}

type Range = Pick<ObjectPart, 'offset' | 'size'>;

/** Cuts a range into as few parts as possible, all about the same size, and numbers them. */
function createCutter(): (range: Range, most: number) => readonly ObjectPart[] {
  let number = 0;
  return ({ offset, size }, most) => {
    const count = Math.ceil(size / most);
    const edge = (index: number): number => offset + Math.floor((size * index) / count);
    return Array.from({ length: count }, (_, index) => ({
      number: (number += 1),
      offset: edge(index),
      size: edge(index + 1) - edge(index),
    }));
  };
}
