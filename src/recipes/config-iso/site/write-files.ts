import { open, rename, rm } from 'node:fs/promises';
import { nameAside } from '../../../base/aside.ts';

export type NewFile = { readonly path: string; readonly data: string | Uint8Array };

/**
 * Writes files of mode 0600 aside, syncs them, and renames them when all are whole: nobody sees a
 * part of one. Their directories must be there; who needs the names to outlive a loss of power syncs
 * those. What is checked before it is used need not be synced.
 */
export async function writeFiles(files: readonly NewFile[], isSynced = true): Promise<void> {
  const asides = await Promise.all(
    files.map(async ({ path, data }) => ({ path, data, aside: await nameAside(path) })),
  );
  try {
    await settle(asides.map(({ aside, data }) => writeAside(aside, data, isSynced)));
    await settle(asides.map(({ aside, path }) => rename(aside, path)));
  } catch (error) {
    for (const { aside } of asides) await rm(aside, { force: true });
    throw error;
  }
}

/** Nothing is going on any more when it fails. */
async function settle(work: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(work)) {
    if (result.status === 'rejected') throw result.reason;
  }
}

async function writeAside(
  path: string,
  data: string | Uint8Array,
  isSynced: boolean,
): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(data);
    if (isSynced) await file.datasync();
  } finally {
    await file.close();
  }
}
