import type { Digest } from '../../base/digest.ts';
import { withoutUndefined } from '../../base/lists.ts';

/** A run of bytes of the ISO that is a layer of its artifact. Between parts are zeros. */
export type Part = {
  /** Bytes from the start of the ISO. */
  readonly offset: number;
  /** Bytes, more than 0. */
  readonly size: number;
  /** Absent where only the bytes tell. */
  readonly digest?: Digest;
};

/** What an ISO is cut into. */
export type PlannedPart = Part & {
  /** What stands in it, where it is several small extents; none is larger than a run may be. */
  readonly extents?: readonly Part[];
  /** The extent that it is a piece of, where that is too large for one layer. */
  readonly pieceOf?: Part;
};

/** Bytes; registries refuse layers over some 10 GiB. */
const LARGEST = 8 * 2 ** 30;

/** From this size on, an extent is a layer by itself: that of an image is the image's own blob. */
const OWN = 64 * 1024;

/** Zeros between two small extents that are sent with them. */
const GAP = 16 * 1024;

/** Bytes of small extents in one layer, with the zeros between them. */
const RUN = 16 * 2 ** 20;

/**
 * Cuts an ISO into the layers of its artifact: each blob and each large file by itself, so that other
 * ISOs, and the images, have the same layers; what is small together with its neighbours.
 *
 * @param extents by offset, without overlaps
 */
export function planParts(extents: readonly Part[], largest = LARGEST): readonly PlannedPart[] {
  const parts: PlannedPart[] = [];
  let run: Part[] = [];
  const closeRun = (): void => {
    const joined = joinRun(run);
    if (joined) parts.push(joined);
    run = [];
  };
  for (const { offset, size, digest } of extents) {
    const extent: Part = { offset, size, ...withoutUndefined({ digest }) };
    if (size >= OWN) {
      closeRun();
      for (const part of cut(extent, largest)) parts.push(part);
    } else if (size > 0) {
      if (!belongsTo(run, extent)) closeRun();
      run.push(extent);
    }
  }
  closeRun();
  return parts;
}

function belongsTo(run: readonly Part[], { offset, size }: Part): boolean {
  const [first, last] = [run[0], run.at(-1)];
  if (!first || !last) return true;
  return offset - (last.offset + last.size) <= GAP && offset + size - first.offset <= RUN;
}

/** One extent is what it was. */
function joinRun(run: readonly Part[]): PlannedPart | undefined {
  const [first, last] = [run[0], run.at(-1)];
  if (!first || !last || first === last) return first;
  return { offset: first.offset, size: last.offset + last.size - first.offset, extents: run };
}

function* cut(extent: Part, largest: number): Generator<PlannedPart> {
  if (extent.size <= largest) {
    yield extent;
    return;
  }
  for (let done = 0; done < extent.size; done += largest) {
    const size = Math.min(largest, extent.size - done);
    yield { offset: extent.offset + done, size, pieceOf: extent };
  }
}
