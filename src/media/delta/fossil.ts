/*
 * Applies deltas in Fossil's format (https://fossil-scm.org/home/doc/trunk/www/delta_format.wiki) in memory
 * of the stated size: the library takes twenty times as much.
 */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~';

const VALUES = Array.from({ length: 256 }, (_, code) => DIGITS.indexOf(String.fromCharCode(code)));

type Reader = ReturnType<typeof createReader>;

/** Undefined if the delta is damaged or makes another size; its checksum is not read. */
export function applyFossilDelta(
  old: Uint8Array,
  { delta, size }: { readonly delta: Uint8Array; readonly size: number },
): Uint8Array | undefined {
  const reader = createReader(delta);
  if (reader.readNumber() !== size || reader.readMark() !== '\n') return undefined;
  const made = new Uint8Array(size);
  let end = 0;
  for (;;) {
    const count = reader.readNumber();
    const mark = reader.readMark();
    if (mark === ';') return end === size ? made : undefined;
    const bytes = readBytes(reader, { old, mark, count });
    if (bytes?.length !== count || end + count > size) return undefined;
    made.set(bytes, end);
    end += count;
  }
}

/** The bytes of one command: copied from the old ones, or inserted. */
function readBytes(
  { readNumber, readMark, take }: Reader,
  command: { readonly old: Uint8Array; readonly mark: string; readonly count: number },
): Uint8Array | undefined {
  const { old, mark, count } = command;
  if (mark === ':') return take(count);
  if (mark !== '@') return undefined;
  const offset = readNumber();
  return readMark() === ',' ? old.subarray(offset, offset + count) : undefined;
}

function createReader(delta: Uint8Array) {
  let at = 0;
  const readDigit = (): number => VALUES[delta[at] ?? 0] ?? -1;
  const readNumber = (): number => {
    let number = 0;
    for (; readDigit() >= 0; at += 1) number = number * DIGITS.length + readDigit();
    return number;
  };
  const take = (count: number): Uint8Array => {
    at += count;
    return delta.subarray(at - count, at);
  };
  /** Empty at the end. */
  const readMark = (): string => Buffer.from(take(1)).toString('latin1');
  return { readNumber, readMark, take };
}
