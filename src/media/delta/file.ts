import { createDelta } from 'fossil-delta';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { digestOf, type Digest } from '../../base/digest.ts';
import { IntegrityError, isErrno } from '../../base/errors.ts';
import type { ByteRange, RandomAccess } from '../../base/random-access.ts';
import { decodeJson, JSON_RULES, requireDecoded, type Rules } from '../../shape/decode.ts';
import {
  COUNT,
  DIGEST,
  integerFrom,
  LEFT_OUT,
  list,
  optional,
  record,
  TEXT,
  transform,
  tuple,
} from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';
import { NewerFormatError } from '../newer.ts';
import { applyFossilDelta } from './fossil.ts';
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
  readonly size: number;
  /** Index of the new ISO, which names all other extents. */
  readonly index: DeltaExtent;
  /** Mutable areas whose original contents stand in neither ISO. Omitted when empty. */
  readonly mutable?: readonly Pick<DeltaExtent, 'offset' | 'digest'>[];
  /** Patches by number of the carried extent; all other extents are carried verbatim. */
  readonly patches: ReadonlyMap<number, Patch>;
  /** Size of the bytes after the head. */
  readonly bodySize: number;
  /** Proof of the bytes after the head; absent in deltas of earlier versions. */
  readonly body?: DeltaBody;
  /** Both ISOs as people know them; absent in deltas of earlier versions. */
  readonly names?: DeltaNames;
};

/** Digest of the digests of the carried extents as they are in the delta, and their sizes, in a row. */
export type DeltaBody = { readonly digest: Digest; readonly sizes: readonly number[] };

export const digestOfBody = (digests: readonly Digest[]): Digest => digestOf(digests.join('\n'));

export type DeltaNames = { readonly from: IsoName; readonly to: IsoName };

/*
 * sealift delta 4 <bytes of the JSON> <digest of the line so far and of the JSON>\n      padded with spaces to 128 bytes
 * {"body":["sha256:...",[size,...]],"bodySize":...,"from":"sha256:...","index":[offset,size,digest],"mutable":[[offset,digest],...],"names":{"from":{...},"to":{...}},"patches":[[number,oldOffset,oldSize,size],...],"size":...}
 * the carried bytes in a row: the index, then each other extent that the old ISO lacks, by offset
 *
 * Versions 2 and 3 have no "body", and no digest in the first line, which is padded to 64 bytes; version 2 has
 * no "mutable".
 */
const LINE_SIZE = 128;
const EARLIER_LINE_SIZE = 64;
const KIND = 'sealift delta ';
/** The format with a proof. */
const PROVEN = 4;

const EXTENT = transform(
  tuple(COUNT, integerFrom(1), DIGEST),
  ([offset, size, digest]): DeltaExtent => ({ offset, size, digest }),
);
const AREA = transform(tuple(COUNT, DIGEST), ([offset, digest]) => ({ offset, digest }));
const PATCH = transform(
  tuple(COUNT, COUNT, COUNT, COUNT),
  ([number, offset, oldSize, size]): readonly [number, Patch] => [
    number,
    { old: { offset, size: oldSize }, size },
  ],
);
const ISO_NAME = record(
  { product: TEXT, version: TEXT, architecture: TEXT, day: optional(TEXT) },
  LEFT_OUT,
);

const HEAD = record(
  {
    from: TEXT,
    size: COUNT,
    bodySize: COUNT,
    index: EXTENT,
    mutable: optional(list(AREA)),
    names: optional(record({ from: ISO_NAME, to: ISO_NAME }, LEFT_OUT)),
    patches: transform(list(PATCH), (rows) => new Map(rows)),
    body: optional(transform(tuple(DIGEST, list(COUNT)), ([digest, sizes]) => ({ digest, sizes }))),
  },
  LEFT_OUT,
);

/** Enough for 200,000 patches. */
const LARGEST_JSON = 16 * 1024 * 1024;
const MOST_VALUES = 1_400_000;

/** Bytes; an ISO has 2**32 sectors at most (ECMA-119 8.4.8). */
const LARGEST_ISO = 2 ** 43;

export function formatDelta({
  body,
  bodySize,
  from,
  index,
  mutable,
  names,
  patches,
  size,
}: DeltaHead): Uint8Array {
  const json = JSON.stringify({
    ...(body && { body: [body.digest, body.sizes] }),
    bodySize,
    from,
    index: [index.offset, index.size, index.digest],
    ...(mutable && { mutable: mutable.map(({ offset, digest }) => [offset, digest]) }),
    ...(names && { names }),
    patches: [...patches].map(([number, { old, size }]) => [number, old.offset, old.size, size]),
    size,
  });
  const text = Buffer.from(json);
  const line = body
    ? formatLine(PROVEN, text).padEnd(LINE_SIZE)
    : `${KIND}${mutable ? 3 : 2} ${text.length}\n`.padEnd(EARLIER_LINE_SIZE);
  return Buffer.concat([Buffer.from(line), text]);
}

