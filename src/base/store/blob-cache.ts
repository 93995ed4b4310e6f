import { readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { digestFromHex, digestOf, hexOf, isDigestHex, type Digest } from '../digest.ts';
import { explainDiskFailure } from '../disk/disk-errors.ts';
import {
  digestFile,
  hasFile,
  makeDirectory,
  placeFile,
  readFileIfPresent,
  syncDirectory,
} from '../disk/files.ts';
import { openToRead } from '../disk/open-file.ts';
import { publishFile } from '../disk/publish.ts';
import { createResumableFile, fillFile, type FillOptions } from '../download/fill-file.ts';
import { IntegrityError, isErrno } from '../errors.ts';
import { untilAborted } from '../wait.ts';
import { type BlobSource, type Content, describeBlob } from './blob-source.ts';
import { claimPartial, releasePartial, type Partial } from './partial.ts';

/* Owns blobs on disk by their digest, for the builds of one work directory. */

export type EnsureOptions = Pick<FillOptions<BlobSource>, 'signal' | 'onProgress' | 'bodyTime'>;

/** Blobs at `<directory>/sha256/<hex>`, each verified before it gets its name. */
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
  /** The bytes of a manifest, verified; undefined if it is absent, damaged or larger than a manifest. */
  read: (digest: Digest) => Promise<Buffer | undefined>;
  /** Digests of all files, whose bytes are not read. */
  list: () => Promise<ReadonlySet<Digest>>;
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
  const documents = createDocuments();
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
    async read(digest) {
      const known = documents.get(digest);
      if (known) return known;
      const bytes = await readSmall(pathOf(digest), digest);
      if (bytes) documents.keep(digest, bytes);
      return bytes;
    },
    list: () => listBlobs(join(directory, 'sha256')),
    async put(bytes) {
      const digest = digestOf(bytes);
      await placeFile(pathOf(digest), bytes).catch((error: unknown) => {
        throw explainDiskFailure(error, { directory, needed: bytes.length });
      });
      documents.keep(digest, Buffer.from(bytes));
      return digest;
    },
  };
}

/** Fetches a blob next to its place, verifies, syncs, renames. After a failure the bytes so far stay. */
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

/** Waits for earlier work, regardless of its success: the next caller checks for itself. */
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

/** Bytes of documents that are kept in memory: several steps of a run read each manifest. */
const MAX_KEPT = 16 * 1024 * 1024;

/** Keeps the bytes of documents, verified, until they are too many; the others are read each time. */
function createDocuments() {
  const kept = new Map<Digest, Buffer>();
  let left = MAX_KEPT;
  return {
    get: (digest: Digest) => kept.get(digest),
    keep(digest: Digest, bytes: Buffer): void {
      if (bytes.length > left || kept.has(digest)) return;
      left -= bytes.length;
      kept.set(digest, bytes);
    },
  };
}

async function listBlobs(directory: string): Promise<ReadonlySet<Digest>> {
  try {
    const names = await readdir(directory);
    return new Set(names.filter(isDigestHex).map(digestFromHex));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return new Set();
    throw error;
  }
}

/** Bytes of the largest document that is read whole. */
const MAX_DOCUMENT_SIZE = 4 * 1024 * 1024;

async function readSmall(path: string, digest: Digest): Promise<Buffer | undefined> {
  const bytes = await readFileIfPresent(path, MAX_DOCUMENT_SIZE);
  return bytes && digestOf(bytes) === digest ? bytes : undefined;
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
