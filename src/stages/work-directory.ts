import { randomBytes } from 'crypto';
import { join } from 'path/posix';
import { sweepDirectory } from '../base/disk/aside.ts';
import { writeFileAtomic } from '../base/disk/files.ts';
import { readOwnFile } from '../base/disk/open-file.ts';
import type { DrawnSource } from './resolved/drawn.ts';

/* Owns what stays in a work directory between runs: the key for fingerprints, and leftovers that are swept. */

/**
 * Reads the key for fingerprints. Values that were drawn elsewhere are recognized by the key that
 * they were drawn under.
 */
export async function readSealKey(workDir: string, drawn?: DrawnSource): Promise<Uint8Array> {
  const secrets = drawn?.secrets;
  if (secrets) return Buffer.from(secrets.key, 'base64');
  const path = join(workDir, 'seal.key');
  const known = await readOwnFile(path);
  if (known?.length === 32) return known;
  const key = randomBytes(32);
  await writeFileAtomic(path, key, 0o600);
  return key;
}

/**
 * Directories in which a build makes the files that it keeps, below its work directory. Blobs have
 * their own partial files.
 */
const SWEPT = [
  'stages',
  'stages/drawn',
  'cache/base',
  'cache/catalogs',
  'cache/digests',
  'cache/installer',
];

export async function sweepWorkDir(workDir: string): Promise<void> {
  for (const name of SWEPT) await sweepDirectory(join(workDir, name));
}
