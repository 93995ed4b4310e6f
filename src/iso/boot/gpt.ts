import { crc32 } from 'node:zlib';
import { viewOf } from '../extent.ts';

/** The logical block of disks, which MBR and GPT count in. */
export const BLOCK_SIZE = 512;
const SIGNATURE = 'EFI PART';
const MAX_ENTRIES_SIZE = 31 * 1024;
const EFI_SYSTEM = 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b';
const BLOCKS_PER_SECTOR = 4;
/** Blocks by which isohybrid's padding may leave its partition short of the last usable block. */
const SLACK_BLOCKS = 2048;

/** A used entry of a GUID Partition Table; addresses in blocks of 512 bytes. */
export type GptPartition = {
  /** From 1. */
  readonly number: number;
  readonly type: string;
  readonly id: string;
  readonly firstBlock: number;
  /** Inclusive, as the table has it. */
  readonly lastBlock: number;
  readonly name: string;
};

/**
 * One copy of a GUID Partition Table (UEFI 2.10, 5.3); addresses in blocks of 512 bytes.
 *
 * | header | field | header | field |
 * |---|---|---|---|
 * | 0 | `EFI PART` | 48 | last usable block, 8 bytes |
 * | 12 | header size, 4 bytes | 56 | disk GUID |
 * | 16 | CRC-32 of the header with 0 here | 72 | first block of the entries, 8 bytes |
 * | 24 | this header's block, 8 bytes | 80, 84 | number and size of entries, 4 bytes each |
 * | 32 | the other header's block, 8 bytes | 88 | CRC-32 of the entries |
 * | 40 | first usable block, 8 bytes | | |
 */
export type Gpt = {
  readonly block: number;
  readonly otherBlock: number;
  readonly firstUsable: number;
  readonly lastUsable: number;
  readonly diskId: string;
  readonly entriesBlock: number;
  readonly entryCount: number;
  readonly entrySize: number;
  readonly headerCrcOk: boolean;
  readonly entriesCrcOk: boolean;
  /** Both CRCs are right. */
  readonly crcOk: boolean;
  readonly partitions: readonly GptPartition[];
};

/**
 * Reads one copy of a GPT out of `bytes`, a part of the image that starts at block `firstBlock` and holds
 * header and entries. Undefined if there is no header at `headerBlock`.
 */
export function readGpt(
  bytes: Uint8Array,
  headerBlock: number,
  firstBlock: number,
): Gpt | undefined {
  const at = (headerBlock - firstBlock) * BLOCK_SIZE;
  if (at < 0 || at + BLOCK_SIZE > bytes.length) return undefined;
  if (Buffer.from(bytes.subarray(at, at + 8)).toString('latin1') !== SIGNATURE) return undefined;
  const view = viewOf(bytes, { at, size: BLOCK_SIZE });
  const entriesBlock = readBlock(view, 72);
  const entryCount = view.getUint32(80, true);
  const entrySize = view.getUint32(84, true);
  const entriesAt = (entriesBlock - firstBlock) * BLOCK_SIZE;
  const entriesSize = entryCount * entrySize;
  const hasEntries =
    entriesAt >= 0 && entriesSize <= MAX_ENTRIES_SIZE && entriesAt + entriesSize <= bytes.length;
  const entries = hasEntries ? bytes.subarray(entriesAt, entriesAt + entriesSize) : undefined;
  const headerCrcOk = view.getUint32(16, true) === headerCrc(view);
  const entriesCrcOk = entries !== undefined && view.getUint32(88, true) === crc32(entries);
  return {
    block: readBlock(view, 24),
    otherBlock: readBlock(view, 32),
    firstUsable: readBlock(view, 40),
    lastUsable: readBlock(view, 48),
    diskId: formatGuid(view, 56),
    entriesBlock,
    entryCount,
    entrySize,
    headerCrcOk,
    entriesCrcOk,
    crcOk: headerCrcOk && entriesCrcOk,
    partitions: entries === undefined ? [] : readEntries(entries, entrySize),
  };
}

function readEntries(entries: Uint8Array, entrySize: number): readonly GptPartition[] {
  const partitions: GptPartition[] = [];
  if (entrySize < 128) return partitions;
  for (let at = 0; at + entrySize <= entries.length; at += entrySize) {
    const view = viewOf(entries, { at, size: entrySize });
    if (view.getBigUint64(0) === 0n && view.getBigUint64(8) === 0n) continue;
    partitions.push({
      number: at / entrySize + 1,
      type: formatGuid(view, 0),
      id: formatGuid(view, 16),
      firstBlock: readBlock(view, 32),
      lastBlock: readBlock(view, 40),
      name: readName(entries.subarray(at + 56, at + 128)),
    });
  }
  return partitions;
}