/** The digest covers the format, so that no damage makes a delta one of a newer format. */
function formatLine(format: number, json: Uint8Array): string {
  const start = `${KIND}${format} ${json.length} `;
  return `${start}${digestOf(Buffer.concat([Buffer.from(start), json]))}\n`;
}

/** @returns the head and the offset of the first carried byte */
export async function readDeltaHead(
  file: RandomAccess,
): Promise<DeltaHead & { readonly start: number }> {
  const line = await readLine(file);
  const start = line.text.length + line.jsonSize;
  const refuse = (problem: string): IntegrityError => malformedDelta(file.path, problem);
  const json = await readJson(file, line);
  const { body, ...head } = requireDecoded(decodeJson(HEAD, json, RULES), ([first]) => {
    const { why = '' } = first;
    return refuse(first.code === 'syntax' ? why : `${NOT_OURS}: ${describeFinding(first)}`);
  });
  const { size, bodySize } = head;
  if (size > LARGEST_ISO) throw refuse(`makes an ISO of ${size} bytes`);
  if (start + bodySize !== file.size) {
    throw refuse(`has ${file.size} bytes, but should have ${start + bodySize}`);
  }
  if (!line.isProven) return { ...head, start };
  if (body && sumOf(body.sizes) === bodySize) return { ...head, body, start };
  throw refuse(`${NOT_OURS}: its body has another size`);
}

const NOT_OURS = 'is not in the form that sealift writes';
const RULES: Rules = { ...JSON_RULES, most: { values: MOST_VALUES, depth: 16 } };

const sumOf = (sizes: readonly number[]): number => sizes.reduce((sum, size) => sum + size, 0);

async function readJson(file: RandomAccess, line: Line): Promise<Buffer> {
  const json = await file.read(line.text.length, line.jsonSize);
  if (line.isProven && !line.text.startsWith(formatLine(line.format, json))) {
    throw malformedDelta(file.path, 'does not have the digest that its first line names');
  }
  if (line.format > PROVEN) throw new NewerFormatError(file.path, line.format, PROVEN);
  return json;
}

/** True if a file begins like a delta of any version. */
export async function isDelta(file: RandomAccess): Promise<boolean> {
  const start = await file.read(0, Math.min(KIND.length, file.size));
  return start.toString('latin1') === KIND;
}

/** The first line, padded, and the bytes of the JSON behind it. */
type Line = {
  readonly text: string;
  readonly format: number;
  readonly jsonSize: number;
  readonly isProven: boolean;
};

async function readLine(file: RandomAccess): Promise<Line> {
  if (file.size < EARLIER_LINE_SIZE) {
    throw malformedDelta(file.path, 'is shorter than the head of a delta');
  }
  const line = parseLine((await file.read(0, Math.min(LINE_SIZE, file.size))).toString('latin1'));
  if (!line) throw malformedDelta(file.path, 'does not begin like a delta');
  if (line.jsonSize <= LARGEST_JSON && line.text.length + line.jsonSize <= file.size) return line;
  throw malformedDelta(file.path, 'is truncated');
}

function parseLine(text: string): Line | undefined {
  const [, earlier] =
    /^sealift delta [23] (\d{1,8})\n *$/.exec(text.slice(0, EARLIER_LINE_SIZE)) ?? [];
  if (earlier !== undefined) {
    const line = text.slice(0, EARLIER_LINE_SIZE);
    return {
      text: line,
      format: Number(line[KIND.length]),
      jsonSize: Number(earlier),
      isProven: false,
    };
  }
  const [, format, size] =
    /^sealift delta (\d{1,3}) (\d{1,8}) sha256:[0-9a-f]{64}\n *$/.exec(text) ?? [];
  if (size === undefined || Number(format) < PROVEN) return undefined;
  return { text, format: Number(format), jsonSize: Number(size), isProven: true };
}

export const malformedDelta = (path: string, problem: string): IntegrityError =>
  new IntegrityError('delta.malformed', `${path} is not a complete delta: it ${problem}`, {
    hint: 'copy it again from where it was made',
  });

/** Larger extents are files of the base and layers, which are compressed and change throughout. */
export const LARGEST_PATCHED = 16 * 1024 * 1024;

/** Total size of patched bytes in one delta, which are held in memory when it is applied. */
const MOST_PATCHED = 512 * 1024 * 1024;

/** Patched bytes that cost nothing to name, and the bytes that each byte of a patch may make more. */
const FREELY_PATCHED = 32 * 1024 * 1024;
const MOST_MULTIPLIED = 250;

/** Most bytes that patches of a delta may make: a small delta makes little. @param packed bytes of the patches */
export const mostPatched = (packed: number): number =>
  Math.min(MOST_PATCHED, FREELY_PATCHED + MOST_MULTIPLIED * packed);

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
    return applyFossilDelta(old, { delta: inflateRawSync(patch, { maxOutputLength }), size });
  } catch (error) {
    if (error instanceof Error && !isErrno(error, 'ERR_OUT_OF_MEMORY')) return undefined;
    throw error;
  }
}
