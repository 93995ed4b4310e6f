import { stat } from 'node:fs/promises';
import { digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { sumSizes } from '../../base/lists.ts';
import { openRandomAccess } from '../../base/random-access.ts';
import { type IsoImage, largestIsoOf, roundUp, SECTOR_SIZE } from '../../iso/index.ts';
import { identifyIso, overlayAccess, type OverlayPart, overlayRead } from '../areas.ts';
import { readIndex, type MediaIndex, INDEX_PATH, parseMediaIndex } from '../media-index.ts';
import { planContents } from '../area-values.ts';
import { type MediumAreas, readAreas } from '../medium.ts';
import { refuseHalfCustomised } from '../customize/write.ts';
import { type IsoSource, useImage } from '../open.ts';
import { openGivenIso } from './describe.ts';
import { noIndex } from '../proof.ts';
import {
  type CarriedExtent,
  damaged,
  type DeltaFiles,
  fail,
  listCarried,
  placeCarried,
  renderCarried,
} from './carried.ts';
import { formatIsoName, nameIso, type IsoName } from './name.ts';
import {
  type DeltaExtent,
  malformedDelta,
  readDeltaHead,
  type DeltaHead,
  mostPatched,
} from './file.ts';

/* The two inputs of applying a delta: an ISO of ours, and a delta that is matched to it. */

/** An ISO of ours, as deltas use it. */
export type DeltaIso = {
  /** Digest of every byte, from `identifyIso`. */
  readonly identity: string;
  /** The same digest as the build left the ISO, and the bytes that restore it, if the ISO still carries them. */
  readonly built: { readonly identity: string; readonly parts: readonly OverlayPart[] } | undefined;
  readonly name: IsoName;
  /** Bytes. */
  readonly size: number;
  /** Extents by offset, including the index; the rest is zeros. */
  readonly extents: readonly DeltaIsoExtent[];
  /** Extent of the index; also in `extents`. */
  readonly index: DeltaIsoExtent;
};

/** Extent with the files that contain it. */
export type DeltaIsoExtent = DeltaExtent & {
  readonly paths: readonly string[];
  /** True if another copy of the ISO may have other bytes here. */
  readonly isMutable?: boolean;
};

/** A delta that has been matched to the old ISO. */
export type Delta = {
  /** Size of the new ISO in bytes. */
  readonly size: number;
  /** Extents of the new ISO by offset; the rest is zeros. */
  readonly extents: readonly DeltaExtent[];
  readonly carried: readonly CarriedExtent[];
};

export function readDeltaIso(medium: IsoSource): Promise<DeltaIso> {
  return useImage(medium, async (image) => {
    if (typeof medium === 'string') await refuseHalfCustomised(image);
    const { path } = image;
    const iso = await openGivenIso(image);
    const index = await readIndex(iso);
    if (!index) throw await noIndex(iso, 'delta.no-index');
    const identity = await identifyIso(index, iso.readBytes);
    if (identity === undefined) throw await noIndex(iso, 'delta.no-index');
    const areas = index.mutable?.length ? await readAreas(iso, { index }) : undefined;
    const built = await identifyBuilt(iso, index, areas);
    const extents = await listExtents(index, iso, areas);
    const own = extents.find(({ paths }) => paths.includes(INDEX_PATH));
    if (!own) throw await noIndex(iso, 'delta.no-index');
    const size = await sizeOfIso(path, iso, extents);
    const name = await nameIso(index, iso);
    return { identity, built, name, size, extents, index: own };
  });
}

/** As the ISO is now, if it no longer carries what its build left. */
export const readDeltaIsoAsBuilt = async (path: string, { built }: DeltaIso): Promise<DeltaIso> =>
  readDeltaIso(overlayAccess(await openRandomAccess(path), built?.parts ?? []));

/** Undefined if the ISO no longer carries what its build left. */
async function identifyBuilt(
  iso: IsoImage,
  index: MediaIndex,
  areas: MediumAreas | undefined,
): Promise<DeltaIso['built']> {
  if (!areas?.built) return undefined;
  const parts = planContents(areas, areas.built, 'built');
  const identity = await identifyIso(index, overlayRead(iso.readBytes, parts));
  return identity === undefined ? undefined : { identity, parts };
}

async function listExtents(
  { extents }: MediaIndex,
  { path, readBytes: read }: IsoImage,
  areas: MediumAreas | undefined,
): Promise<readonly DeltaIsoExtent[]> {
  const readBare = areas?.bare && overlayRead(read, planContents(areas, areas.bare, 'bare'));
  const all: DeltaIsoExtent[] = [];
  for (const { offset, size, paths, pristine, ...extent } of extents) {
    const digest = extent.digest ?? digestOf(await read(offset, size));
    const found = pristine && readBare && digestOf(await readBare(offset, size));
    if (found !== undefined && found !== pristine)
      throw damaged(path, { offset, digest: pristine ?? digest, found });
    all.push({ offset, size, paths, digest, isMutable: pristine !== undefined });
  }
  return all.sort((a, b) => a.offset - b.offset);
}

/** A device is larger than the ISO on it. The backup of a GPT may be after the volume. */
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

export async function openDelta(
  { delta: file, iso }: DeltaFiles,
  old: DeltaIso,
): Promise<Delta & { readonly head: DeltaHead }> {
  const head = await readDeltaHead(file);
  const { from, size, index, mutable = [], patches } = head;
  if (old.identity !== from) throw refuseIso(iso.path, old, head);
  const known = new Map(old.extents.map((extent) => [extent.digest, extent]));
  const areas = [...old.extents.filter(({ isMutable }) => isMutable), ...mutable];
  const changing = new Map(areas.map(({ offset, digest }) => [offset, digest]));
  const place = known.get(index.digest);
  const bytes = place
    ? await iso.read(place.offset, place.size)
    : await renderCarried({ delta: file, iso }, placeCarried([index], head)[0] ?? fail(file.path));
  const extents = parseMediaIndex(bytes)
    .extents.map(({ offset, size, digest = changing.get(offset) ?? index.digest }) => ({
      offset,
      size,
      digest,
    }))
    .sort((a, b) => a.offset - b.offset);
  if (!isConsistent({ size, extents }, [...old.extents, index])) return fail(file.path);
  const carried = placeCarried(listCarried(extents, index, new Set(known.keys())), head);
  const isWhole = sumSizes(carried.map(({ patch, size }) => patch ?? { size })) === head.bodySize;
  const numbers = [...patches.keys()];
  requireModest(file.path, { old, size, carried });
  if (!isWhole || numbers.some((number) => number >= carried.length)) return fail(file.path);
  return { size, extents, carried, head };
}

/** Requires that a delta makes as much as it and the old ISO give, before a byte of it is made. */
function requireModest(
  path: string,
  { old, size, carried }: Pick<Delta, 'size' | 'carried'> & { readonly old: DeltaIso },
): void {
  const patched = carried.filter(({ patch }) => patch);
  const most = mostPatched(sumSizes(patched.map(({ patch }) => patch ?? { size: 0 })));
  if (sumSizes(patched) > most) {
    throw malformedDelta(path, `has patches that make more than ${most} bytes`);
  }
  const given = old.size + sumSizes(carried);
  if (size > largestIsoOf(given)) {
    throw malformedDelta(path, `makes an ISO of ${size} bytes from ${given} bytes`);
  }
}

/** The extents are inside the ISO, and no digest has two sizes: a writer would wait for missing bytes. */
function isConsistent(
  { size, extents }: Pick<Delta, 'size' | 'extents'>,
  others: readonly DeltaExtent[],
): boolean {
  const all = [...others, ...extents];
  const sizes = new Map(all.map((extent) => [extent.digest, extent.size]));
  return (
    extents.every((extent) => extent.offset + extent.size <= size) &&
    all.every((extent) => sizes.get(extent.digest) === extent.size)
  );
}

function refuseIso(path: string, old: DeltaIso, { from, index, names }: DeltaHead): IntegrityError {
  const name = formatIsoName(old.name);
  const wanted = names && formatIsoName(names.from);
  const refuse = (message: string, hint: string): IntegrityError =>
    new IntegrityError('delta.other-iso', message, {
      expected: wanted === undefined ? from : `${wanted}, ${from}`,
      found: `${name}, ${old.identity}`,
      hint,
    });
  if (old.index.digest === index.digest) {
    return refuse(
      `${path} is already the ISO that the delta makes: ${name}`,
      'apply the delta to the ISO that it was made from',
    );
  }
  const others = wanted === name ? ` with other contents` : '';
  return refuse(
    wanted === undefined
      ? `the delta was not made for ${path}, which is ${name}`
      : `the delta is for ${wanted}, but ${path} is ${name}${others}`,
    'apply it to the ISO that it was made from',
  );
}

/** Permissions that all files have: a user who cannot read one of them cannot read the result. */
export async function readMode(...paths: readonly string[]): Promise<number> {
  let mode = 0o644;
  for (const path of paths) mode &= (await stat(path)).mode;
  return mode | 0o600;
}
