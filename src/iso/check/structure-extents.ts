import type { FileSection } from '../live-base/base-tree.ts';
import {
  encodeDirectories,
  pathTableOf,
  sizeOfArea,
  type DirectoryArea,
} from '../directory/directory-area.ts';
import { SECTOR_SIZE, type Extent } from '../extent.ts';
import { bytesExtent } from '../live-base/extent-list.ts';
import { encodePathTable } from '../volume/path-table.ts';
import type { TreeLeaf } from '../tree.ts';
import type { RewrittenVolume } from '../volume/volume-descriptors.ts';

/** Where path tables and directories begin, in sectors, and where they end, in bytes. */
export type StructurePlaces = {
  readonly lPathTable: number;
  readonly mPathTable: number;
  readonly directories: number;
  readonly end: number;
};

export function placeStructures(area: DirectoryArea, start: number): StructurePlaces {
  const tableSectors = Math.ceil(area.pathTableSize / SECTOR_SIZE);
  const lPathTable = Math.ceil(start / SECTOR_SIZE);
  const mPathTable = lPathTable + tableSectors;
  const directories = mPathTable + tableSectors;
  return { lPathTable, mPathTable, directories, end: directories * SECTOR_SIZE + sizeOfArea(area) };
}

/** Both path tables and the directories as bytes, and what the volume descriptor says about them. */
export function layOutStructures(
  area: DirectoryArea,
  {
    places,
    sectionsOf,
  }: { places: StructurePlaces; sectionsOf: (file: TreeLeaf) => readonly FileSection[] },
): { extents: Extent[]; volume: Omit<RewrittenVolume, 'sectors'> } {
  const { lPathTable, mPathTable, directories } = places;
  const table = pathTableOf(area, directories);
  const bytes = encodeDirectories(area, { sector: directories, sectionsOf });
  const rootSize = area.directories[0]?.size ?? 0;
  return {
    extents: [
      bytesExtent(lPathTable * SECTOR_SIZE, encodePathTable(table, 'little')),
      bytesExtent(mPathTable * SECTOR_SIZE, encodePathTable(table, 'big')),
      bytesExtent(directories * SECTOR_SIZE, bytes),
    ],
    volume: {
      pathTableSize: area.pathTableSize,
      lPathTable,
      mPathTable,
      root: { sector: directories, size: rootSize },
    },
  };
}
