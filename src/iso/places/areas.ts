import type { Digest } from '../../base/digest.ts';
import { maxOf } from '../../base/lists.ts';
import {
  BLOB_ALIGNMENT,
  roundUp,
  SECTOR_SIZE,
  type Areas,
  type Places,
  type Sized,
} from '../extent.ts';
import {
  listGaps,
  takeBestFit,
  listKept,
  placeInOrder,
  placeKept,
  placeRow,
  type BlobPlaces,
} from './blobs.ts';

export type AreaContents = {
  /** Bytes of the base. */
  readonly base: number;
  /** Bytes of path tables, directories and continuation area. */
  readonly structures: number;
  /** Bytes; 0 without an index, and then no area gets room to grow. */
  readonly index: number;
  /** Rendered files, in the order that they have without a hint. */
  readonly files: readonly Sized[];
  readonly blobs: readonly Sized[];
};

export type PlacedAreas = {
  readonly areas: Areas;
  /** In the order of the bytes, regardless of the order of the hint. */
  readonly offsets: ReadonlyMap<Digest, number>;
  /** Position after the last byte. */
  readonly end: number;
};

/** Earlier places are used only if they keep at least this part of the bytes in place. */
const LEAST_KEPT = 0.5;
/** Earlier places are used only if the image is at most this many times as large as one without holes. */
const MOST_SIZE = 1.1;
/** Rendered parts move back to the base if the gap between them is more than this part of the image. */
const MOST_BEHIND_BASE = 0.01;

/**
 * Places everything after the base: at its earlier place if possible, otherwise one after another in the
 * order given. Places of another or an impossible layout are not an error.
 */
export function placeAreas(contents: AreaContents, hint?: Places): PlacedAreas {
  const compact = placeFresh(contents);
  if (!hint || !isPlausible(hint.areas)) return compact;
  const offsets = new Map(hint.offsets);
  if (countKept(contents.blobs, offsets) < LEAST_KEPT * sum(contents.blobs)) return compact;
  const kept = placeLikeBefore(contents, { ...hint, offsets: [...offsets] }, compact);
  return kept.end <= compact.end * MOST_SIZE ? kept : compact;
}

const sum = (blobs: readonly Sized[]): number => blobs.reduce((bytes, { size }) => bytes + size, 0);

const countKept = (blobs: readonly Sized[], offsets: ReadonlyMap<Digest, number>): number =>
  sum(blobs.filter(({ digest }) => offsets.has(digest)));

function isPlausible({ structures, files, index, smallBlobs, blobs }: Areas): boolean {
  const starts = [0, structures, files, index, smallBlobs, blobs];
  const isRising = starts.every((start, i) => start >= (starts[i - 1] ?? 0));
  return (
    isRising &&
    [structures, files].every((start) => start % SECTOR_SIZE === 0) &&
    [index, smallBlobs, blobs].every((start) => start % BLOB_ALIGNMENT === 0)
  );
}

type Front = {
  readonly areas: Omit<Areas, 'blobs'>;
  readonly offsets: ReadonlyMap<Digest, number>;
};

function placeFresh(contents: AreaContents): PlacedAreas {
  const front = placeFrontFresh(contents);
  const start = front.areas.smallBlobs;
  const { large, ...blobs } = placeInOrder(contents.blobs, start);
  return join(contents, front, { blobs, large });
}

function placeFrontFresh({ base, structures, index, files }: AreaContents): Front {
  const grow = (size: number): number => (index > 0 ? size + size / 16 : size);
  const structuresAt = roundUp(base, SECTOR_SIZE);
  const filesAt = roundUp(structuresAt + grow(structures), SECTOR_SIZE);
  const { offsets, end } = placeRow(files, { start: filesAt, alignment: SECTOR_SIZE });
  const indexAt = roundUp(filesAt + grow(end - filesAt), BLOB_ALIGNMENT);
  const smallBlobs = roundUp(indexAt + grow(index), BLOB_ALIGNMENT);
  return {
    areas: { structures: structuresAt, files: filesAt, index: indexAt, smallBlobs },
    offsets,
  };
}

function placeLikeBefore(
  contents: AreaContents,
  hint: Places,
  { end: compactEnd }: PlacedAreas,
): PlacedAreas {
  const offsets = new Map(hint.offsets);
  const isFar = hint.areas.structures - contents.base > MOST_BEHIND_BASE * compactEnd;
  const front = (isFar ? undefined : keepFront(contents, hint)) ?? placeFrontFresh(contents);
  const small = front.areas.smallBlobs;
  const large = Math.max(hint.areas.blobs, small);
  const digests = new Set(contents.blobs.map(({ digest }) => digest));
  const hasGone = hint.offsets.some(
    ([digest, offset]) => offset >= hint.areas.smallBlobs && !digests.has(digest),
  );
  const blobs = placeKept(contents.blobs, { offsets, small, large, hasGone });
  return join(contents, front, { blobs, large });
}

/** Rendered parts in their earlier areas; undefined if a part no longer fits into its area. */
function keepFront(
  { base, structures, index, files }: AreaContents,
  hint: Places,
): Front | undefined {
  const { areas } = hint;
  const fits =
    areas.structures >= base &&
    structures <= areas.files - areas.structures &&
    index <= areas.smallBlobs - areas.index;
  const offsets = fits ? keepFiles(files, hint) : undefined;
  return offsets && { areas, offsets };
}

function keepFiles(
  files: readonly Sized[],
  { areas, offsets }: Places,
): ReadonlyMap<Digest, number> | undefined {
  const limits = { start: areas.files, end: areas.index, alignment: SECTOR_SIZE };
  const runs = listKept(files, new Map(offsets), limits);
  const gaps = listGaps(runs, areas.files, areas.index);
  const places = new Map(runs.map(({ digest, offset }) => [digest, offset]));
  for (const { digest, size } of files) {
    if (places.has(digest)) continue;
    const offset = takeBestFit(gaps, roundUp(size, SECTOR_SIZE));
    if (offset === undefined) return undefined;
    places.set(digest, offset);
  }
  return new Map([...places].sort(([, a], [, b]) => a - b));
}

function join(
  { structures, index, files }: AreaContents,
  front: Front,
  { blobs, large }: { readonly blobs: BlobPlaces; readonly large: number },
): PlacedAreas {
  const offsets = new Map([...front.offsets, ...blobs.offsets]);
  const ends = files.map(({ digest, size }) => (front.offsets.get(digest) ?? 0) + size);
  const { areas } = front;
  const rendered = [areas.structures + structures, index > 0 ? areas.index + index : 0, ...ends];
  const end = blobs.offsets.size > 0 ? blobs.end : maxOf(rendered);
  return { areas: { ...areas, blobs: large }, offsets, end };
}
