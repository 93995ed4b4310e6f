import { stat, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { type Digest, isDigest, digestOf, hexOf } from '../digest.ts';
import { IntegrityError } from '../errors.ts';
import { formatReadableJson } from '../text/json.ts';
import { isUnreadable } from './disk-errors.ts';
import { digestFile, readFileIfPresent, syncDirectory, writeFileAtomic } from './files.ts';

/*
 * Owns the digests of files: the records of cached files, and the digests that are remembered with
 * the data of their inodes.
 */

/** A file that a result is made from: its bytes count, not its location. Plain JSON. */
export type FileInput = {
  readonly kind: 'file';
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly digest: Digest;
};

/** Data of a file's inode. As long as all of it is the same, so are the bytes, as far as can be known. */
export type FileStamp = {
  readonly size: number;
  /** Milliseconds since 1970, with fractions. */
  readonly modified: number;
  readonly changed: number;
  readonly inode: number;
};

/** The stamp of a file; undefined if the path is missing, out of reach, or not a regular file. */
export async function readStamp(path: string): Promise<FileStamp | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    const { size, mtimeMs, ctimeMs, ino } = found;
    return { size, modified: mtimeMs, changed: ctimeMs, inode: ino };
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

export const isSameStamp = (a: FileStamp, b: FileStamp): boolean =>
  a.size === b.size && a.modified === b.modified && a.changed === b.changed && a.inode === b.inode;

export function parseStamp(value: unknown): FileStamp | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { size, modified, changed, inode } = value as Partial<Record<keyof FileStamp, unknown>>;
  if (typeof size !== 'number' || typeof modified !== 'number') return undefined;
  if (typeof changed !== 'number' || typeof inode !== 'number') return undefined;
  return { size, modified, changed, inode };
}

/** The file alone, without its origin: the same bytes make the same results. */
export async function fileOf(file: FileInput | Promise<FileInput>): Promise<FileInput> {
  const { path, size, digest } = await file;
  return { kind: 'file', path, size, digest };
}

type FileRecord = { readonly digest: Digest; readonly stamp: FileStamp };

/**
 * Moves a finished file to its place and then writes its record to `<path>.json`: a file without a record was
 * not finished, regardless of its content. `digest` is the digest of the bytes on the disk.
 */
export async function cacheFile(aside: string, path: string, digest: Digest): Promise<FileInput> {
  const made = await findCached(path); // by another build, which may be reading it
  if (made?.digest === digest) {
    await rm(aside, { force: true });
    return made;
  }
  await rename(aside, path);
  await syncDirectory(dirname(path));
  const stamp = await readStamp(path);
  if (!stamp) throw new Error(`${path} is gone, though it was just made`);
  await writeRecord(path, { digest, stamp });
  return { kind: 'file', path, size: stamp.size, digest };
}

/**
 * The file as it was stored, or undefined if it is missing or has changed. If its inode is the
 * same as in the record, its bytes are not read again.
 */
export async function findCached(path: string): Promise<FileInput | undefined> {
  const record = parseRecord(await readFileIfPresent(`${path}.json`));
  const stamp = await readStamp(path);
  if (record === undefined || stamp?.size !== record.stamp.size) return undefined;
  const { digest } = record;
  if (!isSameStamp(stamp, record.stamp)) {
    if ((await digestFile(path)) !== digest) return undefined;
    await writeRecord(path, { digest, stamp });
  }
  return { kind: 'file', path, size: stamp.size, digest };
}

/** True if a file that a stage made still exists with the bytes that it had. */
export const isCached = async ({ path, digest }: FileInput): Promise<boolean> =>
  (await findCached(path))?.digest === digest;

const forgetCached = (path: string): Promise<void> => rm(`${path}.json`, { force: true });

const writeRecord = (path: string, { digest, stamp }: FileRecord): Promise<void> =>
  writeFileAtomic(`${path}.json`, formatReadableJson({ digest, stamp }));

/** The record; undefined if the bytes are not a record of ours: the file is made again. */
function parseRecord(bytes: Uint8Array | undefined): FileRecord | undefined {
  if (bytes === undefined) return undefined;
  try {
    const record = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<FileRecord> | null;
    const { digest, stamp: found } = record ?? {};
    const stamp = parseStamp(found);
    return stamp && typeof digest === 'string' && isDigest(digest) ? { digest, stamp } : undefined;
  } catch {
    return undefined; // damaged, which is the same as absent: see above
  }
}

/**
 * The digests of files that are not ours, remembered with the data of their inodes. A file whose
 * inode is the same is not read again. A digest that is wrong all the same does no harm: all bytes
 * are verified when they are used, and a reader that finds other bytes calls `forget`.
 */
