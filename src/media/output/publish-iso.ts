import { rename, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { sweepAside } from '../../base/disk/aside.ts';
import { syncDirectory, writeFileAtomic } from '../../base/disk/files.ts';
import { hexOf, type Digest } from '../../base/digest.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import { publishPour } from '../../pour/pour.ts';
import { namesBeside } from './claim-iso.ts';

export type PublishedIso = {
  /** Whether it is on a block device, which has no name to get and no file beside it but a report. */
  readonly isDevice?: boolean;
  /** Of the whole ISO; absent: no checksum stands beside it. */
  readonly digest?: Digest;
  /** Absent: none is written. */
  readonly report?: Readonly<Record<string, Json | undefined>>;
};

/**
 * Gives a poured ISO its name, with a checksum as `sha256sum -c` reads it and the report beside it. Both
 * are written before the ISO has its name, and get theirs right after it: they are never of an ISO that
 * is not there. The output is locked meanwhile.
 */
export async function publishIso(
  output: string,
  { report, isDevice = false, digest }: PublishedIso,
): Promise<void> {
  const { aside, ...names } = namesBeside(output);
  try {
    for (const path of Object.values(aside)) await sweepAside(path);
    const hasChecksum = await writeChecksum(aside.checksum, output, isDevice ? undefined : digest);
    if (report) await writeFileAtomic(aside.report, formatReadableJson(report), 0o644);
    if (!hasChecksum) await rm(names.checksum, { force: true });
    await publishPour(output, isDevice);
    if (report) await rename(aside.report, names.report);
    if (hasChecksum) await rename(aside.checksum, names.checksum);
    await syncDirectory(dirname(output));
  } catch (error) {
    for (const path of Object.values(aside)) await rm(path, { force: true });
    throw error;
  }
}

async function writeChecksum(path: string, output: string, digest?: Digest): Promise<boolean> {
  if (digest === undefined) return false;
  await writeFileAtomic(path, formatChecksum(output, digest), 0o644);
  return true;
}

/** Writes the checksum beside an ISO that has its name already. */
export const publishChecksum = (path: string, digest: Digest): Promise<void> =>
  writeFileAtomic(namesBeside(path).checksum, formatChecksum(path, digest), 0o644);

const formatChecksum = (path: string, digest: Digest): string =>
  `${hexOf(digest)}  ${basename(path)}\n`;
