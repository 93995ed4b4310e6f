import { requireBytes } from '../bounds.ts';

/**
 * ECMA-119 7.3.3: most 32-bit numbers in a volume stand twice in a row, first little-endian and then
 * big-endian. The little-endian copy is what every system reads, so it is what we return.
 */
export function decodeBoth32(bytes: Uint8Array, at: number): number {
  requireBytes(bytes, { at, size: 8 });
  return little32(bytes, at);
}

/** ECMA-119 7.2.3: the same with 16 bits. */
export function decodeBoth16(bytes: Uint8Array, at: number): number {
  requireBytes(bytes, { at, size: 4 });
  return little16(bytes, at);
}

export function encodeBoth32(target: Uint8Array, at: number, value: number): void {
  requireBytes(target, { at, size: 8 });
  for (let byte = 0; byte < 4; byte++) {
    target[at + byte] = target[at + 7 - byte] = value >>> (8 * byte);
  }
}

export function encodeBoth16(target: Uint8Array, at: number, value: number): void {
  requireBytes(target, { at, size: 4 });
  target[at] = target[at + 3] = value;
  target[at + 1] = target[at + 2] = value >>> 8;
}

/** Whether both copies of a 32-bit number at `at` say the same. */
export function isBothEqual32(bytes: Uint8Array, at: number): boolean {
  requireBytes(bytes, { at, size: 8 });
  return isMirrored(bytes, at, at + 7);
}

/** Whether both copies of a 16-bit number at `at` say the same. */
export function isBothEqual16(bytes: Uint8Array, at: number): boolean {
  requireBytes(bytes, { at, size: 4 });
  return isMirrored(bytes, at, at + 3);
}

function isMirrored(bytes: Uint8Array, first: number, last: number): boolean {
  for (let [at, other] = [first, last]; at < other; at++, other--) {
    if (bytes[at] !== bytes[other]) return false;
  }
  return true;
}

// A record has a dozen numbers, and a DataView for each would be most of what reading it takes.
const little32 = (bytes: Uint8Array, at: number): number =>
  little16(bytes, at) + little16(bytes, at + 2) * 0x10000;

const little16 = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
