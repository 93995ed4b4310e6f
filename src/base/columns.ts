/*
 * Lists that are held outside of the heap: of a million objects the collector would keep as much garbage
 * again, and each costs more than what it says.
 */

/** Numbers, in the order in which they were added. */
export type Column = {
  readonly length: () => number;
  readonly push: (value: number) => void;
  /** 0 where there is none. */
  readonly at: (index: number) => number;
};

/** @param wide whether numbers may have more than 32 bits: integers up to 2^53 then */
export function createColumn({ wide = false } = {}): Column {
  const create = (length: number): Float64Array | Uint32Array =>
    wide ? new Float64Array(length) : new Uint32Array(length);
  let values = create(FIRST_ROOM);
  let length = 0;
  return {
    length: () => length,
    push(value) {
      if (length === values.length) {
        const larger = create(grow(length));
        larger.set(values);
        values = larger;
      }
      values[length++] = value;
    },
    at: (index) => (index < length ? (values[index] ?? 0) : 0),
  };
}

/** Texts, in the order in which they were added. */
export type TextColumn = {
  readonly push: (text: string) => void;
  /** '' where there is none. */
  readonly at: (index: number) => string;
};

export function createTextColumn(): TextColumn {
  const ends = createColumn({ wide: true });
  let bytes = Buffer.allocUnsafeSlow(FIRST_ROOM);
  let used = 0;
  return {
    push(text) {
      const size = Buffer.byteLength(text);
      if (used + size > bytes.length) {
        const larger = Buffer.allocUnsafeSlow(grow(used + size));
        bytes.copy(larger, 0, 0, used);
        bytes = larger;
      }
      used += bytes.write(text, used);
      ends.push(used);
    },
    at: (index) => bytes.toString('utf8', index === 0 ? 0 : ends.at(index - 1), ends.at(index)),
  };
}

const FIRST_ROOM = 1024;
const grow = (length: number): number => Math.ceil(length * 1.5);
