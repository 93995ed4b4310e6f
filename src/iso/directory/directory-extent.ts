import { IntegrityError } from '../../base/errors.ts';
import { decodeDirectoryRecord, type DirectoryRecord } from './directory-record.ts';
import { partOf } from '../bounds.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { ByteRange } from '../../base/random-access.ts';
import type { StructureSource } from '../structure-source.ts';

/** A directory record, and where in the image it stands. */
export type PlacedRecord = {
  /** Bytes from the start of the image. */
  readonly offset: number;
  readonly raw: Uint8Array;
  readonly record: DirectoryRecord;
};

/** 50,000 entries of the largest size. */
const MAX_DIRECTORY_SIZE = 16 * 1024 * 1024;
/** All of them are in memory at once. */
const MAX_RECORDS = 50_000;
const SECTORS_AT_ONCE = 32;

/**
 * The records of a directory, its own and its parent's first, in the order of the volume: those of some
 * sectors at a time, because a wait for each would take longer than to decode it.
 *
 * @throws IntegrityError `iso.out-of-bounds`, `iso.directory-too-large`, `iso.malformed-record`,
 * `iso.too-much-structure`
 */
export async function* readRecords(
  { read, budget }: StructureSource,
  extent: ByteRange,
): AsyncGenerator<readonly PlacedRecord[]> {
  checkDirectorySize(extent);
  let records = 0;
  const step = SECTORS_AT_ONCE * SECTOR_SIZE;
  for (let done = 0; done < extent.size; done += step) {
    const size = Math.min(step, extent.size - done);
    budget.take('bytes of directories', size);
    const bytes = await read(extent.offset + done, size);
    const placed = [...recordsOf(bytes, extent.offset + done)];
    budget.take('directory records', placed.length);
    records += placed.length;
    if (records > MAX_RECORDS) throw createSizeError(extent, 'records', MAX_RECORDS);
    yield placed;
  }
}

/** @throws IntegrityError `iso.directory-too-large` */
export function checkDirectorySize(extent: ByteRange): void {
  if (extent.size > MAX_DIRECTORY_SIZE) throw createSizeError(extent, 'bytes', MAX_DIRECTORY_SIZE);
}

const createSizeError = ({ offset, size }: ByteRange, what: string, limit: number) =>
  new IntegrityError(
    'iso.directory-too-large',
    `directory at byte ${offset} has ${what === 'bytes' ? `${size} bytes, ` : ''}more than ${limit} ${what}`,
    { expected: `at most ${limit} ${what}` },
  );

/** ECMA-119 6.8.1.1: a record ends in the sector it begins in; zeros fill the rest of a sector. */
function* recordsOf(bytes: Uint8Array, offset: number): Generator<PlacedRecord> {
  for (let start = 0; start < bytes.length; start += SECTOR_SIZE) {
    const sector = partOf(bytes, start, Math.min(start + SECTOR_SIZE, bytes.length));
    for (let at = 0; at < sector.length && sector[at] !== 0;) {
      const size = sector[at] ?? 0;
      if (at + size > sector.length) {
        throw new IntegrityError(
          'iso.malformed-record',
          `directory record at byte ${offset + start + at} crosses the end of its sector`,
        );
      }
      const { record, length } = decodeDirectoryRecord(sector, at);
      yield { offset: offset + start + at, raw: partOf(sector, at, at + length), record };
      at += length;
    }
  }
}
