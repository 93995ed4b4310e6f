/**
 * ISO 9660 images (ECMA-119 with Rock Ridge, Joliet, El Torito and hybrid partition tables): reading,
 * checking, laying out, and the live ISO of CoreOS.
 */

// Extents: the source of each byte of an image.
export { SECTOR_SIZE, bytesExtent, fillGaps, largestIsoOf, roundUp } from './extent.ts';
export type { Areas, Extent, Layout, Places, TreeFile } from './extent.ts';

// Reading.
export { openIso } from './read/open.ts';
export type { IsoImage } from './read/open.ts';
export { openTree } from './read/tree.ts';
export type { IsoFile, IsoNode } from './read/node.ts';
export { createStructureSource, formatCauses } from './read/source.ts';
export { decodeVolumeDescriptor } from './volume/descriptor.ts';
export { clampEpoch, LAST_EPOCH } from './volume/numbers.ts';
export type { VolumeDescriptor } from './volume/descriptor.ts';

// Checking.
export { checkStructure } from './check/structure.ts';

// Laying out.
export { createEmptyImage } from './lay-out/empty-image.ts';
export { encodeSmallIso, layOutIso } from './lay-out/lay-out.ts';
export { decodeBaseScan, encodeBaseScan, relabel, scanBaseIso } from './lay-out/scan.ts';
export type { BasePatch, BaseScan } from './lay-out/scan.ts';

// Partition tables of a hybrid image.
export { BLOCK_SIZE } from './boot/gpt.ts';
export {
  SYSTEM_AREA_SIZE,
  locateBackupGpt,
  readBackupGpt,
  readPartitionTables,
} from './boot/hybrid.ts';

// Disk images that hold ISO images as partitions.
export { readMetalImage } from './disk/metal.ts';
export type { MetalImage } from './disk/metal.ts';
export type { DiskTables } from './disk/table.ts';
export {
  BACKUP_TABLES_SIZE,
  layOutDisk,
  planDisk,
  planTables,
  scanPieces,
  TABLES_SIZE,
} from './disk/disk.ts';
export type { DiskPlan, DiskSource, TableParts } from './disk/disk.ts';

// The live ISO of CoreOS: its embed area, kernel arguments and minimal form.
export { findEmbedArea, lacksEmbedArea, planEmbed } from './coreos/embed-area.ts';
export type { EmbedArea, EmbedPlan, ReadableIso } from './coreos/embed-area.ts';
export { readKargsFile } from './coreos/json.ts';
export type { KargsFile } from './coreos/json.ts';
export { planLiveGraft } from './coreos/graft.ts';
export type { LiveGraft } from './coreos/graft.ts';
export {
  editKargs,
  encodeKargs,
  locateKargAreas,
  parseKargs,
  parseReplacement,
  readKargAreas,
  requireMenuWords,
} from './coreos/kargs.ts';
export type { KargAreas, KargEdits, KargsFiller, LocatedAreas } from './coreos/kargs.ts';
export { findMissingKargs } from './coreos/missing-kargs.ts';
export { readBootMenus } from './coreos/menu.ts';
export type { BootEntry } from './boot/el-torito.ts';
export type { BootMenu, MenuEntry } from './coreos/menu.ts';
export {
  malformedLive,
  parseMinimalRecipe,
  readCoreosFeatures,
  readCoreosLive,
  readKernelArchitecture,
  requireArchitecture,
} from './coreos/live.ts';
export type { CoreosFeatures, MinimalRecipe } from './coreos/live.ts';
