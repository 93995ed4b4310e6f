import { digestOf, type Digest } from '../../base/digest.ts';
import { digestRange, openRandomAccess, type RandomAccess } from '../../base/random-access.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import { DIGEST, integerFrom, LEFT_OUT, list, record, refine } from '../../shape/shape.ts';

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
export async function readPartHead(file: RandomAccess): Promise<PartHead | undefined> {
  if (file.size < LINE_SIZE) return undefined;
  const line = (await file.read(0, LINE_SIZE)).toString('latin1');
  const [, number, size, id] = LINE.exec(line) ?? [];
  if (id === undefined || LINE_SIZE + Number(size) > file.size) return undefined;
  const text = await file.read(LINE_SIZE, Number(size));
  if (digestOf(text) !== id) return undefined;
  const list = ifFaultless(decodeJson(LIST, text));
  const isNumber = list && Number(number) <= list.parts.length;
  return isNumber
    ? { number: Number(number), list, id, start: LINE_SIZE + Number(size) }
    : undefined;
}

const POSITIVE = integerFrom(1);

const LIST = refine(
  record({ size: POSITIVE, partSize: POSITIVE, parts: list(DIGEST), parity: DIGEST }, LEFT_OUT),
  ({ size, partSize, parts }) =>
    parts.length <= MOST_PARTS && parts.length === Math.ceil(size / partSize)
      ? undefined
      : `has ${parts.length} parts`,
);

export async function isWholePart(
  file: RandomAccess,
  { number, list, start }: PartHead,
  options: Parameters<typeof digestRange>[2],
): Promise<boolean> {
  const size = sizeOfPart(list, number);
  if (file.size !== start + size) return false;
  const expected = number === PARITY ? list.parity : list.parts[number - 1];
  return (await digestRange(file.read, { offset: start, size }, options)) === expected;
}

/** Bytes, without the head. */
export const sizeOfPart = ({ size, partSize }: PartList, number: number): number =>
  number === PARITY ? partSize : Math.min(partSize, size - (number - 1) * partSize);
