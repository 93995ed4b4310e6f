import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatReadableJson } from '../../base/text/canonical-json.ts';
import { isDigest, type Digest } from '../../base/digest.ts';
import {
  isSameStamp,
  parseStamp,
  readStamp,
  type FileInput,
  type FileStamp,
} from '../../base/disk/file-input.ts';
import {
  digestFile,
  readFileIfPresent,
  syncDirectory,
  writeFileAtomic,
} from '../../base/disk/files.ts';

type FileRecord = { readonly digest: Digest; readonly stamp: FileStamp };

/**
 * Moves a finished file to its place and then writes down what it is, in `<path>.json`: a file
 * without a record is one whose making was cut short, whatever it looks like. `digest` is that of the
 * bytes on the disk.
 */
export async function cacheFile(aside: string, path: string, digest: Digest): Promise<FileInput> {
  await rename(aside, path);
  await syncDirectory(dirname(path));
  const stamp = await readStamp(path);
  if (!stamp) throw new Error(`${path} is gone, though it was just made`);
  await writeRecord(path, { digest, stamp });
  return { kind: 'file', path, size: stamp.size, digest };
}

/**
 * The file as it was stored, or undefined when it is not there or not what it was. Where its inode says
 * what it said then, its bytes are not read again.
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

/** Whether a file that a stage made is still there, with the bytes that it had. */
export const isCached = async ({ path, digest }: FileInput): Promise<boolean> =>
  (await findCached(path))?.digest === digest;

/** The file counts as never made. */
export const forgetCached = (path: string): Promise<void> => rm(`${path}.json`, { force: true });

const writeRecord = (path: string, { digest, stamp }: FileRecord): Promise<void> =>
  writeFileAtomic(`${path}.json`, formatReadableJson({ digest, stamp }));

/** undefined for what is not a record of ours: the file is made again. */
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
