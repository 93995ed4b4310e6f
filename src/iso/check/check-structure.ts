import { checkBoot } from './check-boot.ts';
import { findUnequalInDescriptor } from './check-byte-orders.ts';
import { checkDirectories, type FoundTree } from './check-directories.ts';
import { checkPathTables } from './check-path-tables.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { IsoImage } from '../open-iso.ts';
import { damage, type StructureProblem, type UsedExtent } from './structure-problem.ts';

/**
 * Everything that is wrong with the structure of an image, one problem at a time: volume descriptors,
 * directories of the primary and the Joliet tree, path tables, overlaps, El Torito, MBR and GPT. Reads
 * the structure only, never a file; keeps about a hundred bytes a file in memory.
 */
export async function* checkStructure(iso: IsoImage): AsyncGenerator<StructureProblem> {
  yield* checkDescriptors(iso);
  const extents = descriptorExtents(iso);
  const trees = [
    { volume: iso.volume, isJoliet: false },
    ...(iso.joliet ? [{ volume: iso.joliet, isJoliet: true }] : []),
  ];
  for (const tree of trees) {
    const found: FoundTree = { directories: new Map(), extents };
    yield* checkDirectories(iso, tree, found);
    yield* checkPathTables(iso, tree.volume, found);
  }
  yield* checkOverlaps(extents);
  yield* checkBoot(iso);
}

function* checkDescriptors(iso: IsoImage): Generator<StructureProblem> {
  for (const [index, descriptor] of iso.descriptors.entries()) {
    if (descriptor.kind !== 'primary' && descriptor.kind !== 'supplementary') continue;
    for (const at of findUnequalInDescriptor(descriptor.raw)) {
      yield damage(
        `both byte orders of the number at byte ${at} of volume descriptor ${index + 1} differ`,
        { range: { offset: (16 + index) * SECTOR_SIZE + at, size: 4 } },
      );
    }
    const { volumeSpaceSize } = descriptor.volume;
    if (volumeSpaceSize * SECTOR_SIZE > iso.fileSize) {
      yield damage(
        `volume descriptor ${index + 1} says ${volumeSpaceSize} sectors, the image has ${iso.fileSize / SECTOR_SIZE}`,
      );
    }
  }
}

const descriptorExtents = (iso: IsoImage): FoundTree['extents'] => [
  { offset: 0, size: (16 + iso.descriptors.length) * SECTOR_SIZE, path: 'volume descriptors' },
];

/**
 * Checks that no two extents overlap; files that are exactly the same extent share it. Sorts `extents`
 * in place.
 */
function* checkOverlaps(extents: UsedExtent[]): Generator<StructureProblem> {
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
