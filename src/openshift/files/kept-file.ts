import { rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatReadableJson } from '../../base/canonical-json.ts';
import { isDigest, type Digest } from '../../base/digest.ts';
import { isErrno } from '../../base/errno.ts';
import { digestFile, readFileIfPresent, syncDirectory, writeFileAtomic } from '../../base/files.ts';

/** A file that we made before, and its digest. */
export type KeptFile = { readonly path: string; readonly size: number; readonly digest: Digest };

type Record = { readonly size: number; readonly digest: Digest; readonly modified: number };

/**
 * Moves a finished file to its place and then writes down what it is, in `<path>.json`: a file
 * without a record is one whose making was cut short, whatever it looks like. `digest` is that of the
 * bytes on the disk.
 */
export async function keepFile(aside: string, path: string, digest: Digest): Promise<KeptFile> {
  await rename(aside, path);
  await syncDirectory(dirname(path));
  const { size } = await writeRecord(path, digest);
  return { path, size, digest };
}

/**
 * The file as it was kept, or undefined when it is not there or not what it was. Where size and time
 * are as recorded its bytes are not read again.
 */
export async function findKept(path: string): Promise<KeptFile | undefined> {
  const record = parseRecord(await readFileIfPresent(`${path}.json`));
  const found = await statFile(path);
  if (record === undefined || found?.size !== record.size) return undefined;
  const { size, digest } = record;
  if (found.mtimeMs === record.modified) return { path, size, digest };
  if ((await digestFile(path)) !== digest) return undefined;
  await writeRecord(path, digest);
  return { path, size, digest };
}

async function writeRecord(path: string, digest: Digest): Promise<Record> {
  const { size, mtimeMs } = await stat(path);
  const record = { size, digest, modified: mtimeMs };
  await writeFileAtomic(`${path}.json`, formatReadableJson(record));
  return record;
}

/** undefined for what is no record of ours: the file is made anew. */
function parseRecord(bytes: Uint8Array | undefined): Record | undefined {
  if (bytes === undefined) return undefined;
  try {
    const record = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<Record> | null;
    const { size, digest, modified } = record ?? {};
    if (typeof size !== 'number' || typeof modified !== 'number') return undefined;
    return typeof digest === 'string' && isDigest(digest) ? { size, modified, digest } : undefined;
  } catch {
    return undefined; // damaged, which is the same as absent: see above
  }
}

async function statFile(path: string): Promise<{ size: number; mtimeMs: number } | undefined> {
  try {
    const found = await stat(path);
    return found.isFile() ? found : undefined;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}
