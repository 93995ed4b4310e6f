import { digestOf } from '../../base/digest.ts';
import type { Extent } from '../extent.ts';
import { zeroExtent } from './extent-list.ts';
import { locateBackupGpt, readPartitionTables, SYSTEM_AREA_SIZE } from '../boot/hybrid.ts';
import type { BaseImage, BasePiece } from './scan-base.ts';

/** Bytes that take the place of the base's own from that offset on. */
export type BasePatch = { readonly offset: number; readonly bytes: Uint8Array };

export type BaseRewrite = {
  readonly systemArea: Uint8Array;
  /** As many sectors as before. */
  readonly descriptors: Uint8Array;
  readonly patches: readonly BasePatch[];
  /** Paths, of files or directories, that no longer mean the base's data. */
  readonly gone: readonly string[];
};

/** The base's bytes at their offsets, all but those that are rewritten or patched. */
export function layOutBase(
  base: Pick<BaseImage, 'size' | 'pieces' | 'systemArea'>,
  rewrite: BaseRewrite,
): Extent[] {
  const { gpt } = readPartitionTables(base.systemArea);
  const staleGpt = gpt && locateBackupGpt(gpt, base.size);
  const gone = new Set(rewrite.gone);
  for (const patch of rewrite.patches) requireInside(patch, base);
  const rewritten: readonly BasePatch[] = [
    { offset: 0, bytes: rewrite.systemArea },
    { offset: SYSTEM_AREA_SIZE, bytes: rewrite.descriptors },
    ...rewrite.patches,
  ];
  return base.pieces.map((piece) => {
    if (piece.offset === staleGpt?.offset && piece.paths.length === 0) {
      return zeroExtent(piece.offset, piece.size);
    }
    const paths = piece.paths.filter((path) => !isGone(path, gone));
    const { offset, size, digest } = piece;
    const bytes = patchPiece(piece, rewritten);
    const source = bytes ? ({ kind: 'bytes', bytes } as const) : ({ kind: 'base' } as const);
    return { offset, size, digest: bytes ? digestOf(bytes) : digest, source, paths };
  });
}

function requireInside({ offset, bytes }: BasePatch, base: Pick<BaseImage, 'size'>): void {
  if (offset >= 0 && offset + bytes.length <= base.size) return;
  throw new Error(`patch of ${bytes.length} bytes at ${offset} is not in ${base.size} bytes`);
}

function isGone(path: string, gone: ReadonlySet<string>): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
    if (gone.has(path.slice(0, end))) return true;
  }
  return false;
}

/** The patched bytes of a piece; undefined when no patch changes them. */
function patchPiece(piece: BasePiece, patches: readonly BasePatch[]): Uint8Array | undefined {
  const end = piece.offset + piece.size;
  const touching = patches.filter(
    ({ offset, bytes }) => offset < end && offset + bytes.length > piece.offset,
  );
  if (touching.length === 0) return undefined;
  if (!piece.bytes) {
    throw new Error(
      `patched piece of ${piece.size} bytes at ${piece.offset} (${piece.paths.join(', ')}) was not kept by the scan`,
    );
  }
  const patched = Uint8Array.from(piece.bytes);
  for (const { offset, bytes } of touching) {
    const from = Math.max(0, piece.offset - offset);
    const to = Math.min(bytes.length, end - offset);
    patched.set(bytes.subarray(from, to), offset + from - piece.offset);
  }
  return Buffer.compare(patched, piece.bytes) === 0 ? undefined : patched;
}
