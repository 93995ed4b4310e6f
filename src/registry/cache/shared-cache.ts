import { randomBytes } from 'node:crypto';
import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf } from '../../base/digest.ts';
import { makeDirectory, syncDirectory } from '../../base/disk/files.ts';
import { copyListedToNew } from '../../base/disk/copy-file.ts';
import { openDirectory, openOwnFile } from '../../base/disk/open-file.ts';
import { createResumableFile } from '../../base/disk/resumable-file.ts';
import { fillFile } from '../../base/download/fill-file.ts';
import { DiskError, isErrno, SealiftError } from '../../base/errors.ts';
import { sleep } from '../../base/wait.ts';
import { createLocalSource, type BlobSource } from '../blob-source.ts';
import type { Descriptor } from '../descriptor.ts';
import { describeBlob } from '../read-blob.ts';
import { createClaims, touch, type Claim, type ClaimsOptions } from './claims.ts';

/** The parts of a shared cache. */
export const sharedFolders = (directory: string) => ({
  blobs: join(directory, 'sha256'),
  partial: join(directory, 'partial'),
  claims: join(directory, 'claims'),
});

export type SharedCacheOptions = Pick<ClaimsOptions, 'lease' | 'now'> & {
  readonly directory: string;
  readonly signal: AbortSignal;
  /** Told when the folder cannot be used and registries are asked instead, and when another build is waited for. */
  readonly warn: (message: string) => void;
};

/**
 * A folder of blobs that many builds use at once, of several users and machines. Nothing in it is trusted: who reads a
 * blob verifies it, and what is wrong costs a download from elsewhere.
 */
export type SharedCache = {
  /** What is there. */
  readonly local: BlobSource;
  /**
   * A source that has every blob of others: one that is not there yet is fetched into the folder, by one of all
   * builds, and the others wait for it.
   */
  readonly over: (sources: readonly BlobSource[]) => BlobSource;
};

/** Milliseconds between two looks at a claim of another. */
const PAUSE_MS = 200;

/** Looks after which somebody may wonder why nothing happens. */
const PATIENCE = 50;

export function createSharedCache(options: SharedCacheOptions): SharedCache {
  const { directory, signal } = options;
  const folders = sharedFolders(directory);
  const pathOf = ({ digest }: Descriptor): string => join(folders.blobs, hexOf(digest));
  const take = createClaims({ folder: folders.claims, ...options });
  let isReady: Promise<unknown> | undefined;
  let hasFailed = false;

  const bring = async (
    blob: Descriptor,
    sources: readonly BlobSource[],
    onFetched?: OnFetched,
  ): Promise<void> => {
    isReady ??= Promise.all(Object.values(folders).map(makeFolder));
    await isReady;
    for (let looks = 1; !(await isFile(pathOf(blob), blob.size)); looks++) {
      const claim = await take(hexOf(blob.digest));
      if (!claim && looks === PATIENCE) {
        options.warn(
          `another build fetches ${blob.digest} into the cache "${directory}": this one waits for it, and takes over when the other gives no sign of life`,
        );
      }
      if (claim) await fetchUnder(claim, blob, { sources, folders, signal, onFetched });
      else await sleep(PAUSE_MS, signal);
    }
  };
  const find = async (blob: Descriptor, sources?: readonly BlobSource[], onFetched?: OnFetched) => {
    const path = pathOf(blob);
    try {
      if (sources && !hasFailed) await bring(blob, sources, onFetched);
      if (!(await isFile(path, blob.size))) return undefined;
    } catch (error) {
      signal.throwIfAborted();
      // The registries themselves say why they do not give a blob.
      if (error instanceof SealiftError && !(error instanceof DiskError)) return undefined;
      if (!hasFailed) options.warn(`the cache "${directory}" is not used: ${messageOf(error)}`);
      hasFailed = true;
      return undefined;
    }
    await touch(path).catch(() => undefined); // of another owner: it counts as older
    return { path, position: 0, isListed: true };
  };
  return {
    local: createLocalSource(directory, (blob) => find(blob)),
    over: (sources) =>
      createLocalSource(directory, (blob, onFetched) => find(blob, sources, onFetched)),
  };
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

type OnFetched = (size: number) => void;

type Fetching = {
  readonly sources: readonly BlobSource[];
  readonly folders: ReturnType<typeof sharedFolders>;
  readonly signal: AbortSignal;
  readonly onFetched: OnFetched | undefined;
};

/** Builds on what those before left: copied, for an owner that is not dead yet may still write to its file. */
async function fetchUnder(claim: Claim, blob: Descriptor, fetching: Fetching): Promise<void> {
  const { folders, sources, signal, onFetched } = fetching;
  const hex = hexOf(blob.digest);
  const target = join(folders.blobs, hex);
  try {
    if (await isFile(target, blob.size)) return;
    await rm(target, { force: true });
    const left = await listLeft(folders.partial, hex);
    const own = join(folders.partial, `${hex}.${randomBytes(8).toString('hex')}`);
    await inherit(left, own, { size: blob.size, signal });
    const file = await openOwnFile(own);
    try {
      await file.chmod(0o644); // whoever comes next may be another user
      for (const { path } of left) await rm(path, { force: true }).catch(() => undefined); // of another owner
      const prefix = (await file.stat()).size;
      const wanted = describeBlob(blob);
      let here = prefix;
      const onProgress = (bytes: number): void => {
        onFetched?.(Math.max(0, bytes - here));
        here = bytes;
      };
      const given = { sources, wanted, prefix, signal, cutsOff: true, onProgress };
      await fillFile(createResumableFile(file), given);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(own, target);
    await syncDirectory(folders.blobs);
  } finally {
    await claim.release();
  }
}

/** Makes a folder of a cache. What others put there in its place could lead anywhere. */
async function makeFolder(path: string): Promise<void> {
  await makeDirectory(path);
  await (await openDirectory(path)).close();
}

type Left = { readonly path: string; readonly size: number };

/** Begins a new file with the first of these that can be read. One that cannot costs nothing. */
async function inherit(
  left: readonly Left[],
  own: string,
  { size, signal }: { readonly size: number; readonly signal: AbortSignal },
): Promise<void> {
  for (const one of left) {
    if (one.size === 0) continue;
    try {
      await copyListedToNew(one.path, own, { limit: size, signal });
      return;
    } catch {
      signal.throwIfAborted();
      await rm(own, { force: true });
    }
  }
}

/** What is left of a blob, the largest file first; what is not a file has no size. */
async function listLeft(folder: string, hex: string): Promise<readonly Left[]> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(`${hex}.`));
  const sized = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      const found = await lstat(path).catch(() => undefined); // removed meanwhile
      return { path, size: found?.isFile() === true ? found.size : 0 };
    }),
  );
  return sized.sort((a, b) => b.size - a.size);
}

async function isFile(path: string, size: number): Promise<boolean> {
  try {
    const found = await lstat(path);
    return found.isFile() && found.size === size;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}
