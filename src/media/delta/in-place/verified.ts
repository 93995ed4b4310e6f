import { IntegrityError } from '../../../base/errors.ts';
import { sumSizes } from '../../../base/lists.ts';
import type { IndexExtent } from '../../media-index.ts';
import { useImage } from '../../open.ts';
import { verifyExtents } from '../../verify-extents.ts';
import type { DeltaExtent } from '../file.ts';
import { LARGEST_MOVE, type NewIso, type InPlaceStep } from './plan.ts';

/* The verification of bytes before they overwrite the only copy of an ISO. */

type Watching = {
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
};

export async function requireVerified(
  path: string,
  extents: readonly IndexExtent[],
  { signal, onProgress }: Watching,
): Promise<void> {
  const total = sumSizes(extents);
  const [first] = await useImage(path, (image) =>
    verifyExtents(image, extents, {
      signal,
      onProgress: (bytes) => {
        onProgress(bytes, total);
      },
    }),
  );
  if (!first) return;
  const { extent, found = first.unreadable ?? '' } = first;
  throw new IntegrityError(
    'delta.damaged',
    `the bytes of ${path} at ${extent.offset} are not the expected ones`,
    {
      expected: `${extent.digest ?? ''} for ${extent.size} bytes`,
      found,
      hint: 'repair it with "sealift repair", or copy it again',
    },
  );
}

/** Verifies the carried bytes that steps read, in the delta and in the output of its patches. */
export async function requireCarried(
  carried: NewIso['carried'],
  steps: readonly InPlaceStep[],
  { signal, ...paths }: { readonly signal: AbortSignal } & Record<'delta' | 'patched', string>,
): Promise<void> {
  const read = new Set<string>();
  for (const step of steps) {
    if (step.kind !== 'write' || !('offset' in step.from)) continue;
    read.add(`${step.from.kind} ${step.from.offset}`);
  }
  const isRead = ({ in: kind, offset, size }: NewIso['carried'][number]): boolean => {
    for (let at = 0; at < size; at += LARGEST_MOVE)
      if (read.has(`${kind} ${offset + at}`)) return true;
    return false;
  };
  for (const kind of ['delta', 'patched'] as const) {
    const extents = carried.filter((extent) => extent.in === kind && isRead(extent));
    if (extents.length === 0) continue;
    await requireVerified(paths[kind], extents.map(toIndexExtent), {
      signal,
      onProgress: () => undefined,
    });
  }
}

export const toIndexExtent = ({ offset, size, digest }: DeltaExtent): IndexExtent => ({
  offset,
  size,
  digest,
  paths: [],
});
