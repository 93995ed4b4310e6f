import { IntegrityError } from '../../base/errors.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { viewOf, roundUp, SECTOR_SIZE } from '../extent.ts';
import { backupSizeOf, BLOCK_SIZE, growGpt, readGpt, type Gpt } from './gpt.ts';

/** ECMA-119 6.2.1: the first sixteen sectors are reserved for booting the volume as a disk. */
export const SYSTEM_AREA_SIZE = 16 * SECTOR_SIZE;

/** The partition tables by which the volume is also a disk; without members if it is not. */
export type PartitionTables = {
  readonly mbr?: readonly MbrPartition[];
  /** The primary copy. */
  readonly gpt?: Gpt;
  readonly apple?: ApplePartitionMap;
};

/** A used entry of an MBR partition table; addresses and sizes in blocks of 512 bytes. */
export type MbrPartition = {
  /** 1 to 4. */
  readonly number: number;
  readonly active: boolean;
  readonly type: number;
  readonly start: number;
  readonly blocks: number;
};

/** An entry of an Apple partition map; addresses and sizes in the map's own blocks. */
type ApplePartition = {
  /** From 1; also the number of the entry's block. */
  readonly number: number;
  readonly name: string;
  readonly type: string;
  readonly start: number;
  readonly blocks: number;
};

export type ApplePartitionMap = {
  /** Bytes: 512 or 2048. */
  readonly blockSize: number;
  readonly partitions: readonly ApplePartition[];
};

/** Reads the partition tables in the system area: its 32768 bytes are all that is looked at. */
export function readPartitionTables(systemArea: Uint8Array): PartitionTables {
  const mbr = readMbr(systemArea);
  const gpt = readGpt(systemArea.subarray(0, SYSTEM_AREA_SIZE), 1, 0);
  const apple = readApplePartitionMap(systemArea);
  return { ...(mbr && { mbr }), ...(gpt && { gpt }), ...(apple && { apple }) };
}

/**
 * The place of the backup copy of a GPT, entries first, as the primary copy has it; undefined if it is not
 * after the System Area and inside an image of `imageSize` bytes.
 */
export function locateBackupGpt(gpt: Gpt, imageSize: number): ByteRange | undefined {
  const size = backupSizeOf(gpt);
  const offset = (gpt.otherBlock + 1) * BLOCK_SIZE - size;
  return offset >= SYSTEM_AREA_SIZE && offset + size <= imageSize ? { offset, size } : undefined;
}

/** Reads the backup copy out of the bytes that `locateBackupGpt` names. */
export function readBackupGpt(gpt: Gpt, bytes: Uint8Array): Gpt | undefined {
  const firstBlock = gpt.otherBlock + 1 - bytes.length / BLOCK_SIZE;
  return readGpt(bytes, gpt.otherBlock, firstBlock);
}

/** Unit to which disk images are padded: a cylinder of 64 heads and 32 sectors. */
const CYLINDER_SIZE = 1024 * 1024;

/**
 * The size of an image whose data ends at `dataEnd`: with room for the backup GPT and a multiple of 1 MiB if it
 * is also a disk (as isohybrid pads), else whole sectors. Bytes.
 */
export function sizeOfImage(systemArea: Uint8Array, dataEnd: number): number {
  const { mbr, gpt } = readPartitionTables(systemArea);
  if (!mbr && !gpt) return roundUp(dataEnd, SECTOR_SIZE);
  return roundUp(dataEnd + (gpt ? backupSizeOf(gpt) : 0), CYLINDER_SIZE);
}

/** Adapts the partition tables to a new size in bytes. EFI System Partitions stay; `tail`: backup GPT. */
export function growHybrid(
  systemArea: Uint8Array,
  oldSize: number,
  newSize: number,
): { systemArea: Uint8Array; tail?: { offset: number; bytes: Uint8Array } } {
  const grown = Uint8Array.from(systemArea);
  growMbr(grown, Math.floor(oldSize / BLOCK_SIZE), Math.floor(newSize / BLOCK_SIZE));
  growApplePartitionMap(grown, oldSize, newSize);
  const { gpt } = readPartitionTables(grown);
  if (!gpt) return { systemArea: grown };
  if (!gpt.crcOk) {
    throw new IntegrityError(
      'iso.malformed-gpt',
      `CRC of the GPT ${gpt.headerCrcOk ? 'entries' : 'header'} does not match its bytes`,
      { hint: 'use an unmodified base ISO' },
    );
  }
  const bytes = growGpt(grown, gpt, Math.floor(newSize / BLOCK_SIZE));
  return { systemArea: grown, tail: { offset: newSize - bytes.length, bytes } };
}

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

