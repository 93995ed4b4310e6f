import { stat } from 'node:fs/promises';
import { digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { roundUp, SECTOR_SIZE } from '../../iso/extent.ts';
import type { IsoImage } from '../../iso/read/open.ts';
import { readIndex, type MediaIndex } from '../index/media-index.ts';
import { INDEX_PATH } from '../index/media-paths.ts';
import { identifyIso } from '../customize/identify-iso.ts';
import { useMedium } from '../open-medium.ts';
import type { DeltaExtent } from './delta-file.ts';

/** An ISO of ours, as deltas see it. */
export type Medium = {
  /** As `identifyIso` names every byte. */
  readonly identity: string;
  /** Bytes. */
  readonly size: number;
  /** All but zeros, by offset; the index too. */
  readonly extents: readonly MediumExtent[];
  /** One of them. */
  readonly index: MediumExtent;
};

/** With the files that consist of it. */
export type MediumExtent = DeltaExtent & {
  readonly paths: readonly string[];
  /** Whether another copy of the ISO may have other bytes here. */
  readonly isMutable?: boolean;
};

/** @throws IntegrityError `delta.no-index` */
export function readMedium(path: string): Promise<Medium> {
  return useMedium(path, async (iso) => {
    const index = await readIndex(iso);
    if (!index) throw noIndex(path);
    const identity = await identifyIso(index, iso.readBytes);
    if (identity === undefined) throw noIndex(path);
    const extents = await listExtents(index, iso.readBytes);
    const own = extents.find(({ paths }) => paths.includes(INDEX_PATH));
    if (!own) throw noIndex(path);
    const size = await sizeOfIso(path, iso, extents);
    return { identity, size, extents, index: own };
  });
}

async function listExtents(
  { extents }: MediaIndex,
  read: (offset: number, size: number) => Promise<Uint8Array>,
): Promise<readonly MediumExtent[]> {
  const all: MediumExtent[] = [];
  for (const { offset, size, paths, pristine, ...extent } of extents) {
    const digest = extent.digest ?? digestOf(await read(offset, size));
    all.push({ offset, size, paths, digest, isMutable: pristine !== undefined });
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
    hint: 'apply it to the ISO that it was made from; one that was customised since is another: reset it first',
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

const noIndex = (path: string): IntegrityError =>
  new IntegrityError('delta.no-index', `${path} has no index with a digest`, {
    expected: 'an ISO of sealift',
    hint: 'name an ISO that sealift made',
  });

/** Who may not read one of these may not read what is made of them: media can have secrets. */
export async function readMode(...paths: readonly string[]): Promise<number> {
  let mode = 0o644;
  for (const path of paths) mode &= (await stat(path)).mode;
  return mode | 0o600;
}
