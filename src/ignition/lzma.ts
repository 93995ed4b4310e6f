/**
 * LZMA as LZMA2 uses it (the .xz file format 1.1.0, 5.3.1, and the "LZMA specification" of the LZMA
 * SDK): no end marker, no match across the end of a chunk, the output itself is the dictionary.
 */
export type LzmaDecoder = {
  readonly output: Uint8Array;
  /** Where the next byte goes. */
  position: number;
  /** Where the dictionary begins: matches reach no further back. */
  dictionaryStart: number;
  literalContextBits: number;
  literalPositionMask: number;
  positionMask: number;
  state: number;
  /** The last four distances less one, newest first. */
  distances: [number, number, number, number];
  probabilities: Probabilities;
};

type Probabilities = {
  readonly isMatch: Uint16Array;
  readonly isRepeat: Uint16Array;
  readonly isRepeat0: Uint16Array;
  readonly isRepeat1: Uint16Array;
  readonly isRepeat2: Uint16Array;
  readonly isLongRepeat0: Uint16Array;
  readonly slot: Uint16Array;
  readonly special: Uint16Array;
  readonly align: Uint16Array;
  readonly matchLength: LengthProbabilities;
  readonly repeatLength: LengthProbabilities;
  readonly literal: Uint16Array;
};

type LengthProbabilities = {
  readonly choice: Uint16Array;
  readonly low: Uint16Array;
  readonly middle: Uint16Array;
  readonly high: Uint16Array;
};

type RangeDecoder = {
  readonly input: Uint8Array;
  offset: number;
  range: number;
  code: number;
};

/** Thrown for what no encoder writes; the caller knows which archive it is. */
export class LzmaError extends Error {}

export function createLzmaDecoder(output: Uint8Array): LzmaDecoder {
  return {
    output,
    position: 0,
    dictionaryStart: 0,
    literalContextBits: 0,
    literalPositionMask: 0,
    positionMask: 0,
    state: 0,
    distances: [0, 0, 0, 0],
    probabilities: createProbabilities(0),
  };
}

/** Takes new properties from their byte: (pb * 5 + lp) * 9 + lc. */
export function setProperties(decoder: LzmaDecoder, byte: number): void {
  const literalContextBits = byte % 9;
  const literalPositionBits = Math.floor(byte / 9) % 5;
  if (byte > 224 || literalContextBits + literalPositionBits > 4) {
    throw new LzmaError(`properties ${byte} are out of range`);
  }
  decoder.literalContextBits = literalContextBits;
  decoder.literalPositionMask = (1 << literalPositionBits) - 1;
  decoder.positionMask = (1 << Math.floor(byte / 45)) - 1;
}

/** Forgets everything learned, but not the dictionary. */
export function resetState(decoder: LzmaDecoder): void {
  const literalPositions = decoder.literalPositionMask + 1;
  decoder.state = 0;
  decoder.distances = [0, 0, 0, 0];
  decoder.probabilities = createProbabilities(literalPositions << decoder.literalContextBits);
}

/** Decodes one chunk: all of `input` gives exactly `size` bytes. */
export function decodeLzma(decoder: LzmaDecoder, input: Uint8Array, size: number): void {
  const code = Buffer.from(input.buffer, input.byteOffset, input.byteLength);
  if (code.length < 5 || code[0] !== 0) throw new LzmaError('chunk does not start with its code');
  const range = { input, offset: 5, range: 0xffffffff, code: code.readUInt32BE(1) };
  const end = decoder.position + size;
  while (decoder.position < end) decodeSymbol(decoder, range, end);
  if (range.offset !== input.length || range.code !== 0) {
    throw new LzmaError(`chunk has ${input.length} bytes, but ends after ${range.offset}`);
  }
}

function createProbabilities(literalStates: number): Probabilities {
  const half = (size: number): Uint16Array => new Uint16Array(size).fill(1024);
  const length = (): LengthProbabilities => ({
    choice: half(2),
    low: half(16 * 8),
    middle: half(16 * 8),
    high: half(256),
  });
  return {
    isMatch: half(12 * 16),
    isRepeat: half(12),
    isRepeat0: half(12),
    isRepeat1: half(12),
    isRepeat2: half(12),
    isLongRepeat0: half(12 * 16),
    slot: half(4 * 64),
    special: half(115),
    align: half(16),
    matchLength: length(),
    repeatLength: length(),
    literal: half(0x300 * literalStates),
  };
}

function decodeSymbol(decoder: LzmaDecoder, range: RangeDecoder, end: number): void {
  const { probabilities, state } = decoder;
  const positionState = (decoder.position - decoder.dictionaryStart) & decoder.positionMask;
  if (decodeBit(range, probabilities.isMatch, state * 16 + positionState) === 0) {
    decodeLiteral(decoder, range);
    return;
  }
  const length =
    decodeBit(range, probabilities.isRepeat, state) === 0
      ? decodeMatch(decoder, range, positionState)
      : decodeRepeat(decoder, range, positionState);
  copyMatch(decoder, length, end);
}

