import { partOf, requireBytes, viewOf } from '../bounds.ts';

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

/** Bytes that the table takes, before it is filled up to a sector. */
export const sizeOfPathTable = (records: readonly PathTableRecord[]): number =>
  records.reduce((sum, record) => sum + sizeOfRecord(record.identifier.length), 0);

/**
 * `bytes` is exactly the table, without the rest of its last sector. A table may have a quarter of a
 * million records, which are views of it.
 *
 * @throws IntegrityError `iso.truncated`
 */
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
