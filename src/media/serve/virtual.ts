import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import type { Served } from '../../base/http/plan-answer.ts';
import { findFirst, maxOf } from '../../base/lists.ts';
import type { ByteRange } from '../../base/random-access.ts';
import type { PackedOverlay, PackedPart } from './overlay.ts';

/* Bytes that are put together while they are served: a base with an overlay, or files in a row. */

/** Bytes of an ISO as it was built, stored in one file or in many. */
export type VirtualBase = {
  /** Printable name. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Changes with the bytes. */
  readonly digest: Digest;
  /**
   * Fills the buffer with the bytes from `offset`. The buffer is not written after it settles.
   *
   * @throws the signal's reason; the errors of the source
   */
  readonly fill: Served['fill'];
  readonly isAtHand?: boolean;
  /** The regular file that it is, if it is one, so that another process can open the same. */
  readonly file?: IsoIdentity;
  readonly close: () => Promise<void>;
};

/** A file as it was when it was opened; another file with its name differs from it. */
export type IsoIdentity = {
  readonly path: string;
  readonly ino: number;
  /** Bytes. */
  readonly size: number;
  readonly mtimeMs: number;
};

export type VirtualIso = Served & {
  /** Ranges whose bytes are not those of the base. */
  readonly changed: readonly ByteRange[];
  readonly overlay?: PackedOverlay;
};

/**
 * Exists only while it is read. Its ETag is strong, because it identifies the bytes of base and overlay.
 * Memory: the stored overlay.
 */
export function createVirtualIso(
  base: Pick<VirtualBase, 'size' | 'digest' | 'fill' | 'isAtHand'>,
  overlay?: PackedOverlay,
): VirtualIso {
  const parts = overlay?.parts ?? [];
  const size = maxOf([base.size, ...parts.map(({ offset, size }) => offset + size)]);
  return {
    size,
    changed: parts.map(({ offset, size: length }) => ({ offset, size: length })),
    etag: `"${hexOf(overlay ? digestOf(`${base.digest}\n${overlay.digest}`) : base.digest)}"`,
    isAtHand: base.isAtHand === true,
    ...(overlay && { overlay }),
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

function lay(part: PackedPart, bytes: Buffer, offset: number): void {
  const start = Math.max(part.offset, offset);
  const end = Math.min(part.offset + part.size, offset + bytes.length);
  if (start >= end) return;
  const target = bytes.subarray(start - offset, end - offset);
  const given = part.bytes.subarray(start - part.offset, end - part.offset);
  target.set(given);
  target.fill(0, given.length);
}

/** Bytes of a part that are fetched at once. */
export const CHUNK = 4 << 20;

export type WantedPart<Part> = {
  readonly part: Part;
  /** Buffer that they are copied to. */
  readonly target: Buffer;
  /** Offset of the first byte in the part. */
  readonly at: number;
};

/**
 * Gaps are zeros.
 *
 * @param parts by offset, without overlaps
 */
export async function fillParts<Part extends ByteRange>(
  parts: readonly Part[],
  { bytes, offset }: { readonly bytes: Buffer; readonly offset: number },
  fill: (wanted: WantedPart<Part>) => Promise<void>,
): Promise<void> {
  const end = offset + bytes.length;
  let done = offset;
  const first = findFirst(parts, (part) => part.offset + part.size > offset);
  for (let index = first; index < parts.length; index += 1) {
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

/** Runs of an ISO, or bytes. */
type Content = { readonly extents: readonly ByteRange[] } | Uint8Array;

type Run = ByteRange & { readonly from: number | Uint8Array };

/** Alignment at which Linux unpacks concatenated archives. */
const ALIGNMENT = 4;

/**
 * Concatenated with zeros in between. Nothing is written.
 *
 * @param base whose digest identifies the bytes of the files
 */
export function serveRuns(
  base: Pick<VirtualBase, 'digest' | 'fill'>,
  contents: readonly Content[],
): Served {
  const runs: Run[] = [];
  let size = 0;
  for (const content of contents) {
    size = Math.ceil(size / ALIGNMENT) * ALIGNMENT;
    const all =
      'extents' in content ? content.extents : [{ offset: content, size: content.length }];
    for (const { offset: from, size: length } of all) {
      runs.push({ offset: size, size: length, from });
      size += length;
    }
  }
  const names = runs.map(({ from, offset, size }) => [
    offset,
    size,
    typeof from === 'number' ? from : digestOf(from),
  ]);
  return {
    size,
    etag: `"${hexOf(digestOf(JSON.stringify([base.digest, ...names])))}"`,
    fill: (bytes, offset, signal) =>
      fillParts(runs, { bytes, offset }, async ({ part: { from }, target, at }) => {
        if (typeof from === 'number') await base.fill(target, from + at, signal);
        else target.set(from.subarray(at, at + target.length));
      }),
  };
}
