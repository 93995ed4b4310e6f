import type { Random } from '../faults/random.ts';

/** May change the bytes that it is given, which are at least one. */
export type Mutation = (
  bytes: Buffer,
  context: {
    readonly random: Random;
    /** Of the same format, to take parts of. */
    readonly others: readonly Uint8Array[];
    /** What the bytes were before the first mutation. */
    readonly seed: Uint8Array;
  },
) => Buffer;

/** Larger cases cost time and show nothing that smaller ones do not. */
export const LARGEST = 1 << 20;

/** Sizes, counts and offsets: 0, 1, the maximum, the place itself, and what else the bytes hold. */
export function chooseNumber(bytes: Buffer, at: number, random: Random): number {
  const other = random.below(Math.max(1, bytes.length - 4));
  return random.pick([
    ...([0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff] as const),
    ...[at, Math.floor(at / 2048), bytes.length, Math.floor(bytes.length / 2048)],
    bytes.length >= 4 ? bytes.readUInt32LE(other) : 2,
  ]);
}

export const rangeIn = (bytes: Buffer, random: Random): readonly [number, number] => {
  const start = random.below(bytes.length);
  const longest = random.chance(0.7) ? 64 : bytes.length;
  return [start, Math.min(bytes.length, start + 1 + random.below(longest))];
};

type Part = { readonly start: number; readonly end: number; readonly count: number };

/** `count` times more, or as often as a case may have it. */
export function repeatPart(bytes: Buffer, { start, end, count }: Part): Buffer {
  const part = bytes.subarray(start, end);
  const room = LARGEST - bytes.length;
  const size = Math.max(0, Math.min(count, Math.floor(room / part.length))) * part.length;
  const middle = Buffer.alloc(size, part);
  return Buffer.concat([bytes.subarray(0, start), middle, bytes.subarray(start)]);
}
