import { digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { openRandomAccess, type ByteRange } from '../../base/random-access.ts';
import type { Patch } from './delta-file.ts';
import { LARGEST_PATCHED, makePatch, MOST_PATCHED } from './patch.ts';
import type { Medium, MediumExtent } from './read-medium.ts';

export type MadePatch = Patch & { readonly bytes: Uint8Array };

/** Smaller ones are links and the like: a row in the head of the delta costs as much. */
const SMALLEST_PATCHED = 256;

/**
 * Patches for those of the carried extents that the old ISO has with other content, by their number: files by
 * their path, structures by their place. Layers have their digest in their path, and are never patched.
 *
 * @throws IntegrityError `extent.wrong-digest` where the new ISO is damaged
 */
export async function makePatches({
  from,
  to,
  old,
  carried,
  most = MOST_PATCHED,
}: {
  readonly from: string;
  readonly to: string;
  readonly old: Medium;
  readonly carried: readonly MediumExtent[];
  /** Bytes that they make together. */
  readonly most?: number;
}): Promise<ReadonlyMap<number, MadePatch>> {
  const [oldFile, file] = [await openRandomAccess(from), await openRandomAccess(to)];
  const findEarlier = createLookup(old.extents);
  const patches = new Map<number, MadePatch>();
  let made = 0;
  try {
    for (const [number, extent] of carried.entries()) {
      const earlier = canPatch(extent) ? findEarlier(extent) : undefined;
      if (!earlier || !canPatch(earlier) || made + extent.size > most) continue;
      const { offset, size, digest } = extent;
      const bytes = await file.read(offset, size);
      const found = digestOf(bytes);
      if (found !== digest) throw wrong(to, { offset, digest, found });
      const patch = makePatch(await oldFile.read(earlier.offset, earlier.size), bytes);
      const range = { offset: earlier.offset, size: earlier.size };
      if (!patch) continue;
      patches.set(number, { old: range, size: patch.length, bytes: patch });
      made += size;
    }
    return patches;
  } finally {
    await oldFile.close();
    await file.close();
  }
}

const canPatch = ({ size }: ByteRange): boolean =>
  size >= SMALLEST_PATCHED && size <= LARGEST_PATCHED;

type Lookup = (extent: MediumExtent) => MediumExtent | undefined;

/** A structure may have moved a little. */
function createLookup(extents: readonly MediumExtent[]): Lookup {
  const byPath = new Map(extents.flatMap((extent) => extent.paths.map((path) => [path, extent])));
  const structures = extents.filter(({ paths }) => paths.length === 0);
  return ({ paths: [path], offset }) => {
    if (path !== undefined) return byPath.get(path);
    let best: MediumExtent | undefined;
    const distanceOf = (extent: MediumExtent): number => Math.abs(extent.offset - offset);
    for (const each of structures) if (!best || distanceOf(each) < distanceOf(best)) best = each;
    return best;
  };
}

const wrong = (
  path: string,
  { offset, digest, found }: { offset: number; digest: string; found: string },
): IntegrityError =>
  new IntegrityError(
    'extent.wrong-digest',
    `${path} has other bytes at ${offset} than its index says`,
    {
      expected: digest,
      found,
      hint: 'verify it, and build or copy it again',
    },
  );
