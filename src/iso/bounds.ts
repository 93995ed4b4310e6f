import { IntegrityError } from '../base/errors.ts';

/**
 * A view of `bytes` that has at least `size` bytes from `at` on, `at` counted from the start.
 *
 * @throws IntegrityError `iso.truncated` when it has fewer
 */
export function viewOf(bytes: Uint8Array, range: { at: number; size: number }): DataView {
  requireBytes(bytes, range);
  return new DataView(bytes.buffer, bytes.byteOffset + range.at, range.size);
}

/** @throws IntegrityError `iso.truncated` when `bytes` ends before `at + size` */
export function requireBytes(bytes: Uint8Array, range: { at: number; size: number }): void {
  if (range.at >= 0 && range.size >= 0 && range.at + range.size <= bytes.length) return;
  throw new IntegrityError(
    'iso.truncated',
    `structure needs ${range.size} bytes at ${range.at}, but there are ${bytes.length} bytes`,
    { expected: String(range.at + range.size), found: String(bytes.length) },
  );
}

/** `bytes` from `start` to before `end` as they are in memory, a Buffer's too as plain bytes. */
export const partOf = (bytes: Uint8Array, start: number, end: number): Uint8Array =>
  new Uint8Array(bytes.buffer, bytes.byteOffset + start, Math.max(0, end - start));

/** A copy of `bytes` from `start` to before `end`, which a Buffer's own `slice` is not. */
export const copyOf = (bytes: Uint8Array, start: number, end: number): Uint8Array =>
  new Uint8Array(bytes.subarray(start, end));
