import type { Random } from '../faults/random.ts';

/** What one mutation may see besides the bytes: others of the same format, to take parts of. */
export type Mutation = (
  bytes: Buffer,
  context: { readonly random: Random; readonly others: readonly Uint8Array[] },
) => Buffer;

/** A format of its own has its own places that matter. */
export type Shape = 'binary' | 'iso' | 'text';

/** Larger cases cost time and show nothing that smaller ones do not. */
const LARGEST = 2 << 20;

/** A few mutations one after the other. */
export function mutate(
  seed: Uint8Array,
  shape: Shape,
  context: { readonly random: Random; readonly others: readonly Uint8Array[] },
): Buffer {
  const { random } = context;
  let bytes: Buffer = Buffer.from(seed);
  const count = 1 + random.below(random.chance(0.2) ? 12 : 3);
  for (let done = 0; done < count; done++) {
    bytes = random.pick(MUTATIONS[shape])(bytes, context);
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

/** Sizes, counts and offsets: 0, 1, the maximum, the place itself, and what else the bytes hold. */
function chooseNumber(bytes: Buffer, at: number, { random }: { random: Random }): number {
  const other = random.below(Math.max(1, bytes.length - 4));
  return random.pick([
    ...([0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff] as const),
    ...[at, Math.floor(at / 2048), bytes.length, Math.floor(bytes.length / 2048)],
    bytes.length >= 4 ? bytes.readUInt32LE(other) : 2,
  ]);
}

const setNumber: Mutation = (bytes, context) => {
  const { random } = context;
  const size = random.pick([2, 4, 8]);
  if (bytes.length < size) return bytes;
  const at = random.below(bytes.length - size + 1);
  const value = chooseNumber(bytes, at, context);
  const [low, isBig] = [size === 2 ? value & 0xffff : value, random.chance(0.5)];
  const width = Math.min(size, 4);
  bytes.fill(value === 0xffffffff ? 0xff : 0, at, at + size);
  if (isBig) bytes.writeUIntBE(low, at + size - width, width);
  else bytes.writeUIntLE(low, at, width);
  return bytes;
};

const cut: Mutation = (bytes, { random }) => bytes.subarray(0, random.below(bytes.length));

const rangeIn = (bytes: Buffer, random: Random): readonly [number, number] => {
  const start = random.below(bytes.length);
  const longest = random.chance(0.7) ? 64 : bytes.length;
  return [start, Math.min(bytes.length, start + 1 + random.below(longest))];
};

const remove: Mutation = (bytes, { random }) => {
  const [start, end] = rangeIn(bytes, random);
  return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]);
};

/** Once, or so often that what is not linear takes long. */
const repeat: Mutation = (bytes, { random }) => {
  const [start, end] = rangeIn(bytes, random);
  const most = Math.max(1, Math.floor((LARGEST - bytes.length) / (end - start)));
  const count = random.chance(0.8) ? 1 + random.below(4) : random.pick([1000, 30_000, most]);
  const part = bytes.subarray(start, end);
  const parts = Array.from({ length: Math.min(count, most) }, () => part);
  return Buffer.concat([bytes.subarray(0, start), ...parts, bytes.subarray(start)]);
};

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

/** Numbers that stand in both byte orders (ECMA-119 7.3.3), by where they are. */
function findBothOrders(bytes: Buffer): readonly number[] {
  const places: number[] = [];
  for (let at = 16 * 2048; at + 8 <= bytes.length; at++) {
    if (bytes[at] !== bytes[at + 7] || bytes[at + 1] !== bytes[at + 6]) continue;
    const value = bytes.readUInt32LE(at);
    if (value !== 0 && value === bytes.readUInt32BE(at + 4)) places.push(at);
  }
  return places;
}

const known = new WeakMap<Buffer, readonly number[]>();

/** Sets a place, size or count of an image in both byte orders; often to that of something else. */
const setBothOrders: Mutation = (bytes, context) => {
  const { random } = context;
  const places = known.get(bytes) ?? findBothOrders(bytes);
  known.set(bytes, places);
  const at = places[random.below(places.length)];
  const from = places[random.below(places.length)];
  if (at === undefined || from === undefined) return bytes;
  const value = random.chance(0.5) ? bytes.readUInt32LE(from) : chooseNumber(bytes, at, context);
  bytes.writeUInt32LE(value, at);
  bytes.writeUInt32BE(value, at + 4);
  return bytes;
};

/** Words of a text: names, numbers, and the signs between them. */
const WORD = /-?\d+(?:\.\d+)?|"(?:[^"\\\n]|\\.)*"|[A-Za-z_][\w.-]*|[^\w\s]/g;

const NUMBERS = ['0', '1', '-1', '9007199254740993', '1e999', '18446744073709551615', '0x10'];
const VALUES = ['null', '""', '[]', '{}', '"\\u0000"', '"__proto__"', '&a [*a,*a]', '*a', '---'];

/** Another word in the place of one: of the text itself (a reference to oneself), or an odd one. */
const setWord: Mutation = (bytes, { random }) => {
  const text = bytes.toString('latin1');
  const words = [...text.slice(0, 1 << 16).matchAll(WORD)];
  const word = words[random.below(words.length)];
  if (!word) return bytes;
  const choices = [words[random.below(words.length)]?.[0] ?? '', ...VALUES, ...NUMBERS] as const;
  const other = random.chance(0.4) ? choices[0] : random.pick(choices);
  const end = word.index + word[0].length;
  return Buffer.from(text.slice(0, word.index) + other + text.slice(end), 'latin1');
};

/** Brackets, quotes and spaces in depths that recursion does not survive. */
const nest: Mutation = (bytes, { random }) => {
  const at = random.below(bytes.length);
  const depth = random.pick([100, 10_000, 500_000]);
  const open = random.pick(['[', '{"a":', '- ', '{a: ', '"', '\\', '(', ' ', '{{ ', '? ']);
  const filler = open.repeat(Math.min(depth, Math.floor(LARGEST / open.length)));
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(filler), bytes.subarray(at)]);
};

const ANY: readonly [Mutation, ...Mutation[]] = [
  ...([flipBits, setByte, setNumber, setNumber] as const),
  ...[cut, remove, repeat, copyOver, splice],
];

const MUTATIONS: Readonly<Record<Shape, readonly [Mutation, ...Mutation[]]>> = {
  binary: ANY,
  iso: [setBothOrders, setBothOrders, setBothOrders, setBothOrders, ...ANY],
  text: [setWord, setWord, setWord, nest, ...ANY],
};