function readName(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('utf16le');
  const end = text.indexOf('\0');
  return end < 0 ? text : text.slice(0, end);
}

const readBlock = (view: DataView, at: number): number => Number(view.getBigUint64(at, true));

export function writeBlock(view: DataView, at: number, block: number): void {
  view.setBigUint64(at, BigInt(block), true);
}

/** UEFI 2.10, appendix A: the first three groups are little-endian. */
function formatGuid(view: DataView, at: number): string {
  const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
  const tail = Array.from({ length: 8 }, (_, index) => hex(view.getUint8(at + 8 + index), 2));
  return [
    hex(view.getUint32(at, true), 8),
    hex(view.getUint16(at + 4, true), 4),
    hex(view.getUint16(at + 6, true), 4),
    tail.slice(0, 2).join(''),
    tail.slice(2).join(''),
  ].join('-');
}

/** UEFI 2.10, 5.3.2: over the header's own size, with the field itself taken as 0. */
function headerCrc(view: DataView): number {
  const size = view.getUint32(12, true);
  if (size < 92 || size > BLOCK_SIZE) return -1;
  const header = Uint8Array.from(new Uint8Array(view.buffer, view.byteOffset, size));
  header.fill(0, 16, 20);
  return crc32(header);
}

const entriesBlocksOf = (gpt: Gpt): number =>
  Math.ceil((gpt.entryCount * gpt.entrySize) / BLOCK_SIZE);

/** Bytes that the second copy takes at the end of the image. */
export const backupSizeOf = (gpt: Gpt): number => (entriesBlocksOf(gpt) + 1) * BLOCK_SIZE;

/**
 * Moves the end of the image: rewrites the primary copy in `systemArea` (which must hold all of its entries)
 * and returns the backup copy, which belongs after everything else. The partition that reached the old end
 * reaches the new one, unless it is the EFI System Partition.
 */
export function growGpt(systemArea: Uint8Array, gpt: Gpt, newBlocks: number): Uint8Array {
  const backupEntriesBlock = newBlocks - 1 - entriesBlocksOf(gpt);
  const lastUsable = backupEntriesBlock - 1;
  const entriesAt = gpt.entriesBlock * BLOCK_SIZE;
  const entriesSize = gpt.entryCount * gpt.entrySize;
  const entries = systemArea.subarray(entriesAt, entriesAt + entriesSize);
  const partition = partitionToGrow(gpt);
  if (partition) {
    const view = viewOf(entries, { at: (partition.number - 1) * gpt.entrySize, size: 48 });
    writeBlock(view, 40, lastUsable - ((lastUsable + 1) % BLOCKS_PER_SECTOR));
  }
  const header = viewOf(systemArea, { at: BLOCK_SIZE, size: BLOCK_SIZE });
  header.setUint32(88, crc32(entries), true);
  writeBlock(header, 48, lastUsable);
  const backup = new Uint8Array(backupSizeOf(gpt));
  backup.set(entries);
  backup.set(systemArea.subarray(BLOCK_SIZE, 2 * BLOCK_SIZE), backup.length - BLOCK_SIZE);
  const backupHeader = viewOf(backup, { at: backup.length - BLOCK_SIZE, size: BLOCK_SIZE });
  linkHeaders(header, { block: 1, otherBlock: newBlocks - 1, entriesBlock: gpt.entriesBlock });
  linkHeaders(backupHeader, {
    block: newBlocks - 1,
    otherBlock: 1,
    entriesBlock: backupEntriesBlock,
  });
  return backup;
}

function partitionToGrow(gpt: Gpt): GptPartition | undefined {
  const last = gpt.partitions.reduce<GptPartition | undefined>(
    (furthest, each) => (furthest && furthest.lastBlock >= each.lastBlock ? furthest : each),
    undefined,
  );
  if (last === undefined || last.type === EFI_SYSTEM) return undefined;
  return gpt.lastUsable - last.lastBlock < SLACK_BLOCKS ? last : undefined;
}

/** Gives a header its own places and its CRC. */
export function linkHeaders(
  header: DataView,
  links: { block: number; otherBlock: number; entriesBlock: number },
): void {
  writeBlock(header, 24, links.block);
  writeBlock(header, 32, links.otherBlock);
  writeBlock(header, 72, links.entriesBlock);
  header.setUint32(16, headerCrc(header), true);
}