export type FileDigests = {
  /** The file with its digest; undefined if there is no regular file. */
  readonly identify: (path: string) => Promise<FileInput | undefined>;
  /**
   * The file as it is remembered, without reading it: undefined if it is not known, or its inode has changed.
   */
  readonly recall: (path: string) => Promise<FileInput | undefined>;
  /** Remembers a file that was just written, synced and named: its digest is known from its bytes. */
  readonly remember: (path: string, digest: Digest) => Promise<void>;
  /** Also forgets a file of the cache: it is made again. */
  readonly forget: (path: string) => Promise<void>;
};

type Remembered = { readonly stamp: FileStamp; readonly digest: Digest };

/** FAT has a resolution of two seconds: a later write within them could have the same times. */
const COARSEST_MS = 2000;

/**
 * @param cache folder of fetched and extracted files; the digests are stored below it
 * @param options.signal ends the reading of a large file
 * @param options.trustsRecords default true; else only digests of this process are remembered
 */
export function createFileDigests(
  cache: string,
  {
    signal,
    trustsRecords = true,
  }: { readonly signal?: AbortSignal; readonly trustsRecords?: boolean } = {},
): FileDigests {
  const own = new Set<string>();
  const entryOf = (path: string): string =>
    join(cache, 'digests', `${hexOf(digestOf(resolve(path))).slice(0, 32)}.json`);
  const recall = async (path: string, stamp: FileStamp): Promise<FileInput | undefined> => {
    if (!trustsRecords && !own.has(resolve(path))) return undefined;
    const known = parse(await readFileIfPresent(entryOf(path)));
    return known && isSameStamp(known.stamp, stamp) ? describe(path, known) : undefined;
  };
  const remember = async (path: string, found: Remembered): Promise<void> => {
    await writeFileAtomic(entryOf(path), formatReadableJson({ ...found, path: resolve(path) }));
    own.add(resolve(path));
  };
  return {
    async recall(path) {
      const stamp = await readStamp(path);
      return stamp && recall(path, stamp);
    },
    async remember(path, digest) {
      const stamp = await readStamp(path);
      if (stamp) await remember(path, { stamp, digest });
    },
    async identify(path) {
      const stamp = await readStamp(path);
      if (!stamp) return undefined;
      const known = await recall(path, stamp);
      if (known) return known;
      const started = Date.now();
      const found = { stamp, digest: await digestFile(path, signal) };
      const isSettled = Math.max(stamp.changed, stamp.modified) + COARSEST_MS < started;
      const after = await readStamp(path);
      // A file that is being written has no digest worth remembering.
      if (isSettled && after && isSameStamp(after, stamp)) {
        await remember(path, found);
      }
      return describe(path, found);
    },
    async forget(path) {
      await rm(entryOf(path), { force: true });
      if (resolve(path).startsWith(resolve(cache) + sep)) await forgetCached(path);
    },
  };
}

const describe = (path: string, { stamp: { size }, digest }: Remembered): FileInput => ({
  kind: 'file',
  path,
  size,
  digest,
});

function parse(bytes: Uint8Array | undefined): Remembered | undefined {
  if (bytes === undefined) return undefined;
  try {
    const value = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<Remembered> | null;
    const stamp = parseStamp(value?.stamp);
    const digest = value?.digest;
    return stamp && digest !== undefined && isDigest(digest) ? { stamp, digest } : undefined;
  } catch {
    return undefined; // damaged: the file is read again
  }
}

/**
 * Reads from a base ISO; the result counts only if the file was the same before and after. If it
 * changed, or had other bytes than its digest, that digest is forgotten, so that the next run
 * takes the file as it is then.
 *
 * @throws IntegrityError `base-iso.changed`, and errors of `read`
 */
export async function readUnchanged<Result>(
  base: FileInput,
  digests: FileDigests,
  read: () => Promise<Result>,
): Promise<Result> {
  const before = await readStamp(base.path);
  try {
    const result = await read();
    const after = await readStamp(base.path);
    if (before && after && (await isEqual(base, before, after))) return result;
  } catch (error) {
    if (error instanceof IntegrityError) await digests.forget(base.path);
    throw error;
  }
  throw await baseChanged(base, digests);
}

/** True for the same file, or an equal one that another build of the work directory put in its place. */
const isEqual = async (
  { path, digest }: FileInput,
  before: FileStamp,
  after: FileStamp,
): Promise<boolean> =>
  isSameStamp(before, after) ||
  (before.inode !== after.inode && (await digestFile(path)) === digest);

/** The error for a file that has other bytes than its digest. */
export async function baseChanged(
  { path, digest }: FileInput,
  digests: FileDigests,
  found = 'other bytes',
): Promise<IntegrityError> {
  await digests.forget(path);
  return new IntegrityError('base-iso.changed', `base ISO "${path}" changed during the build`, {
    expected: digest,
    found,
    hint: 'run the same command again when nothing writes to the file',
  });
}
