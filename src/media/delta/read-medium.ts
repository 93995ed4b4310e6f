import { digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
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
    const { fileSize: size, readBytes } = iso;
    return { identity: index.digest, size, extents: await listExtents(index, readBytes) };
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
