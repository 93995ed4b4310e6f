import { type Digest, digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import { LARGEST_INDEX } from '../media-index.ts';
import {
  type DeltaExtent,
  type DeltaHead,
  LARGEST_PATCHED,
  malformedDelta,
  type Patch,
  usePatch,
} from './file.ts';

/* The extents that an old ISO lacks: which they are, where a delta has them, and their bytes. */

/** An extent that the old ISO lacks, with the position of its bytes or its patch in the delta. */
export type CarriedExtent = DeltaExtent & { readonly position: number; readonly patch?: Patch };

export type DeltaFiles = { readonly delta: RandomAccess; readonly iso: RandomAccess };

export function fail(path: string): never {
  throw malformedDelta(path, 'does not carry what its head names');
}

/**
 * The index first. Making a delta and applying it must give the same list.
 *
 * @param known digests of the old ISO
 */
export function listCarried<Extent extends DeltaExtent>(
  extents: readonly Extent[],
  index: Extent,
  known: ReadonlySet<string>,
): readonly Extent[] {
  const isNew = ({ digest }: Extent): boolean => !known.has(digest);
  const others = extents.filter(isNew).map((extent) => [extent.digest, extent] as const);
  const all = new Map([...(isNew(index) ? [[index.digest, index] as const] : []), ...others]);
  return [...all.values()];
}

export function placeCarried(
  extents: readonly DeltaExtent[],
  { patches, start }: Pick<DeltaHead, 'patches'> & { readonly start: number },
): readonly CarriedExtent[] {
  let end = start;
  return extents.map((extent, number): CarriedExtent => {
    const patch = patches.get(number);
    const position = end;
    end += (patch ?? extent).size;
    return { ...extent, position, ...(patch && { patch }) };
  });
}

/** Verified. Fits in memory: extents with a patch are small, and so is an index. */
export async function renderCarried(
  { delta, iso }: DeltaFiles,
  carried: CarriedExtent,
): Promise<Uint8Array> {
  if (isTooLarge(carried)) return fail(delta.path);
  const { position, size, digest, patch, offset } = carried;
  const stored = await delta.read(position, (patch ?? { size }).size);
  const bytes = patch
    ? usePatch(await iso.read(patch.old.offset, patch.old.size), { patch: stored, size })
    : stored;
  if (bytes && digestOf(bytes) === digest) return bytes;
  throw damaged(delta.path, { offset, digest, found: bytes && digestOf(bytes) });
}

const isTooLarge = ({ size, patch }: CarriedExtent): boolean =>
  patch ? Math.max(size, patch.old.size) > LARGEST_PATCHED : size > LARGEST_INDEX;

export const damaged = (
  path: string,
  { offset, digest, found }: { offset: number; digest: Digest; found: Digest | undefined },
): IntegrityError =>
  new IntegrityError(
    'delta.damaged',
    `the extent at byte ${offset} cannot be made from ${path} and the old ISO`,
    {
      expected: digest,
      found: found ?? 'a patch that does not apply',
      hint: 'verify the old ISO, and copy the delta again',
    },
  );
