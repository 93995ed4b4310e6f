import { digestOf, hexOf } from '../../base/digest.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { fillParts } from './fill-parts.ts';
import type { Served } from '../../base/http/serve-bytes.ts';
import type { VirtualBase } from './virtual-iso.ts';

/** Runs of an ISO, or bytes. */
type Content = { readonly extents: readonly ByteRange[] } | Uint8Array;

type Run = ByteRange & { readonly from: number | Uint8Array };

/** Linux unpacks archives that are one behind the other where each begins at a multiple of it. */
const ALIGNMENT = 4;

/**
 * Files of an ISO and archives, one behind the other; zeros in between. Nothing is written.
 *
 * @param base whose digest stands for the bytes of the files
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
