/*
 * Applies deltas in Fossil's format (https://fossil-scm.org/home/doc/trunk/www/delta_format.wiki) in memory of
 * the size that is stated. The library appends byte by byte to a list, which takes twenty times as much.
 */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~';

const VALUES = Array.from({ length: 256 }, (_, code) => DIGITS.indexOf(String.fromCharCode(code)));

/**
 * @returns the new bytes, or undefined if the delta is damaged or makes another size; its checksum is not read
 */
export function applyFossilDelta(
  old: Uint8Array,
  { delta, size }: { readonly delta: Uint8Array; readonly size: number },
): Uint8Array | undefined {
  const { readNumber, readMark, take } = createReader(delta);
  if (readNumber() !== size || readMark() !== '\n') return undefined;
  const copy = (count: number): Uint8Array | undefined => {
    const offset = readNumber();
    return readMark() === ',' ? old.subarray(offset, offset + count) : undefined;
  };
  const made = new Uint8Array(size);
  for (let end = 0; ;) {
    const count = readNumber();
    const mark = readMark();
    if (mark === ';') return end === size ? made : undefined;
    const bytes = mark === '@' ? copy(count) : mark === ':' ? take(count) : undefined;
    if (bytes?.length !== count || end + count > size) return undefined;
    made.set(bytes, end);
    end += count;
  }
}

function createReader(delta: Uint8Array) {
  let at = 0;
  const readDigit = (): number => VALUES[delta[at] ?? 0] ?? -1;
  return {
    readNumber(): number {
      let number = 0;
      for (; readDigit() >= 0; at += 1) number = number * DIGITS.length + readDigit();
      return number;
    },
    /** Reads a character; empty at the end. */
    readMark(): string {
      at += 1;
      return String.fromCharCode(...delta.subarray(at - 1, at));
    },
    take(count: number): Uint8Array {
      at += count;
      return delta.subarray(at - count, at);
    },
  };
}
