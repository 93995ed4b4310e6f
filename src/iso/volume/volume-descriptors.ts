import { encodeBoth32 } from './both-endian.ts';
import type { FileSection } from '../live-base/base-tree.ts';
import { viewOf } from '../bounds.ts';
import { encodeDirectoryRecord } from '../directory/directory-record.ts';
import { SECTOR_SIZE } from '../extent.ts';
import { encodeTerminator, type VolumeDescriptor } from './volume-descriptor.ts';

/** What changes in the primary volume descriptor when a volume gets a new tree. */
export type RewrittenVolume = {
  /** Sectors of the volume. */
  readonly sectors: number;
  /** Bytes. */
  readonly pathTableSize: number;
  /** Sector. */
  readonly lPathTable: number;
  /** Sector. */
  readonly mPathTable: number;
  readonly root: FileSection;
};

/**
 * The same number of sectors as before: supplementary descriptors (Joliet), whose trees lack the new
 * files, are left out and the set is filled up with terminators. All else keeps its order, so that El
 * Torito's boot record stays in sector 17.
 */
export function rewriteDescriptors(
  descriptors: readonly VolumeDescriptor[],
  volume: RewrittenVolume,
): Uint8Array {
  const preserved = descriptors.filter(
    ({ kind }) => kind !== 'supplementary' && kind !== 'terminator',
  );
  const sectors = preserved.map((descriptor) =>
    descriptor.kind === 'primary' ? rewritePrimary(descriptor, volume) : descriptor.raw,
  );
  while (sectors.length < descriptors.length) sectors.push(encodeTerminator());
  return Buffer.concat(sectors);
}

/** ECMA-119 8.4; optional path tables are left out. */
function rewritePrimary(
  { raw, volume: old }: Extract<VolumeDescriptor, { kind: 'primary' }>,
  volume: RewrittenVolume,
): Uint8Array {
  const bytes = Uint8Array.from(raw);
  const view = viewOf(bytes, { at: 0, size: SECTOR_SIZE });
  encodeBoth32(bytes, 80, volume.sectors);
  encodeBoth32(bytes, 132, volume.pathTableSize);
  view.setUint32(140, volume.lPathTable, true);
  view.setUint32(144, 0, true);
  view.setUint32(148, volume.mPathTable, false);
  view.setUint32(152, 0, false);
  const { sector, size } = volume.root;
  const systemUse = new Uint8Array(0);
  bytes.set(encodeDirectoryRecord({ ...old.rootRecord, extent: sector, size, systemUse }), 156);
  return bytes;
}
