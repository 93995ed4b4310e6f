import { viewOf } from '../bounds.ts';

const SYSTEM_AREA_SIZE = 32768;
const MAX_ENTRIES = 63;
const ENTRY_SIZE = 136;
/** How far from the end of the image a partition may stop and still count as reaching it. */
const SLACK = 1024 * 1024;
const FIXED_TYPES = ['Apple_partition_map', 'Apple_HFS'];

/** An entry of an Apple partition map; addresses and sizes in the map's own blocks. */
type ApplePartition = {
  /** From 1; the entry stands in that block. */
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

/** Apple's map begins with a block `ER`; its entries, `PM`, follow one a block. */
export function readApplePartitionMap(systemArea: Uint8Array): ApplePartitionMap | undefined {
  const driver = viewOf(systemArea, { at: 0, size: 8 });
  const blockSize = driver.getUint16(2, false);
  if (readText(systemArea, 0, 2) !== 'ER' || ![512, 1024, 2048].includes(blockSize)) {
    return undefined;
  }
  const partitions: ApplePartition[] = [];
  for (let number = 1; number <= MAX_ENTRIES; number += 1) {
    const at = number * blockSize;
    if (at + ENTRY_SIZE > SYSTEM_AREA_SIZE || readText(systemArea, at, 2) !== 'PM') break;
    const view = viewOf(systemArea, { at, size: ENTRY_SIZE });
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
 * Lets the entry that reached the end of the image reach its new end (a filler for what belongs to
 * no other entry). HFS entries keep their size, their file system would not grow with them.
 */
export function growApplePartitionMap(
  systemArea: Uint8Array,
  oldSize: number,
  newSize: number,
): void {
  const map = readApplePartitionMap(systemArea);
  if (!map) return;
  const endOf = (each: ApplePartition): number => (each.start + each.blocks) * map.blockSize;
  const last = map.partitions.reduce((furthest, each) =>
    endOf(furthest) >= endOf(each) ? furthest : each,
  );
  const isOutside = last.start * map.blockSize >= newSize;
  if (FIXED_TYPES.includes(last.type) || isOutside || oldSize - endOf(last) >= SLACK) return;
  const view = viewOf(systemArea, { at: last.number * map.blockSize, size: ENTRY_SIZE });
  const blocks = Math.floor(newSize / map.blockSize) - last.start;
  view.setUint32(12, blocks, false);
  view.setUint32(84, blocks, false);
}

function readText(bytes: Uint8Array, at: number, size: number): string {
  return Buffer.from(bytes.subarray(at, at + size))
    .toString('latin1')
    .replace(/\0.*$/s, '');
}
