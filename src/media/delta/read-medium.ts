import { stat } from 'node:fs/promises';
import { digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { roundUp, SECTOR_SIZE } from '../../iso/extent.ts';
import type { IsoImage } from '../../iso/open-iso.ts';
import { readIndex, type MediaIndex } from '../index/media-index.ts';
import { useMedium } from '../open-medium.ts';
import type { DeltaExtent } from './delta-file.ts';

/** An ISO of ours, as deltas see it. */
export type Medium = {
  /** Digest of the index, which names every other byte. */
  readonly identity: string;
  /** Bytes. */
  readonly size: number;
  /** All but zeros, by offset; the index too. */
  readonly extents: readonly DeltaExtent[];
};

/** @throws IntegrityError `delta.no-index` */
export function readMedium(path: string): Promise<Medium> {
  return useMedium(path, async (iso) => {
    const index = await readIndex(iso);
    if (!index?.digest) {
      throw new IntegrityError('delta.no-index', `${path} has no index with a digest`, {
        expected: 'an ISO of sealift',
        hint: 'name an ISO that sealift made',
      });
    }
    const extents = await listExtents(index, iso.readBytes);
    return { identity: index.digest, size: await sizeOfIso(path, iso, extents), extents };
  });
}

async function listExtents(
  { extents }: MediaIndex,
  read: (offset: number, size: number) => Promise<Uint8Array>,
): Promise<readonly DeltaExtent[]> {
  const all: DeltaExtent[] = [];
  for (const { offset, size, digest } of extents) {
    all.push({ offset, size, digest: digest ?? digestOf(await read(offset, size)) });
  }
  return all.sort((a, b) => a.offset - b.offset);
}

/** The refusal of a delta. */
export const otherIso = (
  path: string,
  { found, expected }: { readonly found: string; readonly expected: string },
): IntegrityError =>
  new IntegrityError('delta.other-iso', `the delta is for another ISO than ${path}`, {
    expected,
    found,
    hint: 'apply it to the ISO that it was made from',
  });

/** A device is larger than the ISO on it. The backup of a GPT may be behind the volume. */
async function sizeOfIso(
  path: string,
  { fileSize, volume }: IsoImage,
  extents: readonly DeltaExtent[],
): Promise<number> {
  if ((await stat(path)).isFile()) return fileSize;
  const last = extents.at(-1);
  const end = last ? last.offset + last.size : 0;
  return roundUp(Math.max(end, volume.volumeSpaceSize * SECTOR_SIZE), SECTOR_SIZE);
}
