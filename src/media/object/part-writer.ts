import type { Part } from './plan-parts.ts';

/** Fills the parts of a group, in order, and hands each on when it is full. */
export type PartWriter = {
  readonly add: (bytes: Uint8Array) => Promise<void>;
  /** What follows is one span: it may be taken back. */
  readonly begin: () => void;
  /** Goes back to where the span began. Parts of it that were handed on already come again. */
  readonly takeBack: () => void;
};

/** Memory: one part, and what stood in front of the span in the part in which it began. */
export function createPartWriter(
  parts: readonly Part[],
  handOn: (part: Part, bytes: Uint8Array) => Promise<void>,
): PartWriter {
  const start = parts[0]?.offset ?? 0;
  const buffer = Buffer.allocUnsafe(parts.reduce((most, { size }) => Math.max(most, size), 0));
  /** Of the part that is being filled. */
  let index = 0;
  let filled = 0;
  /** Where the span began: the part, and the bytes in front of it there. */
  let began = { index: 0, filled: 0 };
  let front: Uint8Array | undefined;
  const flush = async (part: Part): Promise<void> => {
    if (began.index === index) front = Buffer.from(buffer.subarray(0, began.filled));
    await handOn(part, buffer.subarray(0, part.size));
    index += 1;
    filled = 0;
  };
  return {
    async add(bytes) {
      for (let done = 0; done < bytes.length;) {
        const part = parts[index];
        if (!part) throw new Error(`more bytes than the parts from byte ${start} have`);
        const piece = bytes.subarray(done, done + part.size - filled);
        buffer.set(piece, filled);
        filled += piece.length;
        done += piece.length;
        if (filled === part.size) await flush(part);
      }
    },
    begin() {
      began = { index, filled };
      front = undefined;
    },
    takeBack() {
      if (index > began.index && front) buffer.set(front);
      ({ index, filled } = began);
    },
  };
}
