import type { RandomAccess } from '../../base/random-access.ts';

/** Bytes that replace those of an ISO: sorted, without overlap, sizes unchanged. */
export type OverlayPart = { readonly offset: number; readonly bytes: Uint8Array };

/** An image as it reads with other bytes in some places. Closing it closes the image. */
export const overlayAccess = (
  image: RandomAccess,
  parts: readonly OverlayPart[],
): RandomAccess => ({
  ...image,
  read: overlayRead(image.read, parts),
});

/** The same of a function that reads. */
export const overlayRead =
  (read: RandomAccess['read'], parts: readonly OverlayPart[]): RandomAccess['read'] =>
  async (offset, size, buffer) => {
    const bytes = await read(offset, size, buffer);
    applyParts(bytes, offset, parts);
    return bytes;
  };

/** Replaces what of `bytes`, which begin at `offset` of the image, belongs to a part. */
export function applyParts(bytes: Uint8Array, offset: number, parts: readonly OverlayPart[]): void {
  for (const part of parts) {
    const from = Math.max(offset, part.offset);
    const to = Math.min(offset + bytes.length, part.offset + part.bytes.length);
    if (from >= to) continue;
    bytes.set(part.bytes.subarray(from - part.offset, to - part.offset), from - offset);
  }
}

export const sortParts = (parts: readonly OverlayPart[]): readonly OverlayPart[] =>
  parts.toSorted((a, b) => a.offset - b.offset);
