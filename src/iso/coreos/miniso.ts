import { IntegrityError } from '../../base/errors.ts';
import { SECTOR_SIZE } from '../extent.ts';

/** A run of bytes that the minimal image has of the full one. Bytes. */
export type SharedRun = { readonly minimal: number; readonly full: number; readonly size: number };

/** `coreos/miniso.dat`: how the minimal image is made of the full one. */
export type MinimalRecipe = {
  /** By place in the minimal image. */
  readonly runs: readonly SharedRun[];
  /** SHA-256 of the minimal image, in hex. */
  readonly digest: string;
  /** What the runs do not have, as an xz stream. */
  readonly packed: Uint8Array;
};

const MAGIC = 'MINISO\0\0';
const VERSION = 1;
const MOST_RUNS = 100_000;

/**
 * Reads the recipe: magic, version, what wrote it, runs as sectors and sizes, digest, xz stream. Numbers are of one byte
 * below 251, else of two, four or eight behind 251, 252 or 253.
 *
 * @throws IntegrityError `miniso.malformed`
 */
export function parseMinimalRecipe(bytes: Uint8Array): MinimalRecipe {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = MAGIC.length;
  const take = (size: number): Buffer => {
    if (size > buffer.length - at) throw malformed('is cut off');
    at += size;
    return buffer.subarray(at - size, at);
  };
  const takeNumber = (): number => {
    const first = take(1).readUInt8();
    if (first < 251) return first;
    if (first === 251) return take(2).readUInt16LE();
    if (first === 252) return take(4).readUInt32LE();
    const value = first === 253 ? Number(take(8).readBigUInt64LE()) : Infinity;
    if (Number.isSafeInteger(value)) return value;
    throw malformed('has a number out of range');
  };
  if (buffer.toString('latin1', 0, MAGIC.length) !== MAGIC) throw malformed('is not a miniso file');
  const version = takeNumber();
  const creator = take(takeNumber()).toString('latin1');
  if (version !== VERSION)
    throw malformed(`has version ${version}, made by ${JSON.stringify(creator)}`);
  const count = takeNumber();
  if (count > MOST_RUNS) throw malformed(`has ${count} runs`);
  const runs = Array.from({ length: count }, (): SharedRun => {
    const [minimal, full, size] = [takeNumber(), takeNumber(), takeNumber()];
    return { minimal: minimal * SECTOR_SIZE, full: full * SECTOR_SIZE, size };
  });
  const digest = take(32).toString('hex');
  return { runs, digest, packed: take(takeNumber()) };
}

export const malformed = (problem: string): IntegrityError =>
  new IntegrityError('miniso.malformed', `coreos/miniso.dat ${problem}`, {
    expected: `a recipe of version ${VERSION}`,
    hint: 'give the live ISO as its publisher has it',
  });
