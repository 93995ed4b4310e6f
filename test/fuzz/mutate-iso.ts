import { chooseNumber, type Mutation } from './mutation.ts';

/** Where numbers stand in both byte orders (ECMA-119 7.3.3). */
function findNumbers(bytes: Buffer): readonly number[] {
  const places: number[] = [];
  for (let at = 16 * 2048; at + 8 <= bytes.length; at++) {
    if (bytes[at] !== bytes[at + 7] || bytes[at + 1] !== bytes[at + 6]) continue;
    const value = bytes.readUInt32LE(at);
    if (value !== 0 && value === bytes.readUInt32BE(at + 4)) places.push(at);
  }
  return places;
}

const known = new WeakMap<Uint8Array, readonly number[]>();

/** Those of the seed: what was inserted since moves them, which other mutations do, too. */
function numbersOf(seed: Uint8Array, bytes: Buffer): readonly number[] {
  const places = known.get(seed) ?? findNumbers(Buffer.from(seed));
  known.set(seed, places);
  return places.filter((at) => at + 24 <= bytes.length);
}

function write(bytes: Buffer, at: number, value: number): void {
  bytes.writeUInt32LE(value, at);
  bytes.writeUInt32BE(value, at + 4);
}

/** A place, size or count; often that of something else. One of them, or all that are equal. */
const setNumbers: Mutation = (bytes, { random, seed }) => {
  const places = numbersOf(seed, bytes);
  const at = places[random.below(places.length)];
  const from = places[random.below(places.length)];
  if (at === undefined || from === undefined) return bytes;
  const old = bytes.readUInt32LE(at);
  const value = random.chance(0.5) ? bytes.readUInt32LE(from) : chooseNumber(bytes, at, random);
  const equal = random.chance(0.2)
    ? places.filter((place) => bytes.readUInt32LE(place) === old)
    : [at];
  for (const place of equal) write(bytes, place, value);
  return bytes;
};

/** ECMA-119 9.1: the number of its first sector, and behind it that of its bytes. */
const EXTENT_AT = 2;
const FLAGS_AT = 25;
const DIRECTORY = 2;

/** A record gets the extent of another one; or all get it. */
const setExtents: Mutation = (bytes, { random, seed }) => {
  const places = numbersOf(seed, bytes);
  const pairs = places.filter((at, index) => places[index + 1] === at + 8);
  const from = pairs[random.below(pairs.length)];
  const to = pairs[random.below(pairs.length)];
  if (from === undefined || to === undefined) return bytes;
  const isDirectory = random.chance(0.5);
  for (const at of random.chance(0.1) ? pairs : [to]) {
    bytes.copy(bytes, at, from, from + 16);
    const flags = at - EXTENT_AT + FLAGS_AT;
    if (isDirectory) bytes[flags] = (bytes[flags] ?? 0) | DIRECTORY;
  }
  return bytes;
};

/** A record again and again, up to the end of its sector or of some sectors. */
const fillWithRecord: Mutation = (bytes, { random, seed }) => {
  const places = numbersOf(seed, bytes);
  const start = (places[random.below(places.length)] ?? 0) - EXTENT_AT;
  const length = bytes[start] ?? 0;
  if (start < 0 || length < 34) return bytes;
  const record = Buffer.from(bytes.subarray(start, start + length));
  const last = Math.floor(start / 2048) + random.pick([0, 0, 30, 300]);
  for (let sector = Math.floor(start / 2048); sector <= last; sector++) {
    const end = Math.min(bytes.length, (sector + 1) * 2048);
    const first = Math.max(start, sector * 2048);
    for (let at = first; at + length <= end; at += length) record.copy(bytes, at);
  }
  return bytes;
};

export const ISO_MUTATIONS = [
  setNumbers,
  setNumbers,
  setExtents,
  setExtents,
  fillWithRecord,
] as const;
