import { viewOf } from '../bounds.ts';

/**
 * ECMA-119 7.3.3: most 32-bit numbers in a volume stand twice in a row, first little-endian and then
 * big-endian. The little-endian copy is what every system reads, so it is what we return.
 */
export function decodeBoth32(bytes: Uint8Array, at: number): number {
  return viewOf(bytes, { at, size: 8 }).getUint32(0, true);
}

/** ECMA-119 7.2.3: the same with 16 bits. */
export function decodeBoth16(bytes: Uint8Array, at: number): number {
  return viewOf(bytes, { at, size: 4 }).getUint16(0, true);
}

export function encodeBoth32(target: Uint8Array, at: number, value: number): void {
  const view = viewOf(target, { at, size: 8 });
  view.setUint32(0, value, true);
  view.setUint32(4, value, false);
}

export function encodeBoth16(target: Uint8Array, at: number, value: number): void {
  const view = viewOf(target, { at, size: 4 });
  view.setUint16(0, value, true);
  view.setUint16(2, value, false);
}

/** Whether both copies of a 32-bit number at `at` say the same. */
export function isBothEqual32(bytes: Uint8Array, at: number): boolean {
  const view = viewOf(bytes, { at, size: 8 });
  return view.getUint32(0, true) === view.getUint32(4, false);
}

/** Whether both copies of a 16-bit number at `at` say the same. */
export function isBothEqual16(bytes: Uint8Array, at: number): boolean {
  const view = viewOf(bytes, { at, size: 4 });
  return view.getUint16(0, true) === view.getUint16(2, false);
}
