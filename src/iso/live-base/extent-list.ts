import { digestOf } from '../../base/digest.ts';
import type { Extent } from '../extent.ts';

/** An extent of rendered bytes that no file consists of. */
export const bytesExtent = (offset: number, bytes: Uint8Array): Extent => ({
  offset,
  size: bytes.length,
  digest: digestOf(bytes),
  source: { kind: 'bytes', bytes },
  paths: [],
});

export const zeroExtent = (offset: number, size: number): Extent => ({
  offset,
  size,
  source: { kind: 'zero' },
  paths: [],
});

/** The same extents, sorted already, with padding between them and up to `size`. */
export function fillGaps(extents: readonly Extent[], size: number): Extent[] {
  const filled: Extent[] = [];
  let end = 0;
  for (const extent of extents) {
    if (extent.offset < end) throw new Error(`extent at ${extent.offset} begins before ${end}`);
    if (extent.offset > end) filled.push(zeroExtent(end, extent.offset - end));
    filled.push(extent);
    end = extent.offset + extent.size;
  }
  if (end > size) throw new Error(`extents end at ${end}, past the image's ${size} bytes`);
  if (end < size) filled.push(zeroExtent(end, size - end));
  return filled;
}
