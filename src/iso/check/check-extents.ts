import { damage, type StructureProblem, type UsedExtent } from './structure-problem.ts';

/**
 * Checks that no two extents overlap; files that are exactly the same extent share it. Sorts `extents`
 * in place.
 */
export function* checkOverlaps(extents: UsedExtent[]): Generator<StructureProblem> {
  const sorted = extents.sort((a, b) => a.offset - b.offset || b.size - a.size);
  let furthest: UsedExtent | undefined;
  for (const extent of sorted) {
    if (extent.size === 0) continue;
    if (furthest && extent.offset < endOf(furthest) && !isSame(extent, furthest)) {
      yield damage(
        `bytes ${extent.offset} to ${endOf(extent)} overlap bytes ${furthest.offset} to ${endOf(furthest)} of ${furthest.path}`,
        { path: extent.path, range: { offset: extent.offset, size: extent.size } },
      );
    }
    if (!furthest || endOf(extent) > endOf(furthest)) furthest = extent;
  }
}

const endOf = ({ offset, size }: UsedExtent): number => offset + size;

const isSame = (a: UsedExtent, b: UsedExtent): boolean =>
  a.offset === b.offset && a.size === b.size;
