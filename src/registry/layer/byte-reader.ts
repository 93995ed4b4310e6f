import { IntegrityError } from '../../base/errors.ts';

/** Takes a stream apart at byte counts, whatever pieces it comes in. */
export type ByteReader = {
  /** Whether there is another byte. */
  hasMore: () => Promise<boolean>;
  /** @throws IntegrityError `layer.malformed` when the stream ends before that. */
  take: (size: number) => Promise<Buffer>;
  /** The same without holding the bytes. */
  skip: (size: number) => Promise<void>;
};

export function createByteReader(source: AsyncIterable<Buffer>): ByteReader {
  const chunks = source[Symbol.asyncIterator]();
  let chunk: Buffer = Buffer.alloc(0);
  const hasMore = async (): Promise<boolean> => {
    while (chunk.length === 0) {
      const next = await chunks.next();
      if (next.done === true) return false;
      chunk = next.value;
    }
    return true;
  };
  /** Up to so many bytes, whichever are here. */
  const shift = async (size: number): Promise<Buffer> => {
    if (!(await hasMore())) throw endedError(size);
    const head = chunk.subarray(0, size);
    chunk = chunk.subarray(size);
    return head;
  };
  return {
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

const endedError = (size: number): IntegrityError =>
  new IntegrityError(
    'layer.malformed',
    `layer cannot be unpacked: it ends where at least ${size} more bytes should be`,
  );
