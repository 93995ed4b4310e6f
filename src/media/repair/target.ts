import { digestOf, type Digest } from '../../base/digest.ts';
import { explaining } from '../../base/disk/disk-errors.ts';
import { DifferenceError, SealiftError } from '../../base/errors.ts';
import type { ByteRange, RandomAccess } from '../../base/random-access.ts';
import { createLocalSource, type BlobSource } from '../../base/store/blob-source.ts';
import {
  decodeVolumeDescriptor,
  type Extent,
  fillGaps,
  SECTOR_SIZE,
  type VolumeDescriptor,
} from '../../iso/index.ts';
import { readReport } from '../../outputs/file/claim.ts';
import { namesBeside } from '../../outputs/place.ts';
import { digestLayout } from '../../pour/index.ts';
import { applyParts } from '../areas.ts';
import {
  decodeMediaIndex,
  readIndex,
  type IndexExtent,
  type MediaIndex,
  INDEX_PATH,
} from '../media-index.ts';
import { planContents } from '../area-values.ts';
import { readAreas } from '../medium.ts';
import { describeDamage, openDamaged, useImage, useMedium, type IsoSource } from '../open.ts';
import {
  copyVerified,
  readPiece,
  type OpenTarget,
  type Repair,
  type RunReader,
  unlessFailed,
  writeAt,
} from './fetch.ts';

/* The expected contents of a damaged ISO, and other ISOs as sources of its bytes. */

export type Target = {
  readonly index: MediaIndex;
  /** Extents of the index; includes the index with its digest if the other ISO has it. */
  readonly extents: readonly IndexExtent[];
  /** Source of the index, if the ISO's own is lost. */
  readonly indexSource?: BlobSource;
};

type OtherIso = Target & {
  readonly own: IndexExtent;
  readonly layout: Digest;
};

/**
 * If the ISO's own index is damaged, an ISO among the sources with the same layout is used; the rest of the
 * own index or the report next to the ISO identifies that layout.
 */
export async function readTarget(path: string, sources: readonly IsoSource[]): Promise<Target> {
  const own = await unlessDamaged(() => readOwnIndex(path));
  if (own) return { index: own, extents: own.extents };
  const report = await readReport(namesBeside(path).report);
  for (const source of sources) {
    const other = await unlessDamaged(() => readOther(source));
    const target = other && (await identify(path, other, report?.layout));
    if (target) return target;
  }
  throw new DifferenceError('repair.no-index', `the index of ${path} is damaged`, {
    expected: 'a source of the same layout',
    found: `${sources.length} ISOs, none of them known to have that layout`,
    hint: 'name an ISO of the same build with --from, and put the report of the build next to the damaged ISO',
  });
}

/** By the damaged ISO's index if only the path to it is lost, else by the other's. */
async function identify(
  path: string,
  other: OtherIso,
  layout: unknown,
): Promise<Target | undefined> {
  const rest = await unlessDamaged(() => readRange(path, other.own));
  const found = rest && (await unlessDamaged(() => Promise.resolve(decodeMediaIndex(rest))));
  if (found && !found.damage && found.index.digest !== undefined) {
    return { index: found.index, extents: found.index.extents };
  }
  return layout === other.layout || nameDigest(rest) === other.index.digest ? other : undefined;
}

/** Undefined unless the index is valid to the last byte. */
const readOwnIndex = (path: string): Promise<MediaIndex | undefined> =>
  useImage(path, async (image) => {
    const index = await readIndex(await openDamaged(image));
    return index?.digest === undefined ? undefined : index;
  });

const readOther = (medium: IsoSource): Promise<OtherIso | undefined> =>
  useMedium(medium, async ({ find, readFile, readBytes, fileSize }) => {
    const index = await readIndex({ find, readFile });
    const own = index?.extents.find(({ paths }) => paths.includes(INDEX_PATH));
    if (!index?.digest || !own) return undefined;
    const digest = digestOf(await readBytes(own.offset, own.size));
    const extents = index.extents
      .map((extent) => (extent === own ? { ...extent, digest } : extent))
      .sort((a, b) => a.offset - b.offset);
    const stored: Extent[] = [];
    for (const { offset, size, paths, ...extent } of extents) {
      const digest = extent.digest ?? digestOf(await readBytes(offset, size));
      stored.push({ offset, size, paths, digest, source: { kind: 'blob' } });
    }
    const path = typeof medium === 'string' ? medium : medium.path;
    const place = { path, position: own.offset };
    const indexSource = createLocalSource(path, (blob) =>
      Promise.resolve(blob.digest === digest && typeof medium === 'string' ? place : undefined),
    );
    const layout = digestLayout({ size: fileSize, extents: fillGaps(stored, fileSize) });
    return { index, extents, own, layout, indexSource };
  });

