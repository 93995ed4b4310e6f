import { digestOf } from '../../base/digest.ts';
import { applyParts } from '../customize/overlay.ts';
import { planPristine } from '../customize/pristine-areas.ts';
import { readIndex, type IndexExtent } from '../index/media-index.ts';
import { openDamaged, useImage, type Medium } from '../open-medium.ts';
import { writeAt, type OpenTarget, type Repair } from './copy-verified.ts';
import { unlessFailed } from './fetch-extent.ts';
import { keepOpen } from './remote-iso.ts';

/**
 * What has an area that may change, out of an ISO of the same index, with the values that it has: nothing tells what the
 * damaged ISO had there.
 */
export const repairFromSameBuild =
  (
    target: OpenTarget,
    isos: readonly Medium[],
    {
      index,
      warn,
    }: { readonly index: string | undefined; readonly warn: (message: string) => void },
  ): Repair =>
  async ({ extent }) => {
    const { offset, size } = extent;
    for (const iso of isos) {
      const bytes = await unlessFailed(warn, () => readSame(iso, index, extent));
      if (!bytes) continue;
      await writeAt(target, bytes, offset);
      return { source: typeof iso === 'string' ? iso : iso.path, read: size, written: size };
    }
    return undefined;
  };

/** Undefined where the ISO is of another build, or has other bytes outside of its areas. */
const readSame = (
  iso: Medium,
  expected: string | undefined,
  { offset, size, digest }: IndexExtent,
): Promise<Uint8Array | undefined> =>
  useImage(typeof iso === 'string' ? iso : keepOpen(iso), async (image) => {
    const files = await openDamaged(image);
    const index = await readIndex(files);
    if (expected === undefined || index?.digest !== expected) return undefined;
    const bytes = await image.read(offset, size);
    const pristine = Buffer.from(bytes);
    applyParts(pristine, offset, await planPristine(files, index.mutable ?? []));
    return digestOf(pristine) === digest ? bytes : undefined;
  });
