import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { digestOf, isDigest, type Digest } from '../../base/digest.ts';
import { explaining, isBroken } from '../../base/disk/disk-errors.ts';
import { writeWhole } from '../../base/disk/files.ts';
import { publishNew } from '../../base/disk/publish.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { type RandomAccess, openRandomAccess } from '../../base/random-access.ts';
import { isTextList, parseJsonObject } from '../../shape/go-json.ts';
import { readMode } from './open.ts';

/* Parts of a delta: their format, and how they are joined. */

/** List of parts, equal in all parts of a delta. Sizes are bytes. */
export type PartList = {
  /** Size of the whole delta. */
  readonly size: number;
  /** Size of the parity and of every part but the last, which may be shorter. */
  readonly partSize: number;
  /** Digests of the parts in order, without their heads. */
  readonly parts: readonly Digest[];
  /** Digest of the exclusive or of all parts; the last part is padded with zeros. */
  readonly parity: Digest;
};

export type PartHead = {
  readonly number: number;
  readonly list: PartList;
  /** Identifier of the delta, equal in all its parts. */
  readonly id: string;
  /** Offset of the part's bytes in its file. */
  readonly start: number;
};

/** Number of the parity part; the other parts count from 1. */
export const PARITY = 0;

/*
 * sealift delta part <number> <bytes of the JSON> sha256:<of the JSON>\n      padded with spaces to 128 bytes
 * {"parity":"sha256:...","partSize":...,"parts":["sha256:...",...],"size":...}      the same in all parts
 * the bytes of the part
 */
const LINE_SIZE = 128;
const LINE = /^sealift delta part (\d{1,4}) (\d{1,6}) (sha256:[0-9a-f]{64})\n *$/;

export const MOST_PARTS = 1000;

export type JoinOptions = {
  readonly signal: AbortSignal;
  /** Called for each part that was lost and rebuilt. */
  readonly warn?: (message: string) => void;
};

const PIECE = 1 << 20;

type Part = PartHead & { readonly file: RandomAccess };

/**
 * Joins the parts of a delta, in any order. One damaged or missing part is rebuilt from the others and the
 * parity.
 *
 * @throws IntegrityError `delta.other-part`, `delta.parts-lost`; DiskError of the target
 */
export async function joinParts(
  paths: readonly string[],
  target: string,
  { signal, warn }: JoinOptions,
): Promise<void> {
  const files: RandomAccess[] = [];
  try {
    const absent: string[] = [];
    for (const path of paths) {
      const file = await unlessUnreadable(() => openRandomAccess(path));
      if (file) files.push(file);
      else absent.push(path);
    }
    const { parts, list, damaged } = await readParts(files, signal);
    const numbers = [...list.parts.map((_, at) => at + 1), PARITY];
    const lost = numbers.filter((number) => !parts.has(number));
    const names = lost.map(nameOf).join(', ');
    const unusable = [...damaged, ...absent];
    const why = unusable.length > 0 ? `cannot be used: ${unusable.join(', ')}` : 'not given';
    if (lost.length > 1) throw tooManyLost(names, why);
    if (lost.length === 1)
      warn?.(`${names} of the delta is lost (${why}) and is rebuilt from the others`);
    const mode = await readMode(...files.map(({ path }) => path));
    await explaining(target, () =>
      publishNew(target, { mode }, async (file) => {
        for (const number of numbers) {
          if (number !== PARITY) await writePart({ file, target, number, list }, parts, signal);
        }
      }),
    );
  } finally {
    for (const file of files) await file.close();
  }
}

const nameOf = (number: number): string => (number === PARITY ? 'the parity' : `part ${number}`);

type Parts = ReadonlyMap<number, Part>;

async function readParts(
  files: readonly RandomAccess[],
  signal: AbortSignal,
): Promise<{
  readonly parts: Parts;
  readonly list: PartList;
  readonly damaged: readonly string[];
}> {
  const parts = new Map<number, Part>();
  const damaged: string[] = [];
  let first: PartHead | undefined;
  for (const file of files) {
    const head = await unlessUnreadable(() => readPartHead(file));
    first ??= head;
    if (head && first && head.id !== first.id) {
      throw new IntegrityError('delta.other-part', `${file.path} is a part of another delta`, {
        expected: first.id,
        found: head.id,
        hint: 'name the parts of one delta',
      });
    }
    const part = head && { ...head, file };
    if (part && (await unlessUnreadable(() => isWhole(part, signal))) === true)
      parts.set(part.number, part);
    else damaged.push(file.path);
  }
  if (!first) throw tooManyLost('all parts', `cannot be used: ${damaged.join(', ')}`);
  return { parts, list: first.list, damaged };
}

