import { createHash } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { digestOf, hexOf } from '../digest.ts';
import { sweepDirectory } from '../disk/aside.ts';
import { makeDirectory, sizeOf, writeFileAtomic } from '../disk/files.ts';
import { openListed } from '../disk/open-file.ts';
import { isErrno } from '../errors.ts';
import { sumSizes } from '../lists.ts';
import { untilAborted } from '../wait.ts';

/** A run of bytes of a remote object. */
export type CachedPart = {
  /** Name of a file; the same for the same bytes. */
  readonly name: string;
  /** Bytes; a chunk at most. */
  readonly size: number;
  /** Fills a buffer of that size; called once, regardless of the number of readers. */
  readonly fetch: (bytes: Buffer) => Promise<void>;
};

type Target = { readonly target: Buffer; readonly at: number };

export type PartCache = {
  /** Fills the target with the bytes of a part from `at`. */
  readonly fill: (part: CachedPart, wanted: Target, signal: AbortSignal) => Promise<void>;
  /** Begins to fetch a part that will be read soon. */
  readonly expect: (part: CachedPart) => void;
  /** Bytes of files. */
  readonly size: () => number;
  /** Resolves when all fetched parts are stored. */
  readonly close: () => Promise<void>;
};

export type PartCacheOptions = {
  /** Directory of this process alone. It is made if it is missing. */
  readonly directory: string;
  /** Bytes of disk. */
  readonly limit: number;
  /** Bytes of the largest part. */
  readonly partSize: number;
  /** Called once, if parts cannot be stored: they are fetched each time. */
  readonly warn: (message: string) => void;
};

/** Parts that are fetched at a time: each is in memory until it is stored. */
const FETCHES = 4;

/** SHA-256 of the part, after its bytes. */
const TRAILER = 32;

/** Bytes that are verified at a time. */
const PIECE = 1 << 18;

/**
 * Parts of ISOs on this disk, as many as fit; the least recently read part is removed first. A part is
 * fetched once, regardless of the number of readers, and waiting readers get it from memory. A part that an
 * earlier run left is verified when it is first read, and fetched again if it is damaged.
 */
export async function openPartCache(options: PartCacheOptions): Promise<PartCache> {
  const files = await openFiles(options);
  const fetches = createFetches(files.store, options.partSize);
  return {
    size: files.size,
    close: () => fetches.close(),
    expect(part) {
      if (files.has(part)) return;
      fetches.begin(part).arrived.catch(() => undefined); // its reader asks again, and gets the reason
    },
    async fill(part, { target, at }, signal) {
      for (;;) {
        if (!fetches.has(part) && (await files.read(part, { target, at }))) return;
        const work = fetches.begin(part);
        await untilAborted(work.arrived, signal);
        if (!work.bytes) continue; // it is stored
        target.set(work.bytes.subarray(at, at + target.length));
        return;
      }
    },
  };
}

type Fetching = {
  /** Rejects if the bytes do not come. */
  readonly arrived: Promise<unknown>;
  /** The bytes from their arrival until they are stored. */
  readonly bytes: Buffer | undefined;
};

/** Each part is fetched once at a time. The bytes are given before they are stored. */
function createFetches(
  store: (part: CachedPart, bytes: Buffer) => Promise<void>,
  partSize: number,
) {
  const fetching = new Map<string, Fetching>();
  const storing = new Set<Promise<void>>();
  const limitFetches = pLimit(FETCHES);
  // Buffers of this size that come and go leave holes in the memory of the process, which it keeps.
  const spare: Buffer[] = [];
  const bring = async (part: CachedPart, give: (bytes: Buffer) => () => void): Promise<void> => {
    const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(partSize + TRAILER);
    let takeBack: (() => void) | undefined;
    try {
      const bytes = buffer.subarray(0, part.size);
      await part.fetch(bytes);
      takeBack = give(bytes);
      await store(part, buffer.subarray(0, part.size + TRAILER));
    } finally {
      takeBack?.();
      spare.push(buffer);
    }
  };
  return {
    has: ({ name }: CachedPart) => fetching.has(name),
    begin(part: CachedPart): Fetching {
      const running = fetching.get(part.name);
      if (running) return running;
      let given: Buffer | undefined;
      const arrived = new Promise((resolve, reject) => {
        const give = (bytes: Buffer) => {
          given = bytes;
          resolve(undefined);
          return () => (given = undefined);
        };
        const stored = limitFetches(() => bring(part, give))
          .catch(reject)
          .finally(() => {
            fetching.delete(part.name);
            storing.delete(stored);
          });
        storing.add(stored);
      });
      const work: Fetching = {
        arrived,
        get bytes() {
          return given;
        },
      };
      fetching.set(part.name, work);
      return work;
    },
    async close() {
      await Promise.all(storing);
    },
  };
}