function decodeLiteral(decoder: LzmaDecoder, range: RangeDecoder): void {
  const { output, position, dictionaryStart, state, literalContextBits } = decoder;
  const { literal } = decoder.probabilities;
  const relative = position - dictionaryStart;
  const previous = relative === 0 ? 0 : (output[position - 1] ?? 0);
  const context =
    ((relative & decoder.literalPositionMask) << literalContextBits) +
    (previous >> (8 - literalContextBits));
  const base = 0x300 * context;
  let symbol = 1;
  if (state >= 7) {
    let matched = output[position - decoder.distances[0] - 1] ?? 0;
    for (let offset = 0x100; symbol < 0x100;) {
      matched <<= 1;
      const matchBit = matched & offset;
      const bit = decodeBit(range, literal, base + offset + matchBit + symbol);
      symbol = (symbol << 1) | bit;
      offset &= bit === 1 ? matchBit : ~matchBit;
    }
  }
  while (symbol < 0x100) symbol = (symbol << 1) | decodeBit(range, literal, base + symbol);
  output[position] = symbol & 0xff;
  decoder.position++;
  decoder.state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
}

function decodeMatch(decoder: LzmaDecoder, range: RangeDecoder, positionState: number): number {
  const { probabilities, distances } = decoder;
  const length = decodeLength(range, probabilities.matchLength, positionState);
  decoder.distances = [
    decodeDistance(range, probabilities, length),
    distances[0],
    distances[1],
    distances[2],
  ];
  decoder.state = decoder.state < 7 ? 7 : 10;
  return length;
}

function decodeRepeat(decoder: LzmaDecoder, range: RangeDecoder, positionState: number): number {
  const { probabilities, state } = decoder;
  const [first, second, third, fourth] = decoder.distances;
  if (decodeBit(range, probabilities.isRepeat0, state) === 0) {
    if (decodeBit(range, probabilities.isLongRepeat0, state * 16 + positionState) === 0) {
      decoder.state = state < 7 ? 9 : 11;
      return 1;
    }
  } else if (decodeBit(range, probabilities.isRepeat1, state) === 0) {
    decoder.distances = [second, first, third, fourth];
  } else if (decodeBit(range, probabilities.isRepeat2, state) === 0) {
    decoder.distances = [third, first, second, fourth];
  } else {
    decoder.distances = [fourth, first, second, third];
  }
  decoder.state = state < 7 ? 8 : 11;
  return decodeLength(range, probabilities.repeatLength, positionState);
}

function decodeLength(
  range: RangeDecoder,
  { choice, low, middle, high }: LengthProbabilities,
  positionState: number,
): number {
  const base = positionState * 8;
  if (decodeBit(range, choice, 0) === 0) return 2 + decodeTree(range, low.subarray(base), 3);
  if (decodeBit(range, choice, 1) === 0) return 10 + decodeTree(range, middle.subarray(base), 3);
  return 18 + decodeTree(range, high, 8);
}

/** The distance less one. */
function decodeDistance(range: RangeDecoder, probabilities: Probabilities, length: number): number {
  const start = Math.min(length - 2, 3) * 64;
  const slot = decodeTree(range, probabilities.slot.subarray(start), 6);
  if (slot < 4) return slot;
  const bits = (slot >> 1) - 1;
  const base = (2 | (slot & 1)) * 2 ** bits;
  if (slot < 14) {
    return base + decodeReverseTree(range, probabilities.special.subarray(base - slot), bits);
  }
  const middle = decodeDirectBits(range, bits - 4) * 16;
  return base + middle + decodeReverseTree(range, probabilities.align, 4);
}

function copyMatch(decoder: LzmaDecoder, length: number, end: number): void {
  const distance = decoder.distances[0] + 1;
  if (distance > decoder.position - decoder.dictionaryStart) {
    throw new LzmaError(`match reaches ${distance} bytes back, before the dictionary`);
  }
  if (decoder.position + length > end) throw new LzmaError('match reaches past its chunk');
  for (let count = 0; count < length; count++, decoder.position++) {
    decoder.output[decoder.position] = decoder.output[decoder.position - distance] ?? 0;
  }
}

function decodeTree(range: RangeDecoder, probabilities: Uint16Array, bits: number): number {
  let symbol = 1;
  for (let bit = 0; bit < bits; bit++) {
    symbol = (symbol << 1) | decodeBit(range, probabilities, symbol);
  }
  return symbol - (1 << bits);
}

function decodeReverseTree(range: RangeDecoder, probabilities: Uint16Array, bits: number): number {
  let symbol = 1;
  let value = 0;
  for (let position = 0; position < bits; position++) {
    const bit = decodeBit(range, probabilities, symbol);
    symbol = (symbol << 1) | bit;
    value |= bit << position;
  }
  return value;
}

function decodeDirectBits(range: RangeDecoder, bits: number): number {
  let value = 0;
  for (let count = 0; count < bits; count++) {
    range.range >>>= 1;
    const isSet = range.code >= range.range;
    if (isSet) range.code -= range.range;
    value = value * 2 + Number(isSet);
    normalize(range);
  }
  return value;
}

function decodeBit(range: RangeDecoder, probabilities: Uint16Array, index: number): number {
  const probability = probabilities[index] ?? 0;
  const bound = (range.range >>> 11) * probability;
  const isSet = range.code >= bound;
  if (isSet) {
    range.range -= bound;
    range.code -= bound;
    probabilities[index] = probability - (probability >> 5);
  } else {
    range.range = bound;
    probabilities[index] = probability + ((2048 - probability) >> 5);
  }
  normalize(range);
  return Number(isSet);
}

function normalize(range: RangeDecoder): void {
  if (range.range >= 2 ** 24) return;
  const byte = range.input[range.offset];
  if (byte === undefined) throw new LzmaError('chunk is cut off');
  range.offset++;
  range.range = (range.range << 8) >>> 0;
  range.code = ((range.code << 8) | byte) >>> 0;
}
