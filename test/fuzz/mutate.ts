import type { Random } from '../faults/random.ts';
import { ISO_MUTATIONS } from './mutate-iso.ts';
import { chooseNumber, LARGEST, rangeIn, repeatPart, type Mutation } from './mutation.ts';
import { TEXT_MUTATIONS } from './mutate-text.ts';

/** A format of its own has its own places that matter. */
export type Shape = 'binary' | 'iso' | 'text';

/** A few mutations one after the other. */
export function mutate(
  seed: Uint8Array,
  shape: Shape,
  { random, others }: { readonly random: Random; readonly others: readonly Uint8Array[] },
): Buffer {
  let bytes: Buffer = Buffer.from(seed);
  const count = 1 + random.below(random.chance(0.2) ? 12 : 3);
  for (let done = 0; done < count; done++) {
    if (bytes.length === 0) bytes = Buffer.from(seed);
    bytes = random.pick(MUTATIONS[shape])(bytes, { random, others, seed });
    if (bytes.length > LARGEST) bytes = bytes.subarray(0, LARGEST);
  }
  return bytes;
}

const flipBits: Mutation = (bytes, { random }) => {
  for (let left = 1 + random.below(4); left > 0; left--) {
    const at = random.below(bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
  }
  return bytes;
};

const setByte: Mutation = (bytes, { random }) => {
  bytes[random.below(bytes.length)] = random.pick([0, 1, 0x7f, 0x80, 0xfe, 0xff]);
  return bytes;
};

const setNumber: Mutation = (bytes, { random }) => {
  const size = random.pick([2, 4, 8]);
  if (bytes.length < size) return bytes;
  const at = random.below(bytes.length - size + 1);
  const value = chooseNumber(bytes, at, random);
  const [low, isBig] = [size === 2 ? value & 0xffff : value, random.chance(0.5)];
  const width = Math.min(size, 4);
  bytes.fill(value === 0xffffffff ? 0xff : 0, at, at + size);
  if (isBig) bytes.writeUIntBE(low, at + size - width, width);
  else bytes.writeUIntLE(low, at, width);
  return bytes;
};

/** Bytes between zeros, as names and numbers stand in tar: none, the least, the most, or others. */
const setField: Mutation = (bytes, { random }) => {
  const [start, end] = fieldIn(bytes, random.below(bytes.length));
  if (random.chance(0.3)) {
    const [from, to] = fieldIn(bytes, random.below(bytes.length));
    bytes.copy(bytes, start, from, Math.min(to, from + end - start));
  } else
    bytes.fill(random.pick(['\0', '\0', '0', '7', 'F', '9', '/', '\xff']), start, end, 'latin1');
  return bytes;
};

/** The next one from a place on, of at most 256 bytes. */
function fieldIn(bytes: Buffer, from: number): readonly [number, number] {
  let start = from;
  while (bytes[start] === 0) start++;
  while (start > 0 && bytes[start - 1] !== 0 && from - start < 128) start--;
  const end = bytes.indexOf(0, start);
  return [start, Math.min(end < 0 ? bytes.length : end, start + 256)];
}

const cut: Mutation = (bytes, { random }) => bytes.subarray(0, random.below(bytes.length));

const remove: Mutation = (bytes, { random }) => {
  const [start, end] = rangeIn(bytes, random);
  return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]);
};

/** Once, or so often that what is not linear takes long. */
const repeat: Mutation = (bytes, { random }) => {
  const [start, end] = rangeIn(bytes, random);
  const count = random.chance(0.8) ? 1 + random.below(4) : random.pick([1000, 30_000, Infinity]);
  return repeatPart(bytes, { start, end, count });
};

/** What may hold several of its kind has many. */
const repeatWhole: Mutation = (bytes, { random }) =>
  repeatPart(bytes, { start: 0, end: bytes.length, count: random.pick([1, 30, 1000]) });

const copyOver: Mutation = (bytes, { random }) => {
  const [start, end] = rangeIn(bytes, random);
  bytes.copy(bytes, random.below(bytes.length), start, end);
  return bytes;
};

const splice: Mutation = (bytes, { random, others }) => {
  const other = Buffer.from(others[random.below(others.length)] ?? bytes);
  if (other.length === 0) return bytes;
  const [start, end] = rangeIn(other, random);
  const at = random.below(bytes.length);
  return Buffer.concat([bytes.subarray(0, at), other.subarray(start, end), bytes.subarray(at)]);
};

const ANY = [flipBits, setByte, setNumber, cut, remove, repeat, copyOver, splice] as const;

const MUTATIONS: Readonly<Record<Shape, readonly [Mutation, ...Mutation[]]>> = {
  binary: [setNumber, setField, setField, repeatWhole, ...ANY],
  iso: [...ISO_MUTATIONS, ...ISO_MUTATIONS, ...ANY],
  text: [...TEXT_MUTATIONS, ...TEXT_MUTATIONS, ...ANY],
};