const readRange = (path: string, { offset, size }: IndexExtent): Promise<Uint8Array> =>
  useImage(path, ({ read }) => read(offset, size));

/** Works even if the rest of the index is damaged. */
const nameDigest = (bytes: Uint8Array | undefined): string | undefined =>
  /\n {2}"digest": "(sha256:[0-9a-f]{64})",\n/.exec(
    Buffer.from(bytes ?? []).toString('latin1'),
  )?.[1];

async function unlessDamaged<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (describeDamage(error) === undefined && !(error instanceof SealiftError)) throw error;
    return undefined;
  }
}

/** An ISO of ours that is read by ranges, with the places of its bytes. */
export type RemoteIso = {
  readonly access: RandomAccess;
  readonly places: ReadonlyMap<Digest, ByteRange>;
};

/** For functions that close the access they are given. */
export const keepOpen = (access: RandomAccess): RandomAccess => ({
  ...access,
  close: () => Promise.resolve(),
});

/** The access stays open. */
export function readRemoteIso(access: RandomAccess): Promise<RemoteIso> {
  return useMedium(keepOpen(access), async (iso) => {
    const places = new Map<Digest, ByteRange>();
    for (const { offset, size, ...extent } of (await readIndex(iso))?.extents ?? []) {
      const digest = extent.digest ?? extent.pristine; // verified when it is read
      places.set(digest ?? digestOf(await iso.readBytes(offset, size)), { offset, size });
    }
    return { access, places };
  });
}

/** Repairs from remote ISOs. Whole extents are read, because only the whole has a digest. */
export const repairFromRemote =
  (
    target: OpenTarget,
    isos: readonly RemoteIso[],
    { signal, warn }: { readonly signal: AbortSignal; readonly warn: (message: string) => void },
  ): Repair =>
  async ({ extent: { offset, size, digest } }) => {
    if (digest === undefined) return undefined;
    for (const { access, places } of isos) {
      const place = places.get(digest);
      if (place?.size !== size) continue;
      const read: RunReader = async (piece, at) => {
        await access.read(place.offset + at, piece.length, piece);
        return true;
      };
      const copied = await unlessFailed(warn, () =>
        copyVerified(target, { offset, size, digest }, { read, signal }),
      );
      if (copied) return { source: access.path, ...copied };
    }
    return undefined;
  };

/** From an ISO with the same index, including its values: the damaged ISO's own values are unknown. */
export const repairFromSameBuild =
  (
    target: OpenTarget,
    isos: readonly IsoSource[],
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

/** Undefined if the ISO is of another build, or differs outside its mutable areas. */
const readSame = (
  iso: IsoSource,
  expected: string | undefined,
  { offset, size, digest }: IndexExtent,
): Promise<Uint8Array | undefined> =>
  useImage(typeof iso === 'string' ? iso : keepOpen(iso), async (image) => {
    const files = await openDamaged(image);
    const index = await readIndex(files);
    if (expected === undefined || index?.digest !== expected) return undefined;
    const bytes = await image.read(offset, size);
    const pristine = Buffer.from(bytes);
    const areas = index.mutable && (await readAreas(files, { index }));
    if (areas?.bare) applyParts(pristine, offset, planContents(areas, areas.bare, 'bare'));
    return digestOf(pristine) === digest ? bytes : undefined;
  });

/** The volume descriptor holds the number of sectors (ECMA-119 8.4); missing bytes at the end are zeros. */
export async function completeSize({ path, file }: OpenTarget): Promise<void> {
  const sector = Buffer.alloc(SECTOR_SIZE);
  if (!(await readPiece(file, sector, 16 * SECTOR_SIZE))) return;
  const stats = await file.stat();
  const descriptor = readDescriptor(sector);
  if (!stats.isFile() || descriptor?.kind !== 'primary') return;
  const size = descriptor.volume.volumeSpaceSize * SECTOR_SIZE;
  if (stats.size < size) await explaining(path, () => file.truncate(size));
}

function readDescriptor(sector: Uint8Array): VolumeDescriptor | undefined {
  try {
    return decodeVolumeDescriptor(sector);
  } catch (error) {
    if (error instanceof SealiftError) return undefined; // no source had the sector
    throw error;
  }
}
