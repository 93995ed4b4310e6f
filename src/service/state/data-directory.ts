import { lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Stats } from 'node:fs';
import { makeDirectory } from '../../base/disk/files.ts';
import { isOwnUser } from '../../base/disk/open-file.ts';
import { DiskError } from '../../base/errors.ts';

/* Owns the folder of the service: it is held to the rules of work directories. */

/** Folders below it, which the service alone makes. */
const PLACES = ['records', 'cache', 'overlays', 'workers'];

/**
 * Makes the folder of the service, or checks one that exists: records that others could have written are
 * not read. Its group may write to it, with a warning, because volumes of Kubernetes have such a group
 * (`fsGroup`); what is below is ours alone.
 */
export async function claimDataDirectory(
  data: string,
  warn: (message: string) => void,
): Promise<void> {
  await makeDirectory(data, 0o700);
  await requireOwner(await lstat(data), data);
  const stats = await stat(data);
  await requireOwner(stats, data);
  if ((stats.mode & 0o002) !== 0) throw shared(data, stats);
  if ((stats.mode & 0o020) !== 0) {
    warn(`the group of "${data}" can write to it, and so remove or replace records`);
  }
  for (const place of PLACES) {
    const path = join(data, place);
    await makeDirectory(path, 0o700);
    const found = await lstat(path);
    await requireOwner(found, path);
    if (found.isSymbolicLink() || (found.mode & 0o022) !== 0) throw shared(path, found);
  }
}

async function requireOwner({ uid }: Stats, path: string): Promise<void> {
  if (uid === 0 || (await isOwnUser(uid, join(path, 'probe')))) return;
  throw new DiskError('service.data-foreign', `"${path}" belongs to another user`, {
    expected: `user ${process.geteuid?.() ?? ''}`,
    found: `user ${uid}`,
    hint: 'name another --data, or a new folder inside it',
  });
}

const shared = (path: string, stats: Stats): DiskError =>
  new DiskError('service.data-shared', `others could have written to "${path}"`, {
    expected: 'a folder that its owner alone can write to',
    found: stats.isSymbolicLink() ? 'a link' : `mode 0${(stats.mode & 0o7777).toString(8)}`,
    hint: 'check what it holds, and give it mode 700, or name another --data',
  });
