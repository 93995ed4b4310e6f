import { digestOf } from '../base/digest.ts';
import { BLOB_ALIGNMENT, roundUp, type Extent, type Layout } from './extent.ts';
import type { Areas } from './places/places.ts';
import { zeroExtent } from './live-base/extent-list.ts';

/** A file that lists the extents of the ISO it is in. */
export type IndexFile = {
  /** Rock Ridge path. */
  readonly path: string;
  /**
   * Called twice: with offsets and sizes that have more digits than the real ones, then with those.
   * The file's own extent has no digest. Its text ends in white space to reach the first result's
   * size, so its format must allow that.
   */
  readonly render: (extents: readonly Extent[], areas: Areas) => Uint8Array;
};

/** Past the last byte that 32 bits of sector numbers reach. */
const LARGEST_NUMBER = 9_999_999_999_999;

/** The index, not yet rendered. */
export const placeIndex = (
  { path }: IndexFile,
  place: { readonly offset: number; readonly size: number },
): Extent => ({ ...place, source: { kind: 'bytes', bytes: new Uint8Array(0) }, paths: [path] });

const WIDEST_AREAS: Areas = {
  structures: LARGEST_NUMBER,
  files: LARGEST_NUMBER,
  index: LARGEST_NUMBER,
  smallBlobs: LARGEST_NUMBER,
  blobs: LARGEST_NUMBER,
};

/** Bytes that suffice for the index, wherever its size makes the extents go. */
export function measureIndex(index: IndexFile, extents: readonly Extent[]): number {
  const widest = [...extents, zeroExtent(0, 1), zeroExtent(0, 1)].map((extent) => ({
    ...extent,
    offset: LARGEST_NUMBER,
    size: LARGEST_NUMBER,
  }));
  const { length } = index.render(widest, WIDEST_AREAS);
  return roundUp(length + 1, BLOB_ALIGNMENT);
}

/** The layout with the index rendered into the extent that waits for it. */
export function fillIndex(index: IndexFile, layout: Layout): Layout {
  const { areas } = layout;
  if (!areas) throw new Error('a layout with an index has areas');
  const extents = layout.extents.map((extent) => {
    if (!extent.paths.includes(index.path)) return extent;
    const text = index.render(layout.extents, areas);
    const bytes = padText(text, extent.size);
    return { ...extent, digest: digestOf(bytes), source: { kind: 'bytes' as const, bytes } };
  });
  return { ...layout, extents };
}

/** Spaces, then a newline. */
function padText(text: Uint8Array, size: number): Uint8Array {
  if (text.length > size) throw new Error(`index has ${text.length} bytes, not at most ${size}`);
  const bytes = new Uint8Array(size).fill(0x20);
  bytes.set(text);
  if (text.length < size) bytes[size - 1] = 0x0a;
  return bytes;
}
