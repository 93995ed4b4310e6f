import { IntegrityError } from '../../base/errors.ts';
import { decodeDirectoryRecord, type DirectoryRecord } from './directory-record.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { ByteRange, RandomAccess } from '../random-access.ts';

/** A directory record, and where in the image it stands. */
export type PlacedRecord = {
  /** Bytes from the start of the image. */
  readonly offset: number;
  readonly raw: Uint8Array;
  readonly record: DirectoryRecord;
};

/** More than half a million entries; a size beyond that is a lie that would cost memory. */
const MAX_DIRECTORY_SIZE = 64 * 1024 * 1024;
const SECTORS_AT_ONCE = 32;

/**
 * The records of a directory, its own and its parent's first, in the order of the volume.
 *
 * @throws IntegrityError `iso.out-of-bounds`, `iso.directory-too-large`, `iso.malformed-record`
 */
export async function* readRecords(
  image: Pick<RandomAccess, 'read'>,
  extent: ByteRange,
): AsyncGenerator<PlacedRecord> {
  if (extent.size > MAX_DIRECTORY_SIZE) {
    throw new IntegrityError(
      'iso.directory-too-large',
      `directory at byte ${extent.offset} has ${extent.size} bytes, more than ${MAX_DIRECTORY_SIZE}`,
    );
  }
  const step = SECTORS_AT_ONCE * SECTOR_SIZE;
  for (let done = 0; done < extent.size; done += step) {
    const size = Math.min(step, extent.size - done);
    const bytes = await image.read(extent.offset + done, size);
    yield* recordsOf(bytes, extent.offset + done);
  }
}

/** ECMA-119 6.8.1.1: a record ends in the sector it begins in; zeros fill the rest of a sector. */
function* recordsOf(bytes: Uint8Array, offset: number): Generator<PlacedRecord> {
  for (let start = 0; start < bytes.length; start += SECTOR_SIZE) {
    const sector = bytes.subarray(start, start + SECTOR_SIZE);
    for (let at = 0; at < sector.length && sector[at] !== 0;) {
      const size = sector[at] ?? 0;
      if (at + size > sector.length) {
        throw new IntegrityError(
          'iso.malformed-record',
          `directory record at byte ${offset + start + at} crosses the end of its sector`,
        );
      }
      const { record, length } = decodeDirectoryRecord(sector, at);
      yield { offset: offset + start + at, raw: sector.subarray(at, at + length), record };
      at += length;
    }
  }
}
