import { isDigest } from '../base/digest.ts';
import { isObject } from '../base/lists.ts';
import type { ByteRange } from '../base/random-access.ts';
import { type Document, isTexts, isTextList } from '../shape/go-json.ts';
import { areCatalogs, isOptionalText } from './index-catalogs.ts';

/* The form that an index must have before its members are read. */

/** Limit on offsets and sizes: far larger than any medium, and the sum of two is still exact. */
const LARGEST_COUNT = 2 ** 52;

export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < LARGEST_COUNT;

export const isIndexForm = (document: Document): boolean =>
  typeof document['product'] === 'string' &&
  isOptionalText(document['program']) &&
  isOfReleases(document) &&
  isBase(document['base']) &&
  areAreas(document['areas']) &&
  areMutable(document['mutable']) &&
  areCatalogs(document['catalogs']) &&
  Array.isArray(document['extents']) &&
  Array.isArray(document['images']) &&
  (document['images'] as unknown[]).every(isImage);

const isOfReleases = ({ release, unsigned }: Document): boolean =>
  isTexts(release, ['version', 'reference', 'architecture']) &&
  (unsigned === undefined || isTextList(unsigned));

const AREAS = ['structures', 'files', 'index', 'smallBlobs', 'blobs'] as const;

const areAreas = (areas: unknown): boolean =>
  areas === undefined || (isObject(areas) && AREAS.every((name) => isCount(areas[name])));

/** Maximum number of mutable areas; a medium has one for Ignition and one for each boot menu. */
const MOST_MUTABLE = 100;

const areMutable = (areas: unknown): boolean =>
  areas === undefined ||
  (Array.isArray(areas) && areas.length <= MOST_MUTABLE && areas.every(isMutableArea));

const isMutableArea = (area: unknown): boolean =>
  isObject(area) &&
  typeof area['kind'] === 'string' &&
  typeof area['digest'] === 'string' &&
  isDigest(area['digest']) &&
  isCount(area['offset']) &&
  isCount(area['size']) &&
  area['size'] <= LARGEST_MUTABLE;

/** Far larger than any Ignition config that a machine boots with. */
const LARGEST_MUTABLE = 64 * 1024 * 1024;

const isBase = (base: unknown): boolean => base === undefined || isTexts(base, ['digest']);

function isImage(value: unknown): boolean {
  if (!isTexts(value, ['name', 'set', 'source', 'repository'])) return false;
  const { tags, manifests } = value as { tags?: unknown; manifests?: unknown };
  return isTextList(tags) && isTextList(manifests);
}

/**
 * Finds extents that begin before an earlier one ends. Our own indexes have no overlaps, and checking
 * overlapping extents would read more bytes than the medium has.
 */
export function findOverlaps<Extent extends ByteRange>(
  extents: readonly Extent[],
): ReadonlySet<Extent> {
  const overlaps = new Set<Extent>();
  let end = 0;
  for (const extent of extents.toSorted((a, b) => a.offset - b.offset)) {
    if (extent.size === 0) continue;
    if (extent.offset < end) overlaps.add(extent);
    else end = extent.offset + extent.size;
  }
  return overlaps;
}
