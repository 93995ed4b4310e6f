import { applyDelta, createDelta, getDeltaTargetSize } from 'fossil-delta';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { isDigest, type Digest } from '../../base/digest.ts';
import { IntegrityError, isErrno } from '../../base/errors.ts';
import type { ByteRange, RandomAccess } from '../../base/random-access.ts';
import { isObject } from '../../base/lists.ts';
import { checkText, isTexts, parseObject } from '../../shape/go-json.ts';
import type { IsoName } from './name.ts';

/* The head of a delta, and the patches in its body. */

/** A run of bytes of an ISO; the bytes between runs are zeros. */
export type DeltaExtent = ByteRange & { readonly digest: Digest };

/** Patch that makes a carried extent from bytes of the old ISO; `size` is its size in the delta. */
export type Patch = { readonly old: ByteRange; readonly size: number };

/** Head of a delta. Offsets and sizes are bytes. */
export type DeltaHead = {
  /** Digest of the index of the ISO that the delta applies to. */
  readonly from: string;
  /** Size of the new ISO in bytes. */
  readonly size: number;
  /** Index of the new ISO, which names all other extents. */
  readonly index: DeltaExtent;
  /**
   * Areas whose digest is not in the index of the new ISO, except those that the old ISO already has;
   * absent if there are no such areas.
   */
  readonly mutable?: readonly Pick<DeltaExtent, 'offset' | 'digest'>[];
  /** Patches by number of the carried extent; all other extents are carried verbatim. */
  readonly patches: ReadonlyMap<number, Patch>;
  /** Size of the bytes after the head. */
  readonly bodySize: number;
  /** Both ISOs as people know them; absent in deltas of earlier versions. */
  readonly names?: DeltaNames;
};

export type DeltaNames = { readonly from: IsoName; readonly to: IsoName };

/*
 * sealift delta 3 <bytes of the JSON>\n      padded with spaces to 64 bytes; version 2 has no "mutable"
 * {"bodySize":...,"from":"sha256:...","index":[offset,size,digest],"mutable":[[offset,digest],...],"names":{"from":{...},"to":{...}},"patches":[[number,oldOffset,oldSize,size],...],"size":...}
 * the carried bytes in a row: the index, then each other extent that the old ISO lacks, by offset
 */
const HEAD_SIZE = 64;
const KIND = 'sealift delta ';

/** Enough for 200,000 patches. */
const LARGEST_JSON = 16 * 1024 * 1024;
const MOST_VALUES = 1_100_000;

/** Bytes; an ISO has 2**32 sectors at most (ECMA-119 8.4.8). */
const LARGEST_ISO = 2 ** 43;

/** Formats the head of a delta, up to the carried bytes. */
export function formatDelta({
  bodySize,
  from,
  index,
  mutable,
  names,
  patches,
  size,
}: DeltaHead): Uint8Array {
  const json = JSON.stringify({
    bodySize,
    from,
    index: [index.offset, index.size, index.digest],
    ...(mutable && { mutable: mutable.map(({ offset, digest }) => [offset, digest]) }),
    ...(names && { names }),
    patches: [...patches].map(([number, { old, size }]) => [number, old.offset, old.size, size]),
    size,
  });
  const text = Buffer.from(json);
  const version = mutable ? 3 : 2;
  const head = Buffer.from(`${KIND}${version} ${text.length}\n`.padEnd(HEAD_SIZE));
  return Buffer.concat([head, text]);
}

/**
 * @returns the head and the offset of the first carried byte
 * @throws IntegrityError `delta.malformed`
 */
export async function readDeltaHead(
  file: RandomAccess,
): Promise<DeltaHead & { readonly start: number }> {
  const jsonSize = await readJsonSize(file);
  const start = HEAD_SIZE + jsonSize;
  const refuse = (problem = 'is not in the form that sealift writes'): IntegrityError =>
    malformed(file.path, problem);
  const text = checkText(await file.read(HEAD_SIZE, jsonSize), MOST_VALUES, refuse);
  const { bodySize, from, index, mutable, names, patches, size } = parseObject(text, refuse);
  if (typeof from !== 'string' || !isCount(size) || !isCount(bodySize)) throw refuse();
  if (size > LARGEST_ISO) throw refuse(`makes an ISO of ${size} bytes`);
  const place = parseExtent(index);
  if (!place || !Array.isArray(patches)) throw refuse();
  const all = patches.map((row) => parsePatch(row) ?? fail(refuse()));
  if (start + bodySize !== file.size) {
    throw refuse(`has ${file.size} bytes, but should have ${start + bodySize}`);
  }
  const areas = parseAreas(mutable) ?? fail(refuse());
  const named = parseNames(names) ?? fail(refuse());
  return { from, size, index: place, ...areas, ...named, patches: new Map(all), bodySize, start };
}

