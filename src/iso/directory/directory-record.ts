import { IntegrityError } from '../../base/errors.ts';
import { decodeBoth16, decodeBoth32, encodeBoth16, encodeBoth32 } from '../volume/both-endian.ts';
import { partOf, requireBytes } from '../bounds.ts';
import { decodeShortDate, encodeShortDate } from '../volume/iso-date.ts';

/** ECMA-119 9.1. */
export type DirectoryRecord = {
  /** As it stands; one byte 0 is the directory itself, one byte 1 its parent. */
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

/**
 * The record at byte `at`, and how many bytes it takes. What it holds are views of `bytes`.
 *
 * @throws IntegrityError `iso.truncated`, `iso.malformed-record`
 */
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

/**
 * Even length, at most 254 bytes: an odd system use field gets one zero byte behind it.
 *
 * @throws RangeError when the identifier and the system use field do not fit
 */
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

/** Bytes a record with an identifier of that size has for its system use field; even. */
export const systemUseRoom = (identifierSize: number): number =>
  MAX_SIZE - startOfSystemUse(identifierSize);

/** ECMA-119 9.1.12: a padding byte follows an identifier of even size. */
const startOfSystemUse = (identifierSize: number): number =>
  roundUpToEven(FIXED_SIZE + identifierSize);

const roundUpToEven = (size: number): number => size + (size % 2);
