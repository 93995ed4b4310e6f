import { digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { locateKargAreas } from '../../iso/coreos/kargs.ts';
import type { IndexExtent, MediaIndex, MutableArea } from '../index/media-index.ts';
import { PRISTINE_IGNITION_PATH } from '../index/media-paths.ts';
import type { IsoFiles } from '../open-medium.ts';
import { parseIgnition } from '../../ignition/config.ts';
import { decodeEmbedded, planEmbedPart, planKargParts } from './live-areas.ts';
import { sortParts, type OverlayPart } from './overlay.ts';

/** Far above any Ignition config that a machine boots with. */
const LIMIT = 64 * 1024 * 1024;

/** The config of a medium of ours as it is without values of a site, packed; undefined on other images. */
export async function readPristineArchive(
  iso: Pick<IsoFiles, 'find' | 'readFile'>,
): Promise<Uint8Array | undefined> {
  const node = await iso.find(PRISTINE_IGNITION_PATH);
  return node?.kind === 'file' ? iso.readFile(node, LIMIT) : undefined;
}

/**
 * The areas of a medium of ours as they are without values of a site, by what else is on the medium.
 *
 * @throws IntegrityError `customize.pristine` where that does not make what the index names
 */
export async function planPristine(
  iso: Pick<IsoFiles, 'find' | 'readFile' | 'readBytes'>,
  areas: readonly MutableArea[],
): Promise<readonly OverlayPart[]> {
  const archive = await readPristineArchive(iso);
  const kargs = await locateKargAreas(iso);
  const parts = sortParts([
    ...areas
      .filter(({ kind }) => kind === 'ignition')
      .map((area) => planEmbedPart(area, archive ?? new Uint8Array())),
    ...planKargParts(kargs, kargs.default),
  ]);
  for (const { offset, size, digest } of areas) {
    const part = parts.find((each) => each.offset === offset && each.bytes.length === size);
    const found = part && digestOf(part.bytes);
    if (found === digest) continue;
    throw new IntegrityError(
      'customize.pristine',
      `${PRISTINE_IGNITION_PATH} and coreos/kargs.json do not make the area at byte ${offset}`,
      { expected: digest, found: found ?? 'nothing', hint: 'repair the ISO with "sealift repair"' },
    );
  }
  return parts;
}

/** The extents of an index with the digests that they have without values of a site. */
export const withPristineDigests = ({
  extents,
}: Pick<MediaIndex, 'extents'>): readonly IndexExtent[] =>
  extents.map((extent) => {
    const { offset, size, paths, pristine } = extent;
    return pristine ? { offset, size, paths, digest: pristine } : extent;
  });

/** Whether an area has other bytes than these. */
export async function isCustomised(
  { readBytes }: Pick<IsoFiles, 'readBytes'>,
  parts: readonly OverlayPart[],
): Promise<boolean> {
  for (const { offset, bytes } of parts) {
    const found = await readBytes(offset, bytes.length);
    if (!Buffer.from(found).equals(bytes)) return true;
  }
  return false;
}

/** What is wrong with an area for an Ignition config, whatever values it has; undefined where nothing is. */
export async function explainArea(bytes: Uint8Array): Promise<string | undefined> {
  try {
    const { config } = await decodeEmbedded(bytes);
    if (config === undefined) return 'has no Ignition config, which the medium had at first';
    parseIgnition(config, 'the embedded Ignition config');
    return undefined;
  } catch (error) {
    if (!(error instanceof IntegrityError)) throw error;
    return `has no Ignition config that can be read: ${error.message}`;
  }
}
