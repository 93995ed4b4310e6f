import { viewOf } from '../bounds.ts';

const MBR_SIZE = 512;
const TABLE_OFFSET = 446;
const ENTRY_SIZE = 16;
const SIGNATURE_OFFSET = 510;
/** The type of an EFI System Partition in an MBR (UEFI 2.10, 5.2.2). */
const ESP_TYPE = 0xef;
/** The geometry isohybrid and xorriso compute addresses with. */
const HEADS = 64;
const SECTORS_PER_TRACK = 32;
const MAX_CYLINDER = 1023;
const MAX_BLOCKS = 0xffff_ffff;

/** A used entry of an MBR partition table; addresses and sizes in blocks of 512 bytes. */
export type MbrPartition = {
  /** 1 to 4. */
  readonly number: number;
  readonly active: boolean;
  readonly type: number;
  readonly start: number;
  readonly blocks: number;
};

/** The partitions of an MBR; undefined when there is no MBR, or one without partitions. */
export function readMbr(systemArea: Uint8Array): readonly MbrPartition[] | undefined {
  const view = viewOf(systemArea, { at: 0, size: MBR_SIZE });
  if (view.getUint16(SIGNATURE_OFFSET, true) !== 0xaa55) return undefined;
  const partitions: MbrPartition[] = [];
  for (let index = 0; index < 4; index += 1) {
    const at = TABLE_OFFSET + index * ENTRY_SIZE;
    const blocks = view.getUint32(at + 12, true);
    if (blocks === 0) continue;
    partitions.push({
      number: index + 1,
      active: view.getUint8(at) === 0x80,
      type: view.getUint8(at + 4),
      start: view.getUint32(at + 8, true),
      blocks,
    });
  }
  return partitions.length === 0 ? undefined : partitions;
}

/**
 * Lets the partition that reached the end of the image reach its new end. An EFI System Partition
 * keeps its size: where one comes last (xorriso -append_partition), nothing grows, and the ISO is
 * whole on the whole device only.
 */
export function growMbr(systemArea: Uint8Array, oldBlocks: number, newBlocks: number): void {
  const partitions = readMbr(systemArea) ?? [];
  const last = partitions.reduce<MbrPartition | undefined>(
    (furthest, each) => (furthest && endOf(furthest) >= endOf(each) ? furthest : each),
    undefined,
  );
  if (last === undefined || last.type === ESP_TYPE || last.start >= newBlocks) return;
  // isohybrid adds a cylinder behind it where its padding has no room for the backup GPT.
  if (oldBlocks - endOf(last) > HEADS * SECTORS_PER_TRACK) return;
  const view = viewOf(systemArea, { at: 0, size: MBR_SIZE });
  const at = TABLE_OFFSET + (last.number - 1) * ENTRY_SIZE;
  const blocks = Math.min(newBlocks - last.start, MAX_BLOCKS);
  view.setUint32(at + 12, blocks, true);
  systemArea.set(encodeCylinderAddress(last.start + blocks - 1), at + 5);
}

const endOf = (partition: MbrPartition): number => partition.start + partition.blocks;

/**
 * Head, sector and cylinder of a block. Past 1 GiB there is no such address: isohybrid then writes the
 * last of its geometry, by which readers know the geometry, others the last of any.
 */
function encodeCylinderAddress(block: number): Uint8Array {
  const head = Math.floor(block / SECTORS_PER_TRACK) % HEADS;
  const sector = (block % SECTORS_PER_TRACK) + 1;
  const cylinder = Math.floor(block / (HEADS * SECTORS_PER_TRACK));
  const endsCylinder = head === HEADS - 1 && sector === SECTORS_PER_TRACK;
  if (cylinder > MAX_CYLINDER && !endsCylinder) return Uint8Array.of(0xfe, 0xff, 0xff);
  const address = Math.min(cylinder, MAX_CYLINDER);
  return Uint8Array.of(head, sector | ((address >> 2) & 0xc0), address & 0xff);
}
