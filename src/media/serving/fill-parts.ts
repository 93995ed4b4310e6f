import type { ByteRange } from '../../base/random-access.ts';

/** Bytes of a part that are brought at once. */
export const CHUNK = 4 << 20;

/** Bytes of one part that are wanted. */
export type Wanted<Part> = {
  readonly part: Part;
  /** What they are put into. */
  readonly target: Buffer;
  /** The first of them in the part. */
  readonly at: number;
};

/**
 * Fills a buffer with the bytes of parts, one after the other; between parts are zeros.
 *
 * @param parts by offset, without overlaps
 */
export async function fillParts<Part extends ByteRange>(
  parts: readonly Part[],
  { bytes, offset }: { readonly bytes: Buffer; readonly offset: number },
  fill: (wanted: Wanted<Part>) => Promise<void>,
): Promise<void> {
  const end = offset + bytes.length;
  let done = offset;
  for (let index = findFirst(parts, offset); index < parts.length; index += 1) {
    const part = parts[index];
    if (!part || part.offset >= end) break;
    const from = Math.max(done, part.offset);
    const to = Math.min(end, part.offset + part.size);
    bytes.fill(0, done - offset, from - offset);
    const target = bytes.subarray(from - offset, to - offset);
    await fill({ part, target, at: from - part.offset });
    done = to;
  }
  bytes.fill(0, done - offset);
}

/** The first part that does not end before the offset. */
function findFirst(parts: readonly ByteRange[], offset: number): number {
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const part = parts[middle];
    if (part && part.offset + part.size <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Fills a buffer with bytes of a part that is brought in chunks. */
export async function fillChunks(
  { size, target, at }: { readonly size: number; readonly target: Buffer; readonly at: number },
  fill: (
    chunk: ByteRange,
    wanted: { readonly target: Buffer; readonly at: number },
  ) => Promise<void>,
): Promise<void> {
  for (let done = 0; done < target.length;) {
    const offset = Math.floor((at + done) / CHUNK) * CHUNK;
    const chunk = { offset, size: Math.min(CHUNK, size - offset) };
    const from = at + done - offset;
    const piece = target.subarray(done, done + chunk.size - from);
    await fill(chunk, { target: piece, at: from });
    done += piece.length;
  }
}
