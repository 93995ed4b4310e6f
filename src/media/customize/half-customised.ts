import { lstat, realpath } from 'node:fs/promises';
import { readRegularFile } from '../../base/disk/open-file.ts';
import { DiskError, isErrno, SealiftError } from '../../base/errors.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import { isOldOrNew, parseSavedAreas } from './saved-areas.ts';

/** Where the old bytes of an ISO are while it is changed in place. */
export const asideOf = (stem: string): string => `${stem}.customize`;

/**
 * Refuses an ISO that a killed run has left customised in part, or in whole but not for good: the next run in place
 * undoes it. One that it had not begun to write is as it was.
 *
 * @param stem of a device, which has nothing beside it: its name in the work directory
 * @throws DiskError `customize.half-way`
 */
export async function refuseHalfCustomised(image: RandomAccess, stem?: string): Promise<void> {
  const text = await readAside(image.path, stem);
  const saved = text === undefined ? undefined : parseSavedAreas(text);
  if (!saved) return; // none, or a damaged one, which the next run in place names
  let isBegun = false;
  for (const { offset, old, now } of saved) {
    if (offset + old.length > image.size) return;
    const found = await image.read(offset, old.length);
    if (!isOldOrNew(found, { old, now })) return; // of another ISO
    isBegun ||= !found.equals(old);
  }
  if (!isBegun) return;
  throw new DiskError(
    'customize.half-way',
    `${image.path} is customised in part: a run was killed`,
    {
      hint: `run "sealift customize ${image.path} --in-place" again with its values, or with --reset: it undoes that first`,
    },
  );
}

/** Of the ISO's own user: anybody can write beside an ISO in a folder that is open to all. */
async function readAside(path: string, stem?: string): Promise<string | undefined> {
  try {
    const real = await realpath(path);
    const aside = asideOf(stem ?? real);
    const isForeign = stem === undefined && (await lstat(aside)).uid !== (await lstat(real)).uid;
    return isForeign ? undefined : (await readRegularFile(aside))?.toString('utf8');
  } catch (error) {
    const isUnreadable = isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ENAMETOOLONG');
    if (isUnreadable || error instanceof SealiftError) return undefined;
    throw error;
  }
}