type Entry = { readonly size: number; readonly isVerified: boolean };

/** The files of the parts: the most recently used are last. */
async function openFiles({ directory, limit, warn }: PartCacheOptions) {
  await makeDirectory(directory, 0o700);
  await sweepDirectory(directory, { alone: true });
  const entries = await listEntries(directory);
  let total = sumSizes(entries.values());
  let hasFailed = false;
  const forget = async (name: string): Promise<void> => {
    total -= entries.get(name)?.size ?? 0;
    entries.delete(name);
    await rm(join(directory, name), { force: true });
  };
  const write = async ({ name, size }: CachedPart, bytes: Buffer): Promise<void> => {
    bytes.write(hexOf(digestOf(bytes.subarray(0, size))), size, 'hex');
    await writeFileAtomic(join(directory, name), bytes);
    total += size + TRAILER - (entries.get(name)?.size ?? 0);
    entries.set(name, { size: size + TRAILER, isVerified: true });
    for (const oldest of entries.keys()) {
      if (total <= limit) break;
      await forget(oldest);
    }
  };
  return {
    size: () => total,
    has: ({ name }: CachedPart) => entries.has(name),
    /** @param bytes with room for the trailer */
    store: (part: CachedPart, bytes: Buffer) =>
      write(part, bytes).catch((error: unknown) => {
        if (!hasFailed) warn(`cannot store parts in "${directory}": ${messageOf(error)}`);
        hasFailed = true;
      }),
    async read(part: CachedPart, { target, at }: Target): Promise<boolean> {
      const { name, size } = part;
      const entry = entries.get(name);
      if (!entry) return false;
      const path = join(directory, name);
      const isIntact = entry.isVerified || (await isWhole(path, size));
      if (isIntact && (await readAt(path, target, at))) {
        const isStillThere = entries.delete(name); // the last one is the most recently read
        if (isStillThere) entries.set(name, { ...entry, isVerified: true });
        return true;
      }
      await forget(name);
      return false;
    },
  };
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

async function listEntries(directory: string): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  for (const name of await readdir(directory)) {
    entries.set(name, { size: await sizeOf(join(directory, name)), isVerified: false });
  }
  return entries;
}

async function isWhole(path: string, size: number): Promise<boolean> {
  const hash = createHash('sha256');
  const piece = Buffer.allocUnsafe(PIECE);
  for (let at = 0; at < size; at += PIECE) {
    const target = piece.subarray(0, Math.min(PIECE, size - at));
    if (!(await readAt(path, target, at))) return false;
    hash.update(target);
  }
  const trailer = piece.subarray(0, TRAILER);
  return (await readAt(path, trailer, size)) && hash.digest().equals(trailer);
}

/** True if the file exists, and has all of the bytes. */
async function readAt(path: string, target: Buffer, at: number): Promise<boolean> {
  try {
    const file = await openListed(path);
    try {
      for (let done = 0; done < target.length;) {
        const { bytesRead } = await file.read(target, done, target.length - done, at + done);
        if (bytesRead === 0) return false;
        done += bytesRead;
      }
      return true;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ELOOP', 'EIO')) return false;
    throw error;
  }
}
