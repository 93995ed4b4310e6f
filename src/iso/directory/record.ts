import { IntegrityError } from '../../base/errors.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { partOf, requireBytes, SECTOR_SIZE } from '../extent.ts';
import type { StructureSource } from '../read/source.ts';
import {
  decodeBoth16,
  decodeBoth32,
  encodeBoth16,
  encodeBoth32,
  decodeShortDate,
  encodeShortDate,
} from '../volume/numbers.ts';

/** ECMA-119 9.1. */
export type DirectoryRecord = {
  /** As written; one byte 0 is the directory itself, one byte 1 its parent. */
  readonly identifier: Uint8Array;
  /** Sector. */
  readonly extent: number;
  /** Bytes. */
  readonly size: number;
  readonly recordedAt: Date | undefined;
  /** Bits of FILE_FLAG. */
  readonly flags: number;
  readonly systemUse: Uint8Array;
  /** Sectors before the extent's data; default 0. */
  readonly extendedAttributeLength?: number;
  readonly fileUnitSize?: number;
  readonly interleaveGap?: number;
  /** Default 1. */
  readonly volumeSequence?: number;
};

/** ECMA-119 9.1.6. */
export const FILE_FLAG = {
  hidden: 1,
  directory: 2,
  associated: 4,
  record: 8,
  protection: 16,
  multiExtent: 128,
} as const;

const FIXED_SIZE = 33;
const MAX_SIZE = 254;

/** The record at byte `at`, and its length in bytes. Its members are views of `bytes`. */
export function decodeDirectoryRecord(
  bytes: Uint8Array,
  at: number,
): { record: DirectoryRecord; length: number } {
  requireBytes(bytes, { at, size: 1 });
  const length = bytes[at] ?? 0;
  requireBytes(bytes, { at, size: length });
  const own = partOf(bytes, at, at + length);
  const identifierSize = own[32] ?? 0;
  const systemUseAt = startOfSystemUse(identifierSize);
  // Some writers leave out the padding byte of the last field, so it may lie past the end.
  if (length <= FIXED_SIZE || identifierSize === 0 || FIXED_SIZE + identifierSize > length) {
    throw new IntegrityError(
      'iso.malformed-record',
      `directory record of ${length} bytes cannot hold an identifier of ${identifierSize} bytes`,
    );
  }
  const record: DirectoryRecord = {
    identifier: partOf(own, FIXED_SIZE, FIXED_SIZE + identifierSize),
    extent: decodeBoth32(own, 2),
    size: decodeBoth32(own, 10),
    recordedAt: decodeShortDate(own, 18),
    flags: own[25] ?? 0,
    systemUse: partOf(own, Math.min(systemUseAt, length), length),
    extendedAttributeLength: own[1] ?? 0,
    fileUnitSize: own[26] ?? 0,
    interleaveGap: own[27] ?? 0,
    volumeSequence: decodeBoth16(own, 28),
  };
  return { record, length };
}

/** Even length, at most 254 bytes: an odd system use field is followed by one zero byte. */
export function encodeDirectoryRecord(record: DirectoryRecord): Uint8Array {
  const systemUseAt = startOfSystemUse(record.identifier.length);
  const length = roundUpToEven(systemUseAt + record.systemUse.length);
  if (length > MAX_SIZE || record.identifier.length === 0) {
    throw new RangeError(
      `directory record would take ${length} bytes, identifier ${record.identifier.length}`,
    );
  }
  const bytes = new Uint8Array(length);
  bytes[0] = length;
  bytes[1] = record.extendedAttributeLength ?? 0;
  encodeBoth32(bytes, 2, record.extent);
  encodeBoth32(bytes, 10, record.size);
  bytes.set(encodeShortDate(record.recordedAt), 18);
  bytes[25] = record.flags;
  bytes[26] = record.fileUnitSize ?? 0;
  bytes[27] = record.interleaveGap ?? 0;
  encodeBoth16(bytes, 28, record.volumeSequence ?? 1);
  bytes[32] = record.identifier.length;
  bytes.set(record.identifier, FIXED_SIZE);
  bytes.set(record.systemUse, systemUseAt);
  return bytes;
}

/** Bytes for the system use field of a record with an identifier of that size; even. */
export const systemUseRoom = (identifierSize: number): number =>
  MAX_SIZE - startOfSystemUse(identifierSize);

/** ECMA-119 9.1.12: a padding byte follows an identifier of even size. */
const startOfSystemUse = (identifierSize: number): number =>
  roundUpToEven(FIXED_SIZE + identifierSize);

const roundUpToEven = (size: number): number => size + (size % 2);

/**
 * The order of records in a directory (ECMA-119 9.3): names as if filled up with spaces, then extensions the
 * same way, then versions from high to low. Negative if `a` comes first.
 */
export function compareIdentifiers(a: Uint8Array, b: Uint8Array): number {
  const [left, right] = [split(a), split(b)];
  return (
    comparePadded(left.name, right.name) ||
    comparePadded(left.extension, right.extension) ||
    right.version - left.version
  );
}

type Parts = { readonly name: string; readonly extension: string; readonly version: number };

function split(identifier: Uint8Array): Parts {
  const [text = '', version = '0'] = Buffer.from(identifier).toString('latin1').split(';');
  const dot = text.indexOf('.');
  const name = dot < 0 ? text : text.slice(0, dot);
  const extension = dot < 0 ? '' : text.slice(dot + 1);
  return { name, extension, version: Number(version) || 0 };
}

function comparePadded(a: string, b: string): number {
  const length = Math.max(a.length, b.length);
  const [left, right] = [a.padEnd(length), b.padEnd(length)];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

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
 * The records of a directory, its own and its parent's first, in the order of the volume: a few sectors at a
 * time, because waiting for each record would take longer than decoding it.
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
