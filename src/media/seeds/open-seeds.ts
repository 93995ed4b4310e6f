import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf, type Digest } from '../../base/digest.ts';
import { ConfigError, isErrno, SealiftError } from '../../base/errors.ts';
import { isSameStamp, readStamp, type FileStamp } from '../../base/disk/file-input.ts';
import { hasFile } from '../../base/disk/files.ts';
import { openListed } from '../../base/disk/open-file.ts';
import type { BlobSource } from '../../registry/blob-source.ts';
import { pathTo } from '../../registry/layout/distribution-layout.ts';
import { openIso } from '../../iso/open-iso.ts';
import type { Places } from '../../iso/places/places.ts';
import { placesOf, readIndex, type MediaIndex } from '../index/media-index.ts';
import { withoutUndefined } from '../../base/members.ts';

/** What a build may take over from files of this machine. Absolute paths. */
export type IsoReuse = {
  /** What somebody named: an ISO of ours, the root of a registry, an OCI layout. */
  readonly seeds: readonly string[];
  /** The ISO that is replaced: no error where there is none, or none of ours that can be read. */
  readonly replaced: string;
  readonly takesBlobs: boolean;
  readonly keepsPlaces: boolean;
  /** Whether what an earlier build wrote down of a file stands for its bytes while its inode says the same. */
  readonly trustsRecords: boolean;
};

export type Reusable = {
  /** Nothing in them is trusted: who reads a blob verifies it. */
  readonly seeds: readonly BlobSource[];
  /** Where the ISO that is replaced has its bytes. */
  readonly places?: Places;
};

/** @throws ConfigError `seed.unreadable`, `seed.unknown`; what `openIso` and `readIndex` throw of what was named */
export async function openReusable(reuse: IsoReuse): Promise<Reusable> {
  const seeds: BlobSource[] = [];
  for (const path of reuse.seeds) seeds.push(await openSeed(path));
  const { replaced, takesBlobs, keepsPlaces } = reuse;
  const iso = takesBlobs || keepsPlaces ? await readReplaced(replaced) : undefined;
  if (iso && takesBlobs) seeds.push(sourceOfIso(replaced, iso));
  const places = iso && keepsPlaces ? placesOf(iso.index) : undefined;
  return { seeds, ...withoutUndefined({ places }) };
}

/** It saves work, and is never needed. */
async function readReplaced(path: string): Promise<OwnIso | undefined> {
  if (!(await hasFile(path))) return undefined;
  try {
    return await readOwnIso(path);
  } catch (error) {
    if (error instanceof SealiftError) return undefined;
    throw error;
  }
}

async function openSeed(path: string): Promise<BlobSource> {
  try {
    const found = await lstat(path);
    if (found.isDirectory()) return await openFolder(path);
    const iso = await readOwnIso(path);
    if (!iso) throw unknown(path, 'it has no index of ours');
    return sourceOfIso(path, iso);
  } catch (cause) {
    if (!isErrno(cause, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP')) throw cause;
    throw new ConfigError('seed.unreadable', `seed ${path} cannot be read`, {
      cause,
      hint: 'correct --seed',
    });
  }
}

const sourceOf = (path: string, find: NonNullable<BlobSource['fileOf']>): BlobSource => ({
  name: path,
  local: true,
  fileOf: find,
  async open(blob, { offset }) {
    const found = await find(blob);
    if (!found) return undefined;
    const file = await openListed(found.path);
    const start = found.position + offset;
    const body = file.createReadStream({ start, end: found.position + blob.size - 1 });
    return { offset, body };
  },
});

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

function sourceOfIso(path: string, { index, stamp }: OwnIso): BlobSource {
  const places = new Map<Digest, { readonly offset: number; readonly size: number }>();
  for (const { digest, offset, size } of index.extents) {
    if (digest !== undefined && offset + size <= stamp.size) places.set(digest, { offset, size });
  }
  return sourceOf(path, async ({ digest, size }) => {
    const place = places.get(digest);
    if (place?.size !== size) return undefined;
    // The build may take hours: another file may have its name by now.
    const now = await readStamp(path);
    return now && isSameStamp(now, stamp) ? { path, position: place.offset } : undefined;
  });
}

/** Below the root of a registry, a mirror or a workspace of oc-mirror; and of an OCI layout. */
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
    return sourceOf(root, async ({ digest, size }) => {
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
  if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return undefined;
  throw error;
}

const unknown = (path: string, reason: string): ConfigError =>
  new ConfigError('seed.unknown', `${path} is not a seed: ${reason}`, {
    expected: 'an ISO of sealift, the root of a registry, or an OCI layout',
    hint: 'name another --seed, or none',
  });
