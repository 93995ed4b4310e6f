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

/** Where path tables and directories begin, in sectors. */
export type StructurePlaces = {
  readonly lPathTable: number;
  readonly mPathTable: number;
  readonly directories: number;
};

const sectorsOfTable = ({ pathTableSize }: DirectoryArea): number =>
  Math.ceil(pathTableSize / SECTOR_SIZE);

/** Bytes of path tables, directories and continuation area. */
export const sizeOfStructures = (area: DirectoryArea): number =>
  2 * sectorsOfTable(area) * SECTOR_SIZE + sizeOfArea(area);

/** `start` is in bytes, at a sector. */
export function placeStructures(area: DirectoryArea, start: number): StructurePlaces {
  const lPathTable = start / SECTOR_SIZE;
  const mPathTable = lPathTable + sectorsOfTable(area);
  return { lPathTable, mPathTable, directories: mPathTable + sectorsOfTable(area) };
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
