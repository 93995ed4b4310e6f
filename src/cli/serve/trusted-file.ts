import { lstatSync, statSync, type Stats } from 'node:fs';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { ConfigError } from '../../base/errors.ts';

/* Owns the rule for files that decide who may use a service: secrets, and the keys of issuers. */

/**
 * Refuses a file, or a link to it, that another user could have written. A file that cannot be reached is
 * left to its reader.
 */
export function requireTrustedFile(option: string, path: string): void {
  for (const stats of [findFile(path, lstatSync), findFile(path, statSync)]) {
    if (!stats) return;
    const isOwn = stats.uid === 0 || stats.uid === process.geteuid?.();
    // Every link has mode 777; the folder decides who can replace it.
    const isWritable = !stats.isSymbolicLink() && (stats.mode & 0o022) !== 0;
    if (isOwn && !isWritable) continue;
    throw new ConfigError(
      'service.key-shared',
      `${option} names ${path}, which others could have written`,
      {
        expected: 'a file of this user or of root that only its owner can write to',
        found: isOwn ? `mode 0${(stats.mode & 0o777).toString(8)}` : `a file of user ${stats.uid}`,
        hint: `run "chmod go-w" on it, or name a copy of your own`,
      },
    );
  }
}

/** Facts about a file; undefined if it cannot be reached. */
function findFile(path: string, look: (path: string) => Stats): Stats | undefined {
  try {
    return look(path);
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}
