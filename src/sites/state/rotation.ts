import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../base/disk/files.ts';
import { readOwnFile } from '../../base/disk/open-file.ts';
import { stateDirectoryOf } from './site-places.ts';

/** Names of sites have no dot: no site's state is called so. */
const markerOf = (out: string): string => join(stateDirectoryOf(out), 'rotation.marker');

/** One replacement of all keys, which may take several runs of the program. */
export type Rotation = { readonly id: string; readonly isContinued: boolean };

/**
 * Begins to replace all keys, or goes on where a rotation was killed or left sites behind: no key is
 * replaced twice.
 */
export async function beginRotation(out: string): Promise<Rotation> {
  const found = (await readOwnFile(markerOf(out)))?.toString('utf8').trim();
  if (found !== undefined && /^[0-9a-f]{16}$/.test(found)) return { id: found, isContinued: true };
  const id = randomBytes(8).toString('hex');
  await writeFileAtomic(markerOf(out), `${id}\n`);
  return { id, isContinued: false };
}

/** Call it when every site has its new keys, or none is wanted any more. */
export const endRotation = (out: string): Promise<void> => rm(markerOf(out), { force: true });
