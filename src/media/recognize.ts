import { findCarriedDisk, openDisk } from './disk-image.ts';
import { openGivenIso } from './delta/describe.ts';
import { useImage } from './open.ts';

/* Owns what tells the kinds of media apart before anything else of them is read. */

export type RecognizedMedium = {
  /** Volume identifier; absent: a disk image. */
  readonly label?: string;
  /** True for an ISO that carries a disk image. */
  readonly hasDisk: boolean;
};

/** @throws the errors of `openGivenIso` if the file is neither a disk image nor an ISO */
export const recognizeMedium = (path: string): Promise<RecognizedMedium> =>
  useImage(path, async (image) => {
    if (await openDisk(image)) return { hasDisk: false };
    const iso = await openGivenIso(image);
    const carried = await findCarriedDisk(iso);
    return { label: iso.volume.volumeId, hasDisk: carried !== undefined };
  });
