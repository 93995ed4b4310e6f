import { crc32 } from 'node:zlib';
import { viewOf } from '../extent.ts';
import { BLOCK_SIZE, linkHeaders, writeBlock, type GptPartition } from '../boot/gpt.ts';

/* Writes the partition tables of a disk of 512-byte blocks: protective MBR and both copies of the GPT. */

/** Protective MBR, header and entries: the blocks in front of everything else. */
export const TABLE_BLOCKS = 34;
const HEADER_SIZE = 92;
const ENTRIES_BLOCK = 2;
const ENTRY_COUNT = 128;
const ENTRY_SIZE = 128;
/** Partitions of the metal image that stay. */
const KEPT = 3;
const ENTRIES_SIZE = ENTRY_COUNT * ENTRY_SIZE;

/** Bytes of an MBR in front of its four entries; they are kept. */
const MBR_CODE = 446;
const MBR_TYPE_PROTECTIVE = 0xee;

export type DiskTables = {
  /** Both at the start of the disk. */
  readonly primary: Uint8Array;
  /** Entries, then header; at the end of the disk. */
  readonly backup: Uint8Array;
};

/**
 * Rewrites the tables of a disk for another size, with other partitions after the first three (UEFI 2.10, 5.2.3
 * and 5.3). Boot code, disk GUID and the entries of the first three stay byte for byte.
 *
 * @param head the first TABLE_BLOCKS blocks of the disk
 * @param blocks size of the new disk
 */
export function writeTables(
  head: Uint8Array,
  partitions: readonly GptPartition[],
  blocks: number,
): DiskTables {
  const primary = Uint8Array.from(head.subarray(0, TABLE_BLOCKS * BLOCK_SIZE));
  protect(primary, blocks);
  const entries = primary.subarray(ENTRIES_BLOCK * BLOCK_SIZE);
  entries.fill(0, KEPT * ENTRY_SIZE);
  for (const partition of partitions) writeEntry(entries, partition);
  const header = viewOf(primary, { at: BLOCK_SIZE, size: BLOCK_SIZE });
  header.setUint32(12, HEADER_SIZE, true);
  primary.fill(0, BLOCK_SIZE + HEADER_SIZE, 2 * BLOCK_SIZE);
  writeBlock(header, 40, TABLE_BLOCKS);
  writeBlock(header, 48, blocks - TABLE_BLOCKS);
  header.setUint32(88, crc32(entries), true);
  const backup = new Uint8Array(ENTRIES_SIZE + BLOCK_SIZE);
  backup.set(entries);
  backup.set(primary.subarray(BLOCK_SIZE, 2 * BLOCK_SIZE), ENTRIES_SIZE);
  const other = viewOf(backup, { at: ENTRIES_SIZE, size: BLOCK_SIZE });
  const last = blocks - 1;
  linkHeaders(header, { block: 1, otherBlock: last, entriesBlock: ENTRIES_BLOCK });
  linkHeaders(other, {
    block: last,
    otherBlock: 1,
    entriesBlock: last - ENTRIES_SIZE / BLOCK_SIZE,
  });
  return { primary, backup };
}

/** UEFI 2.10, 5.2.3: one partition from block 1 to the end, or to the last block that 32 bits can name. */
function protect(disk: Uint8Array, blocks: number): void {
  disk.fill(0, MBR_CODE, BLOCK_SIZE - 2);
  disk.set([0, 0, 2, 0, MBR_TYPE_PROTECTIVE, 0xff, 0xff, 0xff], MBR_CODE);
  const view = viewOf(disk, { at: MBR_CODE, size: 16 });
  view.setUint32(8, 1, true);
  view.setUint32(12, Math.min(blocks - 1, 0xffff_ffff), true);
  disk.set([0x55, 0xaa], BLOCK_SIZE - 2);
}

/** UEFI 2.10, table 5.6. */
function writeEntry(entries: Uint8Array, partition: GptPartition): void {
  const at = (partition.number - 1) * ENTRY_SIZE;
  const view = viewOf(entries, { at, size: ENTRY_SIZE });
  entries.set(encodeGuid(partition.type), at);
  entries.set(encodeGuid(partition.id), at + 16);
  writeBlock(view, 32, partition.firstBlock);
  writeBlock(view, 40, partition.lastBlock);
  entries.set(Buffer.from(partition.name, 'utf16le').subarray(0, 70), at + 56);
}

/** UEFI 2.10, appendix A: the first three groups are little-endian. */
function encodeGuid(text: string): Uint8Array {
  const bytes = Buffer.from(text.replaceAll('-', ''), 'hex');
  bytes.subarray(0, 4).reverse();
  bytes.subarray(4, 6).reverse();
  bytes.subarray(6, 8).reverse();
  return bytes;
}
