import { digestOf, isDigest, type Digest } from '../../../base/digest.ts';
import { isTextList, parseJsonObject } from '../../../shape/go-json.ts';
import type { RandomAccess } from '../../../base/random-access.ts';

/** What all parts of a delta say of it. Sizes are bytes. */
export type PartList = {
  /** Of the whole delta. */
  readonly size: number;
  /** Of every part but the last, which may be shorter, and of the parity. */
  readonly partSize: number;
  /** Of the parts in their order, without their heads. */
  readonly parts: readonly Digest[];
  /** Of the bytes of all parts, combined by exclusive or; the last one ends with zeros. */
  readonly parity: Digest;
};

/** The number of the part with the parity; the others count from 1. */
export const PARITY = 0;

/*
 * sealift delta part <number> <bytes of the JSON> sha256:<of the JSON>\n      padded with spaces to 128 bytes
 * {"parity":"sha256:...","partSize":...,"parts":["sha256:...",...],"size":...}      the same in all parts
 * the bytes of the part
 */
const LINE_SIZE = 128;
const LINE = /^sealift delta part (\d{1,4}) (\d{1,6}) (sha256:[0-9a-f]{64})\n *$/;

export const MOST_PARTS = 1000;

export function formatPartHead(number: number, list: PartList): Uint8Array {
  const { parity, partSize, parts, size } = list;
  const text = Buffer.from(JSON.stringify({ parity, partSize, parts, size }));
  const line = `sealift delta part ${number} ${text.length} ${digestOf(text)}\n`;
  return Buffer.concat([Buffer.from(line.padEnd(LINE_SIZE)), text]);
}

export type PartHead = {
  readonly number: number;
  readonly list: PartList;
  /** Names the delta; the same in all its parts. */
  readonly id: string;
  /** Of the part's bytes, in its file. */
  readonly start: number;
};

/** Undefined for what is not a part, or has a damaged head. */
export async function readPartHead(file: RandomAccess): Promise<PartHead | undefined> {
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

/** The text has the digest that its line names: what it has is what somebody wrote. */
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

/** Bytes of a part without its head. */
export const sizeOfPart = ({ size, partSize }: PartList, number: number): number =>
  number === PARITY ? partSize : Math.min(partSize, size - (number - 1) * partSize);

/** Combines bytes by exclusive or, into the first. */
export function combine(into: Uint8Array, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; at++) into[at] = (into[at] ?? 0) ^ (bytes[at] ?? 0);
}
