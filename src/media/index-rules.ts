import type { ByteRange } from '../base/random-access.ts';
import {
  COUNT,
  defaulted,
  DIGEST,
  integerFrom,
  list,
  oneOf,
  optional,
  record,
  refine,
  TEXT,
} from '../shape/shape.ts';
import { INDEX_CATALOGS } from './index-catalogs.ts';

/* The form of an index. Members that it does not name are of other versions, and stay. */

const KEPT = { others: 'kept' } as const;

/** Maximum number of mutable areas; a medium has one for Ignition and one for each boot menu. */
const MOST_MUTABLE = 100;

/** Larger than any Ignition config that a machine boots with. */
const LARGEST_MUTABLE = 64 * 1024 * 1024;

const MUTABLE_AREAS = list(
  record(
    { kind: TEXT, digest: DIGEST, offset: COUNT, size: integerFrom(0, LARGEST_MUTABLE) },
    KEPT,
  ),
);

const IMAGE = record(
  {
    name: TEXT,
    set: TEXT,
    source: TEXT,
    repository: TEXT,
    tags: list(TEXT),
    manifests: list(TEXT),
  },
  KEPT,
);

const EXTENT = record(
  {
    offset: COUNT,
    size: COUNT,
    digest: optional(DIGEST),
    paths: defaulted(list(TEXT), () => []),
  },
  { others: 'left-out' },
);

/** Members of an index of format 1 that was written before indexes had a digest. */
export const KEYS_WITHOUT_DIGEST: ReadonlySet<string> = new Set([
  'format',
  'product',
  'base',
  'release',
  'images',
  'extents',
]);

export const INDEX = record(
  {
    format: oneOf(1, 2, 3, 4, 5),
    product: TEXT,
    program: optional(TEXT),
    release: record({ version: TEXT, reference: TEXT, architecture: TEXT }, KEPT),
    unsigned: optional(list(TEXT)),
    base: optional(record({ digest: TEXT, osStream: optional(TEXT) }, KEPT)),
    areas: optional(
      record(
        { structures: COUNT, files: COUNT, index: COUNT, smallBlobs: COUNT, blobs: COUNT },
        KEPT,
      ),
    ),
    mutable: optional(
      refine(MUTABLE_AREAS, ({ length }) =>
        length <= MOST_MUTABLE ? undefined : `has more than ${MOST_MUTABLE} areas`,
      ),
    ),
    catalogs: optional(INDEX_CATALOGS),
    images: list(IMAGE),
    leftOut: optional(list(TEXT)),
    extents: list(EXTENT),
  },
  KEPT,
);

/** Our own indexes have no overlaps; checking them would read more bytes than the medium has. */
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