async function isWhole({ file, number, list, start }: Part, signal: AbortSignal): Promise<boolean> {
  const size = sizeOfPart(list, number);
  if (file.size !== start + size) return false;
  const hash = createHash('sha256');
  for (let at = 0; at < size; at += PIECE) {
    signal.throwIfAborted();
    hash.update(await file.read(start + at, Math.min(PIECE, size - at)));
  }
  const expected = number === PARITY ? list.parity : list.parts[number - 1];
  return `sha256:${hash.digest('hex')}` === expected;
}

type Writing = {
  readonly file: FileHandle;
  readonly target: string;
  readonly number: number;
  readonly list: PartList;
};

async function writePart(
  { file, target, number, list }: Writing,
  parts: Parts,
  signal: AbortSignal,
): Promise<void> {
  const part = parts.get(number);
  const size = sizeOfPart(list, number);
  for (let at = 0; at < size; at += PIECE) {
    signal.throwIfAborted();
    const range = { offset: at, size: Math.min(PIECE, size - at) };
    const bytes = part
      ? await part.file.read(part.start + at, range.size)
      : await recombine(parts, range);
    const position = (number - 1) * list.partSize + at;
    await explaining(target, () => writeWhole(file, bytes, position));
  }
}

/** Rebuilds the bytes of a lost part from the parity. */
async function recombine(
  parts: Parts,
  { offset, size }: { readonly offset: number; readonly size: number },
): Promise<Buffer> {
  const bytes = Buffer.alloc(size);
  for (const { file, start, list, number } of parts.values()) {
    const rest = Math.min(size, sizeOfPart(list, number) - offset);
    if (rest > 0) combine(bytes, await file.read(start + offset, rest));
  }
  return bytes;
}

/** Combines two arrays by exclusive or, into the first. */
export function combine(into: Uint8Array, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; at++) into[at] = (into[at] ?? 0) ^ (bytes[at] ?? 0);
}

/** Reads a file; undefined if it cannot be opened, or if its disk lost bytes. */
async function unlessUnreadable<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ConfigError || isBroken(error)) return undefined;
    throw error;
  }
}

const tooManyLost = (names: string, why: string): IntegrityError =>
  new IntegrityError('delta.parts-lost', `${names} of the delta are lost (${why})`, {
    expected: 'all parts and the parity, or all except one of them',
    hint: 'copy them again from where the delta was made',
  });

/** True if a file is a part of a delta; a part with a damaged head is not recognised. */
export async function isPart(path: string): Promise<boolean> {
  const file = await openRandomAccess(path);
  return await readPartHead(file)
    .then((head) => head !== undefined)
    .finally(() => file.close());
}

export function formatPartHead(number: number, list: PartList): Uint8Array {
  const { parity, partSize, parts, size } = list;
  const text = Buffer.from(JSON.stringify({ parity, partSize, parts, size }));
  const line = `sealift delta part ${number} ${text.length} ${digestOf(text)}\n`;
  return Buffer.concat([Buffer.from(line.padEnd(LINE_SIZE)), text]);
}

/** @returns the head, or undefined if the file is not a part or its head is damaged */
async function readPartHead(file: RandomAccess): Promise<PartHead | undefined> {
  if (file.size < LINE_SIZE) return undefined;
  const line = (await file.read(0, LINE_SIZE)).toString('latin1');
  const [, number, size, id] = LINE.exec(line) ?? [];
  if (id === undefined || LINE_SIZE + Number(size) > file.size) return undefined;
  const text = await file.read(LINE_SIZE, Number(size));
  if (digestOf(text) !== id) return undefined;
  const list = parseList(text.toString('utf8'));
  const isNumber = list && Number(number) <= list.parts.length;
  return isNumber
    ? { number: Number(number), list, id, start: LINE_SIZE + Number(size) }
    : undefined;
}

/** Parses a list whose digest has been verified, so that its content is as written. */
function parseList(text: string): PartList | undefined {
  const { size, partSize, parts, parity } = parseJsonObject(text) ?? {};
  if (!isTextList(parts) || !parts.every(isDigest) || !isTextDigest(parity)) return undefined;
  if (!isSize(size) || !isSize(partSize) || parts.length > MOST_PARTS) return undefined;
  const isEnough = parts.length === Math.ceil(size / partSize);
  return isEnough ? { size, partSize, parts, parity } : undefined;
}

const isTextDigest = (value: unknown): value is Digest =>
  typeof value === 'string' && isDigest(value);

const isSize = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) > 0;

/** Size of a part in bytes, without its head. */
export const sizeOfPart = ({ size, partSize }: PartList, number: number): number =>
  number === PARITY ? partSize : Math.min(partSize, size - (number - 1) * partSize);
