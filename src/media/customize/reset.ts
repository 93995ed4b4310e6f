import { UsageError } from '../../base/errors.ts';
import type { IsoImage } from '../../iso/index.ts';
import { decodeEmbedded, encodeEmbedded, type OverlayPart, planEmbedPart } from '../areas.ts';
import { BUILT_MEMBER, decodeBuilt, holdsInstallation } from '../built.ts';
import { readIndex } from '../media-index.ts';
import { planContents } from '../area-values.ts';
import { isOfOthers, type Medium, type MediumAreas, readMedium } from '../medium.ts';

/* Decides which bytes of an ISO change when values are taken off. */

/** As the build left it, or without values of any site. */
export type ResetTo = 'built' | 'bare';

/**
 * On ISOs of other makers, the embed area becomes empty and the arguments the default ones, as in CoreOS's
 * own tool. A bare medium keeps no copy of its build's values.
 *
 * @throws UsageError `customize.no-pristine` for media of the first versions, `customize.no-built` if the
 * medium no longer carries what its build left; IntegrityError `customize.built` and those of `readMedium`
 */
export async function planReset(
  iso: IsoImage,
  to: ResetTo = 'built',
): Promise<readonly OverlayPart[]> {
  const medium = await readMedium(iso, await readIndex(iso));
  const { areas } = medium;
  if (isOfOthers(medium)) return planEmptied(areas, iso.path);
  if (medium.provenBy === 'index' && !areas.bare) throw noPristine(iso.path);
  const contents = to === 'bare' ? areas.bare : areas.built;
  if (contents) return planContents(areas, contents, to);
  throw areas.damage ?? noBuilt(iso.path, areas.bare ? BARE : REBUILD);
}

/** Plans an ISO of another maker; an installation ISO that carries no proof would have nothing to install. */
async function planEmptied(areas: MediumAreas, path: string): Promise<readonly OverlayPart[]> {
  if (!areas.bare || (await holdsInstallation(areas.embed.bytes))) throw noBuilt(path);
  return planContents(areas, areas.bare, 'bare');
}

const BARE = 'take all values off with --reset=bare';
const REBUILD = 'build it again from its configuration';

export const noBuilt = (path: string, hint = REBUILD): UsageError =>
  new UsageError(
    'customize.no-built',
    `${path} no longer carries the values that its build gave it`,
    { hint },
  );

export const noPristine = (path: string): UsageError =>
  new UsageError(
    'customize.no-pristine',
    `${path} was made by an earlier version and does not carry its original config`,
    { hint: 'build it again, with or without the values' },
  );

/**
 * Zeros for the file of the copy, or the archive without it. Empty for a medium without a copy.
 *
 * @throws IntegrityError `customize.built` if the file is something else
 */
export async function planDropped({ areas }: Medium): Promise<readonly OverlayPart[]> {
  const copy = areas.now.find(({ kind }) => kind === 'built');
  if (copy) {
    decodeBuilt(copy.bytes);
    return [{ offset: copy.offset, bytes: new Uint8Array(copy.bytes.length) }];
  }
  const { embed } = areas;
  const embedded = await decodeEmbedded(embed.bytes);
  if (!embedded.others?.has(BUILT_MEMBER)) return [];
  const others = new Map([...embedded.others].filter(([name]) => name !== BUILT_MEMBER));
  return [planEmbedPart(embed, encodeEmbedded({ ...embedded, others }))];
}
