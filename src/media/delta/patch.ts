import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { applyDelta, createDelta, getDeltaTargetSize } from 'fossil-delta';
import { isErrno } from '../../base/errors.ts';

/** Larger extents are files of the base and layers: they are compressed, and change all over. */
export const LARGEST_PATCHED = 16 * 1024 * 1024;

/** Bytes that the patches of one delta make, at most: whoever applies it has them in memory. */
export const MOST_PATCHED = 512 * 1024 * 1024;

/** Above this part of the new bytes, a patch is not worth its reading. */
const WORTH = 0.9;

/** What makes new bytes of old ones; undefined where it would hardly be smaller than the new ones. */
export function makePatch(old: Uint8Array, now: Uint8Array): Uint8Array | undefined {
  const patch = deflateRawSync(Buffer.from(createDelta(old, now)), { level: 9 });
  return patch.length < now.length * WORTH ? patch : undefined;
}

/** Undefined where the patch is damaged, or makes other than `size` bytes. */
export function usePatch(
  old: Uint8Array,
  { patch, size }: { readonly patch: Uint8Array; readonly size: number },
): Uint8Array | undefined {
  try {
    const maxOutputLength = 2 * size + 1024; // Fossil's format at its worst
    const delta = inflateRawSync(patch, { maxOutputLength });
    if (getDeltaTargetSize(delta) !== size) return undefined;
    return Uint8Array.from(applyDelta(old, delta, { verifyChecksum: false }));
  } catch (error) {
    if (error instanceof Error && !isErrno(error, 'ERR_OUT_OF_MEMORY')) return undefined;
    throw error;
  }
}
