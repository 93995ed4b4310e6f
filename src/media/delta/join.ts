import type { FileHandle } from 'node:fs/promises';
import { explaining, isBroken } from '../../base/disk/disk-errors.ts';
import { writeWhole } from '../../base/disk/files.ts';
import { publishNew } from '../../base/disk/publish.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { type RandomAccess, openRandomAccess } from '../../base/random-access.ts';
import { readMode } from './open.ts';
import {
  isWholePart,
  PARITY,
  readPartHead,
  sizeOfPart,
  type PartHead,
  type PartList,
} from './part.ts';

export type JoinOptions = {
  readonly signal: AbortSignal;
  /** Called for each part that was lost and rebuilt. */
  readonly warn?: (message: string) => void;
};

const PIECE = 1 << 20;

type Part = PartHead & { readonly file: RandomAccess };

/**
 * In any order. One damaged or missing part is rebuilt from the others and the parity.
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
    if (part && (await unlessUnreadable(() => isWholePart(file, part, { signal }))) === true)
      parts.set(part.number, part);
    else damaged.push(file.path);
  }
  if (!first) throw tooManyLost('all parts', `cannot be used: ${damaged.join(', ')}`);
  return { parts, list: first.list, damaged };
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
