import { randomBytes } from 'node:crypto';
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf } from '../digest.ts';
import { copyListedToNew } from '../disk/copy.ts';
import { makeDirectory, syncDirectory } from '../disk/files.ts';
import { openDirectory, openOwnFile } from '../disk/open-file.ts';
import { publishFile } from '../disk/publish.ts';
import { createWatch, touch, tryLease, type Lease } from '../disk/succession.ts';
import { createResumableFile, fillFile } from '../download/fill-file.ts';
import { DiskError, isErrno, SealiftError } from '../errors.ts';
import { withoutUndefined } from '../lists.ts';
import { DEFAULT_RETRY_FOR, RUNNING_CLOCK } from '../retry.ts';
import { formatDuration } from '../text/words.ts';
import { sleep } from '../wait.ts';
import { type BlobSource, type Content, createLocalSource, describeBlob } from './blob-source.ts';

/* Owns the folder of blobs that many builds share. */

export const sharedFolders = (directory: string) => ({
  blobs: join(directory, 'sha256'),
  partial: join(directory, 'partial'),
  claims: join(directory, 'claims'),
});

export type SharedCacheOptions = {
  readonly directory: string;
  readonly signal: AbortSignal;
  /** Called when registries are asked instead of the folder, and when another build is waited for. */
  readonly warn: (message: string) => void;
  /** Milliseconds that another build may hold a claim; default: as hosts are waited for. */
  readonly retryFor?: number;
  /** Milliseconds of this process that never go back. */
  readonly now?: () => number;
};

/**
 * A folder of blobs that many builds use at once, of several users and machines. Nothing in it is
 * trusted: the reader of a blob verifies it, and a wrong blob costs a download from elsewhere.
 */
export type SharedCache = {
  readonly local: BlobSource;
  /** Has every blob of `sources`: one build fetches a missing blob into the folder, others wait for it. */
  readonly over: (sources: readonly BlobSource[]) => BlobSource;
};

/** Milliseconds between two looks at another build's lease. */
const PAUSE_MS = 200;

/** Number of looks after which the user is told what the build waits for. */
const PATIENCE = 50;

export function createSharedCache(options: SharedCacheOptions): SharedCache {
  const { directory, signal } = options;
  const folders = sharedFolders(directory);
  const pathOf = ({ digest }: Content): string => join(folders.blobs, hexOf(digest));
  const watch = createWatch(withoutUndefined({ now: options.now }));
  let isReady: Promise<unknown> | undefined;
  let hasFailed = false;
  const begin = createPatience(options);

  const bring = async (
    blob: Content,
    sources: readonly BlobSource[],
    onFetched?: OnFetched,
  ): Promise<void> => {
    isReady ??= Promise.all(Object.values(folders).map(makeFolder));
    await isReady;
    const fetching = { sources, folders, signal, onFetched };
    const claim = join(folders.claims, hexOf(blob.digest));
    const isPatient = begin(blob, claim);
    while (!(await isFile(pathOf(blob), blob.size))) {
      const lease = await tryLease(claim, watch);
      if ('release' in lease) await fetchUnder(lease, blob, fetching);
      else if (isPatient()) await sleep(PAUSE_MS, signal);
      else await fetchInto(blob, [], fetching);
    }
  };
  const find = async (blob: Content, sources?: readonly BlobSource[], onFetched?: OnFetched) => {
    const path = pathOf(blob);
    try {
      if (sources && !hasFailed) await bring(blob, sources, onFetched);
      if (!(await isFile(path, blob.size))) return undefined;
    } catch (error) {
      signal.throwIfAborted();
      // The registries themselves explain why they do not give a blob.
      if (error instanceof SealiftError && !(error instanceof DiskError)) return undefined;
      if (!hasFailed) options.warn(`the cache "${directory}" is not used: ${messageOf(error)}`);
      hasFailed = true;
      return undefined;
    }
    await touch(path).catch(() => undefined); // a file of another user: it counts as older
    return { path, position: 0, isListed: true };
  };
  return {
    local: createLocalSource(directory, (blob) => find(blob)),
    over: (sources) =>
      createLocalSource(directory, (blob, onFetched) => find(blob, sources, onFetched)),
  };
}

/**
 * Measures how long claims are waited for. A process that keeps one claim for too long may keep
 * them all: from then on, no claim is waited for.
 *
 * @returns begins the wait for a claim; its result is true as long as the claim is waited for
 */
function createPatience({
  directory,
  warn,
  retryFor = DEFAULT_RETRY_FOR,
  now = RUNNING_CLOCK,
}: SharedCacheOptions) {
  let isOver = false;
  return ({ digest }: Content, claim: string) => {
    const since = now();
    let looks = 0;
    return (): boolean => {
      looks += 1;
      if (isOver) return false;
      isOver = now() - since >= retryFor;
      if (isOver) {
        warn(
          `"${claim}" has been held for ${formatDuration(retryFor)} without its blob: from now on, this build also fetches what other builds claim`,
        );
      } else if (looks === PATIENCE) {
        warn(
          `another build is fetching ${digest} into the cache "${directory}": this build waits for it, and takes over if the other one stops`,
        );
      }
      return !isOver;
    };
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

/** Builds on copies of the parts that earlier builds left: an owner that still lives may write to them. */
async function fetchUnder(lease: Lease, blob: Content, fetching: Fetching): Promise<void> {
  try {
    const left = await listLeft(fetching.folders.partial, hexOf(blob.digest));
    await fetchInto(blob, left, fetching);
  } finally {
    await lease.release();
  }
}

/** @param left parts whose owners have ended; they are removed */
async function fetchInto(
  blob: Content,
  left: readonly Left[],
  { folders, sources, signal, onFetched }: Fetching,
): Promise<void> {
  const hex = hexOf(blob.digest);
  const target = join(folders.blobs, hex);
  if (await isFile(target, blob.size)) return;
  await rm(target, { force: true });
  const own = join(folders.partial, `${hex}.${randomBytes(8).toString('hex')}`);
  await inherit(left, own, { size: blob.size, signal });
  const file = await openOwnFile(own);
  try {
    await file.chmod(0o644); // the next process may belong to another user
    for (const { path } of left) await rm(path, { force: true }).catch(() => undefined); // from another owner
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
    await publishFile(file, own, target);
  } finally {
    await file.close();
  }
  await syncDirectory(folders.blobs);
}

/** Makes a folder of a cache. A link that others put there in its place could lead anywhere. */
async function makeFolder(path: string): Promise<void> {
  await makeDirectory(path);
  await (await openDirectory(path)).close();
}

type Left = { readonly path: string; readonly size: number };

/** Begins a new file with the first part that can be read. A part that cannot be read costs nothing. */
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

/** Remains of a blob, the largest file first; an entry that is not a file has no size. */
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
