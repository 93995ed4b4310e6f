import { rm } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { formatReadableJson } from '../../base/text/canonical-json.ts';
import { digestOf, hexOf, isDigest, type Digest } from '../../base/digest.ts';
import {
  isSameStamp,
  parseStamp,
  readStamp,
  type FileInput,
  type FileStamp,
} from '../../base/disk/file-input.ts';
import { digestFile, readFileIfPresent, writeFileAtomic } from '../../base/disk/files.ts';
import { forgetCached } from './cached-file.ts';

/**
 * The digests of files that are not ours, remembered beside what their inodes said. A file whose inode
 * says the same is not read again. A digest that is wrong all the same does no harm: all bytes are
 * verified when they are used, and who finds other bytes calls `forget`.
 */
export type FileDigests = {
  /** undefined where there is no regular file. */
  readonly identify: (path: string) => Promise<FileInput | undefined>;
  /** The same without reading the file: undefined where it is not known, or its inode has changed. */
  readonly recall: (path: string) => Promise<FileInput | undefined>;
  /** Of a file that was just written, synced and named: its digest is known from its bytes. */
  readonly remember: (path: string, digest: Digest) => Promise<void>;
  /** Also of a file of the cache: it is made again. */
  readonly forget: (path: string) => Promise<void>;
};

type Remembered = { readonly stamp: FileStamp; readonly digest: Digest };

/** FAT knows whole pairs of seconds only: what was written since could have the same times. */
const COARSEST_MS = 2000;

/**
 * @param cache folder of what was fetched and extracted; the digests are kept below it
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
