import { SECTOR_SIZE } from '../extent.ts';

/** Bytes put one behind another so that nothing crosses from one sector into the next. */
export type SectorBuffer = {
  /** Returns where the bytes, at most SECTOR_SIZE, are. */
  readonly add: (bytes: Uint8Array) => number;
  /** Fills the sector begun with zeros. */
  readonly endSector: () => void;
  readonly size: () => number;
  /** Whole sectors; nothing may be added afterwards. */
  readonly toBytes: () => Uint8Array;
};

export function createSectorBuffer(): SectorBuffer {
  let bytes = new Uint8Array(16 * SECTOR_SIZE);
  let size = 0;
  const endSector = (): void => {
    size = Math.ceil(size / SECTOR_SIZE) * SECTOR_SIZE;
  };
  return {
    add(added) {
      if ((size % SECTOR_SIZE) + added.length > SECTOR_SIZE) endSector();
      if (size + added.length > bytes.length) {
        const larger = new Uint8Array(2 * bytes.length);
        larger.set(bytes);
        bytes = larger;
      }
      bytes.set(added, size);
      const at = size;
      size += added.length;
      return at;
    },
    endSector,
    size: () => size,
    toBytes() {
      endSector();
      return bytes.subarray(0, size);
    },
  };
}