/** True if a file begins like a delta of any version. */
export async function isDelta(file: RandomAccess): Promise<boolean> {
  const start = await file.read(0, Math.min(KIND.length, file.size));
  return start.toString('latin1') === KIND;
}

async function readJsonSize(file: RandomAccess): Promise<number> {
  if (file.size < HEAD_SIZE) throw malformed(file.path, 'is shorter than the head of a delta');
  const head = (await file.read(0, HEAD_SIZE)).toString('latin1');
  const [, size] = /^sealift delta [23] (\d{1,8})\n *$/.exec(head) ?? [];
  if (size === undefined) throw malformed(file.path, 'does not begin like a delta');
  if (Number(size) <= LARGEST_JSON && HEAD_SIZE + Number(size) <= file.size) return Number(size);
  throw malformed(file.path, 'is truncated');
}

function parseExtent(row: unknown): DeltaExtent | undefined {
  if (!Array.isArray(row)) return undefined;
  const [offset, size, digest] = row as readonly unknown[];
  if (!isCount(offset) || !isCount(size) || size === 0) return undefined;
  return typeof digest === 'string' && isDigest(digest) ? { offset, size, digest } : undefined;
}

function parseAreas(rows: unknown): Pick<DeltaHead, 'mutable'> | undefined {
  if (rows === undefined) return {};
  if (!Array.isArray(rows)) return undefined;
  const mutable = rows.flatMap((row: unknown) => {
    const [offset, digest] = Array.isArray(row) ? (row as readonly unknown[]) : [];
    const isRight = isCount(offset) && typeof digest === 'string' && isDigest(digest);
    return isRight ? [{ offset, digest }] : [];
  });
  return mutable.length === rows.length ? { mutable } : undefined;
}

function parseNames(names: unknown): Pick<DeltaHead, 'names'> | undefined {
  if (names === undefined) return {};
  const [from, to] = isObject(names) ? [parseName(names['from']), parseName(names['to'])] : [];
  return from && to && { names: { from, to } };
}

function parseName(name: unknown): IsoName | undefined {
  if (!isTexts(name, ['product', 'version', 'architecture'])) return undefined;
  const { product, version, architecture, day } = name as IsoName;
  if (day === undefined) return { product, version, architecture };
  return typeof day === 'string' ? { product, version, architecture, day } : undefined;
}

function parsePatch(row: unknown): readonly [number, Patch] | undefined {
  if (!Array.isArray(row) || row.length !== 4 || !row.every(isCount)) return undefined;
  const [number = 0, offset = 0, oldSize = 0, size = 0] = row;
  return [number, { old: { offset, size: oldSize }, size }];
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 52;

function fail(error: IntegrityError): never {
  throw error;
}

/** Error for a file that is not a complete delta. */
export const malformed = (path: string, problem: string): IntegrityError =>
  new IntegrityError('delta.malformed', `${path} is not a complete delta: it ${problem}`, {
    hint: 'copy it again from where it was made',
  });

/** Larger extents are files of the base and layers, which are compressed and change throughout. */
export const LARGEST_PATCHED = 16 * 1024 * 1024;

/** Total size of patched bytes in one delta, which are held in memory when it is applied. */
export const MOST_PATCHED = 512 * 1024 * 1024;

/** Largest useful patch, as a share of the new bytes. */
const WORTH = 0.9;

/** Makes a patch from old bytes to new bytes; undefined if it would hardly be smaller than the new bytes. */
export function makePatch(old: Uint8Array, now: Uint8Array): Uint8Array | undefined {
  const patch = deflateRawSync(Buffer.from(createDelta(old, now)), { level: 9 });
  return patch.length < now.length * WORTH ? patch : undefined;
}

/** @returns the new bytes, or undefined if the patch is damaged or makes another size */
export function usePatch(
  old: Uint8Array,
  { patch, size }: { readonly patch: Uint8Array; readonly size: number },
): Uint8Array | undefined {
  try {
    const maxOutputLength = 2 * size + 1024; // worst case of Fossil's format
    const delta = inflateRawSync(patch, { maxOutputLength });
    if (getDeltaTargetSize(delta) !== size) return undefined;
    return Uint8Array.from(applyDelta(old, delta, { verifyChecksum: false }));
  } catch (error) {
    if (error instanceof Error && !isErrno(error, 'ERR_OUT_OF_MEMORY')) return undefined;
    throw error;
  }
}
