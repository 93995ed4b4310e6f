import { checkBoot } from './check-boot.ts';
import { findUnequalInDescriptor } from './check-byte-orders.ts';
import { checkDirectories, type FoundTree } from './check-directories.ts';
import { checkPathTables } from './check-path-tables.ts';
import { SECTOR_SIZE } from '../extent.ts';
import { createFoundDirectories } from './found-directories.ts';
import type { IsoImage } from '../open-iso.ts';
import { damage, type StructureProblem } from './structure-problem.ts';
import { createUsedExtents } from './used-extents.ts';

/**
 * Everything that is wrong with the structure of an image, one problem at a time: volume descriptors,
 * directories of the primary and the Joliet tree, path tables, overlaps, El Torito, MBR and GPT. Reads
 * the structure only, never a file.
 */
export async function* checkStructure(iso: IsoImage): AsyncGenerator<StructureProblem> {
  yield* checkDescriptors(iso);
  const extents = createUsedExtents();
  const descriptors = (16 + iso.descriptors.length) * SECTOR_SIZE;
  extents.add({ offset: 0, size: descriptors }, 'volume descriptors');
  const trees = [
    { volume: iso.volume, isJoliet: false },
    ...(iso.joliet ? [{ volume: iso.joliet, isJoliet: true }] : []),
  ];
  for (const tree of trees) {
    const found: FoundTree = { directories: createFoundDirectories(), extents };
    extents.beginTree(found.directories);
    yield* checkDirectories(iso, tree, found);
    yield* checkPathTables(iso, tree.volume, found);
  }
  yield* extents.overlaps();
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
