import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import { maxOf } from '../../base/lists.ts';
import type { PackedOverlay, PackedPart } from './packed-overlay.ts';
import type { Served } from '../../base/http/serve-bytes.ts';

/** The bytes of an ISO as it was built, wherever they are. */
export type VirtualBase = {
  /** Printable. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Changes with the bytes. */
  readonly digest: Digest;
  /**
   * Fills the buffer with the bytes from `offset`. Nothing writes to the buffer any more when it settles.
   *
   * @throws the signal's reason; what the source throws
   */
  readonly fill: Served['fill'];
  readonly close: () => Promise<void>;
};

/**
 * An ISO that exists only while it is read: a base, and an overlay on top. Nothing is written. Its ETag is
 * strong: it stands for the bytes of both.
 *
 * Memory: what the overlay stores.
 */
export function createVirtualIso(
  base: Pick<VirtualBase, 'size' | 'digest' | 'fill'>,
  overlay?: PackedOverlay,
): Served {
  const parts = overlay?.parts ?? [];
  const size = maxOf([base.size, ...parts.map(({ offset, size }) => offset + size)]);
  return {
    size,
    etag: `"${hexOf(overlay ? digestOf(`${base.digest}\n${overlay.digest}`) : base.digest)}"`,
    fill(bytes, offset, signal) {
      const inBase = Math.max(0, Math.min(bytes.length, base.size - offset));
      const wanted = bytes.subarray(0, inBase);
      const filling = inBase > 0 ? base.fill(wanted, offset, signal) : undefined;
      const finish = (): void => {
        if (inBase < bytes.length) bytes.fill(0, inBase);
        for (const part of parts) lay(part, bytes, offset);
      };
      if (filling) return filling.then(finish);
      finish();
      return undefined;
    },
  };
}

/** Puts over the bytes from `offset` what a part has for them. */
function lay(part: PackedPart, bytes: Buffer, offset: number): void {
  const start = Math.max(part.offset, offset);
  const end = Math.min(part.offset + part.size, offset + bytes.length);
  if (start >= end) return;
  const target = bytes.subarray(start - offset, end - offset);
  const given = part.bytes.subarray(start - part.offset, end - part.offset);
  target.set(given);
  target.fill(0, given.length);
}
