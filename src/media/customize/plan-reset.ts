import { IntegrityError, UsageError } from '../../base/errors.ts';
import { locateKargAreas } from '../../iso/coreos/kargs.ts';
import { findEmbedArea } from '../../iso/coreos/embed-area.ts';
import type { IsoImage } from '../../iso/read/open.ts';
import { readIndex } from '../index/media-index.ts';
import { planEmbedPart, planKargParts } from './live-areas.ts';
import { sortParts, type OverlayPart } from './overlay.ts';
import { planPristine } from './pristine-areas.ts';

/**
 * What restores an ISO as it was before it got values of a site. On ISOs of other makers that is an empty embed area and
 * the arguments that the ISO was built with, as CoreOS's own tool restores them.
 *
 * @throws UsageError `customize.no-pristine` for media of ours that do not carry what they were; IntegrityError
 * `customize.pristine`, `iso.no-embed-area` and the like
 */
export async function planReset(iso: IsoImage): Promise<readonly OverlayPart[]> {
  const index = await readIndex(iso);
  if (index?.mutable) return planPristine(iso, index.mutable);
  if (index) throw noPristine(iso.path);
  const area = await findEmbedArea(iso);
  return sortParts([planEmbedPart(area, new Uint8Array()), ...(await planDefaults(iso))]);
}

/** None on images from before there were areas for arguments. */
async function planDefaults(iso: IsoImage): Promise<readonly OverlayPart[]> {
  try {
    const kargs = await locateKargAreas(iso);
    return planKargParts(kargs, kargs.default);
  } catch (error) {
    if (error instanceof IntegrityError && error.code === 'kargs.no-areas') return [];
    throw error;
  }
}

export const noPristine = (path: string): UsageError =>
  new UsageError(
    'customize.no-pristine',
    `${path} was made by an earlier version: it does not carry the config that it had at first`,
    { hint: 'build it again, with the values or without' },
  );