/** The partitions of an MBR; undefined if there is no MBR, or it has no partitions. */
function readMbr(systemArea: Uint8Array): readonly MbrPartition[] | undefined {
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
 * Extends the partition that reached the end of the image to its new end. An EFI System Partition keeps its
 * size: if one comes last (xorriso -append_partition), no partition grows, and the ISO is complete only on the
 * whole device.
 */
function growMbr(systemArea: Uint8Array, oldBlocks: number, newBlocks: number): void {
  const partitions = readMbr(systemArea) ?? [];
  const last = partitions.reduce<MbrPartition | undefined>(
    (furthest, each) => (furthest && endOf(furthest) >= endOf(each) ? furthest : each),
    undefined,
  );
  if (last === undefined || last.type === ESP_TYPE || last.start >= newBlocks) return;
  // isohybrid adds a cylinder after it if its padding has no room for the backup GPT.
  if (oldBlocks - endOf(last) > HEADS * SECTORS_PER_TRACK) return;
  const view = viewOf(systemArea, { at: 0, size: MBR_SIZE });
  const at = TABLE_OFFSET + (last.number - 1) * ENTRY_SIZE;
  const blocks = Math.min(newBlocks - last.start, MAX_BLOCKS);
  view.setUint32(at + 12, blocks, true);
  systemArea.set(encodeCylinderAddress(last.start + blocks - 1), at + 5);
}

const endOf = (partition: MbrPartition): number => partition.start + partition.blocks;

/**
 * Head, sector and cylinder of a block. Past 1 GiB there is no such address: isohybrid then writes the last
 * address of its geometry, from which readers learn the geometry; others write the last address of any
 * geometry.
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

const MAX_ENTRIES = 63;
const APPLE_ENTRY_SIZE = 136;
/** Bytes before the end of the image at which a partition may stop and still count as reaching it. */
const SLACK = 1024 * 1024;
const FIXED_TYPES = ['Apple_partition_map', 'Apple_HFS'];

/** Reads Apple's partition map: a block `ER`, then entries `PM`, one a block. */
function readApplePartitionMap(systemArea: Uint8Array): ApplePartitionMap | undefined {
  const driver = viewOf(systemArea, { at: 0, size: 8 });
  const blockSize = driver.getUint16(2, false);
  if (readText(systemArea, 0, 2) !== 'ER' || ![512, 1024, 2048].includes(blockSize)) {
    return undefined;
  }
  const partitions: ApplePartition[] = [];
  for (let number = 1; number <= MAX_ENTRIES; number += 1) {
    const at = number * blockSize;
    if (at + APPLE_ENTRY_SIZE > SYSTEM_AREA_SIZE || readText(systemArea, at, 2) !== 'PM') break;
    const view = viewOf(systemArea, { at, size: APPLE_ENTRY_SIZE });
    partitions.push({
      number,
      name: readText(systemArea, at + 16, 32),
      type: readText(systemArea, at + 48, 32),
      start: view.getUint32(8, false),
      blocks: view.getUint32(12, false),
    });
  }
  return partitions.length === 0 ? undefined : { blockSize, partitions };
}

/**
 * Extends the entry that reached the old end of the image (a filler for unassigned space) to the new end.
 * HFS entries keep their size: their file system would not grow with them.
 */
function growApplePartitionMap(systemArea: Uint8Array, oldSize: number, newSize: number): void {
  const map = readApplePartitionMap(systemArea);
  if (!map) return;
  const endOf = (each: ApplePartition): number => (each.start + each.blocks) * map.blockSize;
  const last = map.partitions.reduce((furthest, each) =>
    endOf(furthest) >= endOf(each) ? furthest : each,
  );
  const isOutside = last.start * map.blockSize >= newSize;
  if (FIXED_TYPES.includes(last.type) || isOutside || oldSize - endOf(last) >= SLACK) return;
  const view = viewOf(systemArea, { at: last.number * map.blockSize, size: APPLE_ENTRY_SIZE });
  const blocks = Math.floor(newSize / map.blockSize) - last.start;
  view.setUint32(12, blocks, false);
  view.setUint32(84, blocks, false);
}

function readText(bytes: Uint8Array, at: number, size: number): string {
  return Buffer.from(bytes.subarray(at, at + size))
    .toString('latin1')
    .replace(/\0.*$/s, '');
}
