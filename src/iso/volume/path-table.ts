import { encodeDirectoryRecord } from '../directory/record.ts';
import { partOf, requireBytes, viewOf, SECTOR_SIZE } from '../extent.ts';
import type { FileSection } from '../read/base-tree.ts';
import { encodeTerminator, type VolumeDescriptor } from './descriptor.ts';
import { encodeBoth32 } from './numbers.ts';

/** ECMA-119 9.4: one directory of a path table. */
export type PathTableRecord = {
  /** One byte 0 for the root. */
  readonly identifier: Uint8Array;
  /** Sector. */
  readonly extent: number;
  /** Number of the parent's record, counted from 1; the root is its own parent. */
  readonly parent: number;
};

/** Type L path tables are little-endian, type M big-endian. */
export type ByteOrder = 'little' | 'big';

const FIXED_SIZE = 8;

export function encodePathTable(
  records: readonly PathTableRecord[],
  byteOrder: ByteOrder,
): Uint8Array {
  const bytes = new Uint8Array(sizeOfPathTable(records));
  let at = 0;
  for (const record of records) {
    const size = sizeOfRecord(record.identifier.length);
    const view = viewOf(bytes, { at, size });
    view.setUint8(0, record.identifier.length);
    view.setUint32(2, record.extent, byteOrder === 'little');
    view.setUint16(6, record.parent, byteOrder === 'little');
    bytes.set(record.identifier, at + FIXED_SIZE);
    at += size;
  }
  return bytes;
}

/** Bytes of the table, before it is filled up to a sector. */
export const sizeOfPathTable = (records: readonly PathTableRecord[]): number =>
  records.reduce((sum, record) => sum + sizeOfRecord(record.identifier.length), 0);

/** `bytes` is the table without the rest of its last sector. Its records, perhaps 250,000, are views. */
export function* decodePathTable(
  bytes: Uint8Array,
  byteOrder: ByteOrder,
): Generator<PathTableRecord, undefined> {
  const isLittle = byteOrder === 'little';
  for (let at = 0; at < bytes.length;) {
    const view = viewOf(bytes, { at, size: FIXED_SIZE });
    const size = sizeOfRecord(view.getUint8(0));
    requireBytes(bytes, { at, size: FIXED_SIZE + view.getUint8(0) });
    yield {
      identifier: partOf(bytes, at + FIXED_SIZE, at + FIXED_SIZE + view.getUint8(0)),
      extent: view.getUint32(2, isLittle),
      parent: view.getUint16(6, isLittle),
    };
    at += size;
  }
}

const sizeOfRecord = (identifierSize: number): number =>
  FIXED_SIZE + identifierSize + (identifierSize % 2);

/** Fields of the primary volume descriptor that change with a new tree. */
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
 * As many sectors as before: supplementary descriptors (Joliet), whose trees lack the new files, are left out
 * and the set is filled up with terminators. The others keep their order, so that El Torito's boot record stays
 * in sector 17.
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
