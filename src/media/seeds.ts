import { lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf, type Digest } from '../base/digest.ts';
import { isUnreadable } from '../base/disk/disk-errors.ts';
import { isSameStamp, readStamp, type FileStamp } from '../base/disk/file-digests.ts';
import { hasFile } from '../base/disk/files.ts';
import { ConfigError, SealiftError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { openRandomAccess, type RandomAccess } from '../base/random-access.ts';
import { createLocalSource, type BlobSource } from '../base/store/blob-source.ts';
import { openIso, type Places } from '../iso/index.ts';
import type { IsoRecords } from '../outputs/file.ts';
import type { IsoReuse } from '../outputs/place.ts';
import { isElsewhere, openSource, type SourceHost } from '../outputs/read/open.ts';
import type { EarlierIso } from '../pour/index.ts';
import { pathTo } from '../registry/index.ts';
import { openImageSeed } from './image-seed.ts';
import { placesOf, readIndex, type MediaIndex } from './media-index.ts';

/** An ISO whose bytes may stay in place. */
export type ReusableIso = EarlierIso & { readonly stamp: FileStamp };

export type Reusable = {
  readonly isos: readonly ReusableIso[];
  /** Sources of blobs; readers verify each blob. */
  readonly seeds: readonly BlobSource[];
  /** Places of the bytes in the ISO that is replaced. */
  readonly places?: Places;
  readonly close: () => Promise<void>;
};

export type SeedTools = {
  readonly records?: Pick<IsoRecords, 'recall'>;
  /** Access to remote seeds; absent if all seeds are local. */
  readonly host?: SourceHost;
};

/**
 * @throws ConfigError `seed.unreadable`, `seed.unknown`; for named seeds, the errors of `openIso` and
 * `readIndex`
 */
export async function openReusable(reuse: IsoReuse, tools: SeedTools = {}): Promise<Reusable> {
  const images: RandomAccess[] = [];
  const close = async (): Promise<void> => {
    for (const image of images.splice(0)) await image.close();
  };
  try {
    return { ...(await openAll(reuse, { ...tools, images })), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openAll(
  reuse: IsoReuse,
  { records, host, images }: SeedTools & { readonly images: RandomAccess[] },
): Promise<Omit<Reusable, 'close'>> {
  const seeds: BlobSource[] = [];
  const isos: ReusableIso[] = [];
  const addIso = async (path: string, iso: OwnIso): Promise<void> => {
    const earlier = {
      path,
      stamp: iso.stamp,
      extents: listPlaces(iso),
      isRecorded: (await records?.recall(path)) !== undefined,
    };
    isos.push(earlier);
    seeds.push(sourceOfIso(earlier));
  };
  for (const path of reuse.seeds) {
    const found = await openNamed(path, images, host);
    if ('index' in found) await addIso(path, found);
    else seeds.push(found);
  }
  const { replaced, takesBlobs, keepsPlaces } = reuse;
  const iso = takesBlobs || keepsPlaces ? await readReplaced(replaced) : undefined;
  if (iso && takesBlobs) await addIso(replaced, iso);
  const places = iso && keepsPlaces ? placesOf(iso.index) : undefined;
  return { seeds, isos, ...withoutUndefined({ places }) };
}

/** Failures are ignored, because reuse only saves work. */
async function readReplaced(path: string): Promise<OwnIso | undefined> {
  if (!(await hasFile(path))) return undefined;
  try {
    return await readOwnIso(path);
  } catch (error) {
    if (error instanceof SealiftError) return undefined;
    throw error;
  }
}

const openNamed = async (
  name: string,
  images: RandomAccess[],
  host?: SourceHost,
): Promise<BlobSource | OwnIso> =>
  (isElsewhere(name) ? undefined : await openSeed(name)) ?? (await openImage(name, images, host));

async function openImage(
  name: string,
  images: RandomAccess[],
  host?: SourceHost,
): Promise<BlobSource> {
  const image =
    isElsewhere(name) && host ? await openSource(name, host) : await openRandomAccess(name);
  images.push(image);
  const seed = await openImageSeed(image);
  if (!seed) throw unknown(image.path, 'it has neither an index of sealift nor a registry');
  return seed;
}

/** Opens a folder, or an ISO of ours; undefined for an ISO that sealift did not make. */
async function openSeed(path: string): Promise<BlobSource | OwnIso | undefined> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return await openFolder(path);
    return await readOwnIso(path);
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('seed.unreadable', `seed ${path} cannot be read`, {
      cause,
      hint: 'correct --seed',
    });
  }
}

type OwnIso = {
  readonly index: MediaIndex;
  readonly stamp: FileStamp;
};

async function readOwnIso(path: string): Promise<OwnIso | undefined> {
  const stamp = await readStamp(path);
  const iso = await openIso(path);
  try {
    const index = await readIndex(iso);
    return stamp && index && { index, stamp };
  } finally {
    await iso.close();
  }
}

function listPlaces({ index, stamp }: OwnIso): EarlierIso['extents'] {
  const places = new Map<Digest, { readonly offset: number; readonly size: number }>();
  for (const { offset, size, ...extent } of index.extents) {
    const digest = extent.digest ?? extent.pristine; // verified when it is read
    if (digest !== undefined && offset + size <= stamp.size) places.set(digest, { offset, size });
  }
  return places;
}

const sourceOfIso = ({ path, stamp, extents, isRecorded }: ReusableIso): BlobSource =>
  createLocalSource(path, async ({ digest, size }) => {
    const place = extents.get(digest);
    if (place?.size !== size) return undefined;
    // A build may take hours; another file may have this name by now.
    const now = await readStamp(path);
    return now && isSameStamp(now, stamp)
      ? { path, position: place.offset, isRecorded }
      : undefined;
  });

/** Paths below the root of a registry, of a mirror or workspace of oc-mirror, and of an OCI layout. */
const LAYOUTS: readonly { readonly folder: string; readonly pathOf: (digest: Digest) => string }[] =
  [
    ...['', 'registry', 'data', 'working-dir'].map((above) => ({
      folder: join(above, 'docker/registry/v2/blobs/sha256'),
      pathOf: (digest: Digest) => join(above, pathTo.blob(digest)),
    })),
    { folder: 'blobs/sha256', pathOf: (digest) => join('blobs/sha256', hexOf(digest)) },
  ];

async function openFolder(root: string): Promise<BlobSource> {
  for (const { folder, pathOf } of LAYOUTS) {
    if (!(await isDirectory(join(root, folder)))) continue;
    return createLocalSource(root, async ({ digest, size }) => {
      const path = join(root, pathOf(digest));
      return (await isFile(path, size)) ? { path, position: 0 } : undefined;
    });
  }
  throw unknown(
    root,
    `it has none of the folders ${LAYOUTS.map(({ folder }) => folder).join(', ')}`,
  );
}

const isDirectory = async (path: string): Promise<boolean> =>
  (await lstat(path).catch(orAbsent))?.isDirectory() ?? false;

async function isFile(path: string, size: number): Promise<boolean> {
  const found = await lstat(path).catch(orAbsent);
  return found !== undefined && found.isFile() && found.size === size;
}

function orAbsent(error: unknown): undefined {
  if (isUnreadable(error)) return undefined;
  throw error;
}

const unknown = (path: string, reason: string): ConfigError =>
  new ConfigError('seed.unknown', `${path} is not a seed: ${reason}`, {
    expected: 'an ISO with a registry, the root of a registry, or an OCI layout',
    hint: 'name another seed with --seed, or omit it',
  });
