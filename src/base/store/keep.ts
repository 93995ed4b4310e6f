import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestFromHex, type Digest, isDigestHex } from '../digest.ts';
import { isUnreadable } from '../disk/disk-errors.ts';
import { digestOpenFile } from '../disk/files.ts';
import { openListed } from '../disk/open-file.ts';
import { ConfigError, isErrno } from '../errors.ts';
import { sumSizes } from '../lists.ts';
import { sharedFolders } from './shared-cache.ts';

/** A file of a cache. Bytes, and milliseconds since 1970. */
export type CachedBlob = {
  readonly digest: Digest;
  readonly path: string;
  readonly size: number;
  /** Time at which a build last took it. */
  readonly used: number;
};

/** Lists the files of a shared cache, the longest unused first. @throws ConfigError `cache.unreadable` */
export async function listCache(directory: string): Promise<readonly CachedBlob[]> {
  const { blobs } = sharedFolders(directory);
  const names = await readNames(blobs);
  const found = await Promise.all(
    names
      .filter((name) => isDigestHex(name))
      .map(async (name) => {
        const file = await readFileOf(join(blobs, name));
        return file && { ...file, digest: digestFromHex(name) };
      }),
  );
  return found
    .filter((file) => file !== undefined)
    .sort((a, b) => a.used - b.used || (a.digest < b.digest ? -1 : 1));
}

async function readNames(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('cache.unreadable', `"${folder}" cannot be read`, {
      cause,
      hint: 'name the folder that builds use with --cache',
    });
  }
}

async function readFileOf(path: string): Promise<Omit<CachedBlob, 'digest'> | undefined> {
  try {
    const { size, mtimeMs, isFile } = await lstat(path).then((found) => ({
      size: found.size,
      mtimeMs: found.mtimeMs,
      isFile: found.isFile(),
    }));
    return isFile ? { path, size, used: mtimeMs } : undefined;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Milliseconds for which a file stays after a build took it: the build may be about to read it. */
const REST_MS = 10 * 60_000;
/** Milliseconds after which a part that no build continued is removed. */
const LEFT_MS = 7 * 24 * 3_600_000;

export type Pruned = { readonly removed: readonly CachedBlob[]; readonly bytesLeft: number };

/**
 * Removes the blobs that were not used for longest until the others have at most `maxSize` bytes,
 * and parts that killed builds left a week ago. Blobs used in the last ten minutes stay.
 *
 * @param now milliseconds since 1970
 * @throws ConfigError `cache.unreadable`
 */
export async function pruneCache(directory: string, maxSize: number, now: number): Promise<Pruned> {
  const blobs = await listCache(directory);
  const removed: CachedBlob[] = [];
  let bytesLeft = sumSizes(blobs);
  for (const blob of blobs) {
    if (bytesLeft <= maxSize || blob.used > now - REST_MS) break;
    await rm(blob.path, { force: true });
    removed.push(blob);
    bytesLeft -= blob.size;
  }
  const { partial, claims } = sharedFolders(directory);
  for (const folder of [partial, claims]) {
    for (const name of await readNames(folder)) {
      const left = await readFileOf(join(folder, name));
      if (left && left.used < now - LEFT_MS) await rm(left.path, { force: true });
    }
  }
  return { removed, bytesLeft };
}

export type VerifiedCache = {
  readonly blobs: number;
  readonly bytes: number;
  /** Files whose bytes do not match their name; they are removed. */
  readonly damaged: readonly CachedBlob[];
};

/**
 * Hashes every blob and removes damaged ones: builds fetch them again.
 *
 * @throws ConfigError `cache.unreadable`; the signal's reason
 */
export async function verifyCache(
  directory: string,
  {
    signal,
    onProgress,
  }: {
    readonly signal: AbortSignal;
    readonly onProgress: (bytes: number, total?: number) => void;
  },
): Promise<VerifiedCache> {
  const blobs = await listCache(directory);
  const total = sumSizes(blobs);
  const damaged: CachedBlob[] = [];
  let bytes = 0;
  for (const blob of blobs) {
    if ((await digestListed(blob.path, signal)) !== blob.digest) {
      await rm(blob.path, { force: true });
      damaged.push(blob);
    }
    bytes += blob.size;
    onProgress(bytes, total);
  }
  return { blobs: blobs.length, bytes, damaged };
}

async function digestListed(path: string, signal: AbortSignal): Promise<Digest> {
  const file = await openListed(path);
  return digestOpenFile(file, signal).finally(() => file.close());
}
