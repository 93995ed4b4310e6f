import { join } from 'node:path';
import { digestOf, hexOf, isDigest, type Digest } from '../../base/digest.ts';
import { isSameStamp, parseStamp, readStamp } from '../../base/disk/file-digests.ts';
import { readFileIfPresent, writeFileAtomic } from '../../base/disk/files.ts';
import { isObject } from '../../base/lists.ts';
import { formatReadableJson } from '../../base/text/json.ts';

/**
 * Which ISOs this work directory finished, beside what their inodes said then. As long as an inode says the same, every
 * byte of the ISO is taken for what its layout says, without reading it.
 */
export type IsoRecords = {
  /** The digest of its layout; undefined where it is not known, or its inode has changed. */
  readonly recall: (path: string) => Promise<Digest | undefined>;
  /** Of an ISO that was just verified, synced and named. */
  readonly remember: (path: string, layout: Digest) => Promise<void>;
};

/** @param isTrusted whether earlier records count; what is written counts for later runs in any case */
export function createIsoRecords(workDir: string, isTrusted = true): IsoRecords {
  const entryOf = (path: string): string =>
    join(workDir, 'finished', `${hexOf(digestOf(path)).slice(0, 32)}.stamp.json`);
  return {
    async recall(path) {
      const stamp = isTrusted ? await readStamp(path) : undefined;
      const known = stamp && parse(await readFileIfPresent(entryOf(path)));
      return known && isSameStamp(known.stamp, stamp) ? known.layout : undefined;
    },
    async remember(path, layout) {
      const stamp = await readStamp(path);
      await writeFileAtomic(entryOf(path), formatReadableJson({ path, layout, stamp }));
    },
  };
}

function parse(bytes: Uint8Array | undefined) {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes ?? []).toString('utf8'));
    const { layout, stamp } = isObject(value) ? value : {};
    const found = parseStamp(stamp);
    return found && typeof layout === 'string' && isDigest(layout)
      ? { stamp: found, layout }
      : undefined;
  } catch {
    return undefined; // none, or damaged: the ISO is read
  }
}
