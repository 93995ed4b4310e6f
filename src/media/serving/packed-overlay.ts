import { digestOf, type Digest } from '../../base/digest.ts';
import type { OverlayPart } from '../customize/overlay.ts';

/** An overlay as it is stored, and held in memory while it is served. */
export type PackedOverlay = {
  /** Of the packed bytes: the same overlay has the same digest. */
  readonly digest: Digest;
  /** Later ones stand over earlier ones. */
  readonly parts: readonly PackedPart[];
};

export type PackedPart = {
  readonly offset: number;
  /** Bytes of the ISO that it covers. */
  readonly size: number;
  /** The first of them; the rest are zeros. */
  readonly bytes: Uint8Array;
};

/**
 * One text: a line of JSON, `[[offset, size, stored], ...]`, then the stored bytes of all parts. Zeros at the
 * end of a part are not stored: an embed area of 1 MiB is mostly zeros.
 */
export function packOverlay(parts: readonly OverlayPart[]): Buffer {
  const stored = parts.map(({ bytes }) => bytes.subarray(0, findEnd(bytes)));
  const head = parts.map(({ offset, bytes }, index) => [
    offset,
    bytes.length,
    stored[index]?.length,
  ]);
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...stored]);
}

/** The bytes are ours: they were encrypted by `storeOverlay`. */
export function parsePackedOverlay(packed: Buffer): PackedOverlay {
  const line = packed.indexOf('\n');
  const head = JSON.parse(packed.toString('utf8', 0, line)) as [number, number, number][];
  let at = line + 1;
  const parts = head.map(([offset, size, stored]) => {
    const bytes = packed.subarray(at, at + stored);
    at += stored;
    return { offset, size, bytes };
  });
  return { digest: digestOf(packed), parts };
}

const ZEROS = Buffer.alloc(4096);

/** Behind the last byte that is not zero. */
function findEnd(bytes: Uint8Array): number {
  let end = bytes.length;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  while (end >= ZEROS.length && buffer.subarray(end - ZEROS.length, end).equals(ZEROS)) {
    end -= ZEROS.length;
  }
  while (end > 0 && bytes[end - 1] === 0) end -= 1;
  return end;
}
