import { randomBytes } from 'node:crypto';
import { readFile, rm, stat, lstat, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { digestOf, hexOf, type Digest } from '../digest.ts';
import { copyListedToNew } from '../disk/copy.ts';
import { explainDiskFailure } from '../disk/disk-errors.ts';
import {
  digestFile,
  hasFile,
  makeDirectory,
  syncDirectory,
  writeFileAtomic,
} from '../disk/files.ts';
import { openToRead, openDirectory, openOwnFile } from '../disk/open-file.ts';
import { publishFile } from '../disk/publish.ts';
import { createWatch, touch, tryLease, type Lease } from '../disk/succession.ts';
import { createResumableFile, fillFile, type FillOptions } from '../download/fill-file.ts';
import { IntegrityError, isErrno, DiskError, SealiftError } from '../errors.ts';
import { untilAborted, sleep } from '../wait.ts';
import { type BlobSource, type Content, describeBlob, createLocalSource } from './blob-source.ts';
import { claimPartial, releasePartial, type Partial } from './partial.ts';

/*
 * Owns blobs on disk by their digest: the cache of one work directory, and the folder that many
 * builds share.
 */

export type EnsureOptions = Pick<FillOptions<BlobSource>, 'signal' | 'onProgress' | 'bodyTime'>;

/**
 * Blobs on disk by their digest: `<directory>/sha256/<hex>`, each verified before it gets its
 * name.
 */
export type BlobCache = {
  /** Source of the stored blobs, for readers that verify themselves. */
  readonly source: BlobSource;
  /**
   * The path of a blob, fetched from the first source whose bytes are right. A part that an earlier
   * run left is hashed again and continued. A blob that is already stored is also hashed again,
   * once per process; a damaged one is fetched again.
   *
   * @throws IntegrityError `blob.digest-mismatch`; DiskError; errors of readBlob
   */
  ensure: (
    blob: Content,
    sources: readonly BlobSource[],
    options: EnsureOptions,
  ) => Promise<string>;
  /**
   * The bytes of a manifest, verified; undefined if it is absent, damaged or larger than a
   * manifest.
   */
  read: (digest: Digest) => Promise<Buffer | undefined>;
  /** True if a file has this name; its bytes are not read. */
  has: (digest: Digest) => Promise<boolean>;
  put: (bytes: Uint8Array) => Promise<Digest>;
  /** The path at which a blob is, or would be: for readers that verify themselves. */
  pathOf: (digest: Digest) => string;
};

/**
 * Creates a cache; its directory is made when it is first written to. Any number of processes may
 * use it at once: they may fetch a blob twice, but never write one file together.
 */
export function createBlobCache(directory: string): BlobCache {
  const verified = new Set<Digest>();
  const running = new Map<Digest, Promise<string>>();
  const pathOf = (digest: Digest): string => join(directory, 'sha256', hexOf(digest));

  const ensure: BlobCache['ensure'] = async (blob, sources, options) => {
    const path = pathOf(blob.digest);
    if (!verified.has(blob.digest) && !(await isIntact(path, blob, options.signal))) {
      await makeDirectory(join(directory, 'sha256'));
      const wanted = describeBlob(blob);
      const partial = await claimPartial(directory, blob.digest);
      await download(path, partial, { ...options, sources, wanted, cutsOff: false });
    }
    verified.add(blob.digest);
    options.onProgress?.(blob.size);
    return path;
  };
  return {
    source: {
      name: 'cache',
      local: true,
      open: (blob, { offset }) => openFile(pathOf(blob.digest), blob, offset),
      async fileOf({ digest }) {
        const path = pathOf(digest);
        return (await hasFile(path)) ? { path, position: 0 } : undefined;
      },
    },
    async ensure(blob, sources, options) {
      for (let held = running.get(blob.digest); held; held = running.get(blob.digest)) {
        await settle(held, options.signal);
      }
      const work = ensure(blob, sources, options).catch((error: unknown) => {
        throw explainDiskFailure(error, { directory, needed: blob.size });
      });
      running.set(blob.digest, work);
      try {
        return await work;
      } finally {
        running.delete(blob.digest);
      }
    },
    pathOf,
    read: (digest) => readSmall(pathOf(digest), digest),
    has: (digest) => hasFile(pathOf(digest)),
    async put(bytes) {
      const digest = digestOf(bytes);
      try {
        await writeFileAtomic(pathOf(digest), bytes);
      } catch (error) {
        throw explainDiskFailure(error, { directory, needed: bytes.length });
      }
      return digest;
    },
  };
}

/**
 * Fetches a blob next to its place, verifies it while it passes, syncs, and renames. If it fails,
 * the bytes so far stay for the next run.
 */
async function download(
  path: string,
  partial: Partial,
  options: Omit<FillOptions<BlobSource>, 'prefix'>,
): Promise<void> {
  let done = false;
  try {
    await fillFile(createResumableFile(partial.file), { ...options, prefix: partial.size });
    await partial.file.sync();
    await publishFile(partial.file, partial.path, path);
    done = true;
    await syncDirectory(dirname(path));
  } finally {
    await partial.file.close();
    if (!done) await releasePartial(partial);
  }
}

/**
 * Waits for earlier work, regardless of its success, which matters to its own caller: the next one
 * checks for itself.
 */
async function settle(work: Promise<string>, signal: AbortSignal): Promise<void> {
  await untilAborted(
    work.then(
      () => undefined,
      () => undefined,
    ),
    signal,
  );
}

async function isIntact(
  path: string,
  { digest, size }: Content,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    if ((await stat(path)).size === size && (await digestFile(path, signal)) === digest)
      return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
  await rm(path, { force: true });
  return false;
}

/** Bytes of the largest document that is read whole. */
const MAX_DOCUMENT_SIZE = 4 * 1024 * 1024;

async function readSmall(path: string, digest: Digest): Promise<Buffer | undefined> {
  try {
    if ((await stat(path)).size > MAX_DOCUMENT_SIZE) return undefined;
    const bytes = await readFile(path);
    return digestOf(bytes) === digest ? bytes : undefined;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

const READ_SIZE = 1 << 20;

/** Opens a file. A file of another size than the descriptor's is not a copy of the blob. */
async function openFile(path: string, { digest, size }: Content, offset: number) {
  try {
    const file = await openToRead(path);
    const found = (await file.stat()).size;
    if (found === size) {
      // A stream takes all of its buffer at once, and most blobs of a cache are small.
      const highWaterMark = Math.min(READ_SIZE, Math.max(1, size - offset));
      return { offset, body: file.createReadStream({ start: offset, highWaterMark }) };
    }
    await file.close();
    throw new IntegrityError(
      found > size ? 'blob.too-long' : 'blob.too-short',
      `blob ${digest} should be ${size} bytes, but the cached file ${path} has ${found}`,
      { expected: String(size), found: String(found), hint: `delete ${path}` },
    );
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** The folders of a shared cache. */
export const sharedFolders = (directory: string) => ({
  blobs: join(directory, 'sha256'),
  partial: join(directory, 'partial'),
  claims: join(directory, 'claims'),
});

export type SharedCacheOptions = {
  readonly directory: string;
  readonly signal: AbortSignal;
  /**
   * Called when the folder cannot be used and registries are asked instead, and when another build
   * is waited for.
   */
  readonly warn: (message: string) => void;
};

/**
 * A folder of blobs that many builds use at once, of several users and machines. Nothing in it is
 * trusted: the reader of a blob verifies it, and a wrong blob costs a download from elsewhere.
 */
export type SharedCache = {
  /** Source of the stored blobs. */
  readonly local: BlobSource;
  /**
   * A source that has every blob of others: a missing blob is fetched into the folder by one of the
   * builds, and the others wait for it.
   */
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
  const watch = createWatch();
  let isReady: Promise<unknown> | undefined;
  let hasFailed = false;

  const bring = async (
    blob: Content,
    sources: readonly BlobSource[],
    onFetched?: OnFetched,
  ): Promise<void> => {
    isReady ??= Promise.all(Object.values(folders).map(makeFolder));
    await isReady;
    for (let looks = 1; !(await isFile(pathOf(blob), blob.size)); looks++) {
      const lease = await tryLease(join(folders.claims, hexOf(blob.digest)), watch);
      const isOurs = 'release' in lease;
      if (!isOurs && looks === PATIENCE) {
        options.warn(
          `another build is fetching ${blob.digest} into the cache "${directory}": this build waits for it, and takes over if the other one stops`,
        );
      }
      if (isOurs) await fetchUnder(lease, blob, { sources, folders, signal, onFetched });
      else await sleep(PAUSE_MS, signal);
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

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

type OnFetched = (size: number) => void;

type Fetching = {
  readonly sources: readonly BlobSource[];
  readonly folders: ReturnType<typeof sharedFolders>;
  readonly signal: AbortSignal;
  readonly onFetched: OnFetched | undefined;
};

/**
 * Fetches a blob, building on the parts that earlier builds left: they are copied, because an
 * owner that is not dead yet may still write to its file.
 */
async function fetchUnder(lease: Lease, blob: Content, fetching: Fetching): Promise<void> {
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
  } finally {
    await lease.release();
  }
}

/** Makes a folder of a cache. A link that others put there in its place could lead anywhere. */
async function makeFolder(path: string): Promise<void> {
  await makeDirectory(path);
  await (await openDirectory(path)).close();
}

type Left = { readonly path: string; readonly size: number };

/**
 * Begins a new file with the first part that can be read. A part that cannot be read costs nothing.
 */
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
