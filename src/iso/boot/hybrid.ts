import { IntegrityError } from '../../base/errors.ts';
import {
  growApplePartitionMap,
  readApplePartitionMap,
  type ApplePartitionMap,
} from './apple-partition-map.ts';
import { roundUp, SECTOR_SIZE } from '../extent.ts';
import { backupSizeOf, BLOCK_SIZE, growGpt, readGpt, type Gpt } from './gpt.ts';
import { growMbr, readMbr, type MbrPartition } from './mbr.ts';

/** ECMA-119 6.2.1: the first sixteen sectors belong to whoever boots the volume as a disk. */
export const SYSTEM_AREA_SIZE = 16 * SECTOR_SIZE;

/** What disk images are padded to: a cylinder of 64 heads and 32 sectors. */
const CYLINDER_SIZE = 1024 * 1024;

/** How the volume is a disk at the same time; nothing set when it is not. */
export type PartitionTables = {
  readonly mbr?: readonly MbrPartition[];
  /** The primary copy. */
  readonly gpt?: Gpt;
  readonly apple?: ApplePartitionMap;
};

/** A run of bytes of an image. */
export type ByteRange = { readonly offset: number; readonly size: number };

/** Reads the partition tables in the system area: its 32768 bytes are all that is looked at. */
export function readPartitionTables(systemArea: Uint8Array): PartitionTables {
  const mbr = readMbr(systemArea);
  const gpt = readGpt(systemArea.subarray(0, SYSTEM_AREA_SIZE), 1, 0);
  const apple = readApplePartitionMap(systemArea);
  return { ...(mbr && { mbr }), ...(gpt && { gpt }), ...(apple && { apple }) };
}

/**
 * Where the backup copy of a GPT stands, entries first, as the primary copy says; undefined when it
 * would lie before the first or behind the last byte of an image of `imageSize` bytes.
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

/**
 * The size of an image whose data ends at `dataEnd`: with room for the backup GPT and a multiple of
 * 1 MiB when it is a disk too (as isohybrid pads), else whole sectors. Bytes.
 */
export function sizeOfImage(systemArea: Uint8Array, dataEnd: number): number {
  const { mbr, gpt } = readPartitionTables(systemArea);
  if (!mbr && !gpt) return roundUp(dataEnd, SECTOR_SIZE);
  return roundUp(dataEnd + (gpt ? backupSizeOf(gpt) : 0), CYLINDER_SIZE);
}

/**
 * Makes the partition tables of an image of `oldSize` bytes right for `newSize` bytes. EFI System
 * Partitions keep their place; `tail` is the backup GPT.
 *
 * @throws IntegrityError `iso.malformed-gpt` when the GPT is there, but not whole
 */
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
      { hint: 'Use an unmodified base ISO.' },
    );
  }
  const bytes = growGpt(grown, gpt, Math.floor(newSize / BLOCK_SIZE));
  return { systemArea: grown, tail: { offset: newSize - bytes.length, bytes } };
}
