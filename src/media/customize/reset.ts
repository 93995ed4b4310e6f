import { IntegrityError, UsageError } from '../../base/errors.ts';
import { findEmbedArea, type IsoImage, locateKargAreas } from '../../iso/index.ts';
import {
  type OverlayPart,
  readLiveAreas,
  planEmbedPart,
  planKargParts,
  planPristine,
  sortParts,
} from '../areas.ts';
import { holdsInstallation, planBuilt, readBuilt } from '../built.ts';
import { type MediaIndex, readIndex } from '../media-index.ts';

/* Decides which bytes of an ISO change when values are taken off. */

/** State that `--reset` gives back: as the build left it, or without values of any site. */
export type ResetTo = 'built' | 'bare';

/**
 * Plans the bytes that restore an ISO. On ISOs of other makers these are an empty embed area and the default
 * arguments, as in CoreOS's own tool. A bare medium keeps no copy of its build's values.
 *
 * @throws UsageError `customize.no-pristine` for media of the first versions, `customize.no-built` if the
 * medium no longer carries what its build left; IntegrityError `customize.pristine`, `customize.built`,
 * `iso.no-embed-area` and similar
 */
export async function planReset(
  iso: IsoImage,
  to: ResetTo = 'built',
): Promise<readonly OverlayPart[]> {
  const index = await readIndex(iso);
  const built = await readBuilt(iso);
  if (index) return planIndexed(iso, index, to === 'bare' ? 'bare' : built);
  // An installation ISO without an index has nothing to install once its config is gone.
  if (built === 'dropped') throw noBuilt(iso.path, 'build it again from its configuration');
  if (typeof built === 'object') return planBuilt(iso, built);
  await refuseInstallation(iso);
  const area = await findEmbedArea(iso);
  return sortParts([planEmbedPart(area, new Uint8Array()), ...(await planDefaults(iso))]);
}

/** Refuses to empty the area of an installation ISO that carries no proof: it would install nothing. */
async function refuseInstallation(iso: IsoImage): Promise<void> {
  const { embed } = await readLiveAreas(iso);
  if (await holdsInstallation(embed.bytes)) {
    throw noBuilt(iso.path, 'build it again from its configuration');
  }
}

/** @param to the areas as built, or `bare` for no values of any site */
function planIndexed(
  iso: IsoImage,
  { mutable }: MediaIndex,
  to: Awaited<ReturnType<typeof readBuilt>>,
): Promise<readonly OverlayPart[]> {
  if (!mutable) throw noPristine(iso.path);
  if (to === 'dropped') throw noBuilt(iso.path, 'take all values off with --reset=bare');
  return typeof to === 'object' ? planBuilt(iso, to) : planPristine(iso, mutable);
}

export const noBuilt = (path: string, hint: string): UsageError =>
  new UsageError(
    'customize.no-built',
    `${path} no longer carries the values that its build gave it`,
    { hint },
  );

/** Plans the default arguments; empty for images older than the areas for arguments. */
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
    `${path} was made by an earlier version and does not carry its original config`,
    { hint: 'build it again, with or without the values' },
  );
