import { DecodeError } from './limits.ts';

/** Takes a stream apart at byte counts, regardless of the pieces it comes in. */
export type ByteReader = {
  /** Bytes taken and skipped so far. */
  readonly position: number;
  hasMore: () => Promise<boolean>;
  take: (size: number) => Promise<Buffer>;
  /** Skips so many bytes without holding them. */
  skip: (size: number) => Promise<void>;
};

export function createByteReader(source: AsyncIterable<Uint8Array>): ByteReader {
  const chunks = source[Symbol.asyncIterator]();
  let chunk: Buffer = Buffer.alloc(0);
  let position = 0;
  const hasMore = async (): Promise<boolean> => {
    while (chunk.length === 0) {
      const next = await chunks.next();
      if (next.done === true) return false;
      chunk = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.length);
    }
    return true;
  };
  /** Takes at most so many of the bytes that have arrived. */
  const shift = async (size: number): Promise<Buffer> => {
    if (!(await hasMore())) {
      throw new DecodeError(
        'malformed',
        `it ends although at least ${size} more bytes should follow`,
      );
    }
    const head = chunk.subarray(0, size);
    chunk = chunk.subarray(size);
    position += head.length;
    return head;
  };
  return {
    get position() {
      return position;
    },
    hasMore,
    async take(size) {
      const parts: Buffer[] = [];
      for (let left = size; left > 0;) {
        const part = await shift(left);
        parts.push(part);
        left -= part.length;
      }
      return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
    },
    async skip(size) {
      for (let left = size; left > 0;) left -= (await shift(left)).length;
    },
  };
}
