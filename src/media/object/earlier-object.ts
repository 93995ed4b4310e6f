import { digestCanonicalJson } from '../../base/text/json.ts';
import { digestOf, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { RangeSource } from '../../base/random-access.ts';
import type { S3Address } from '../../base/s3/object.ts';
import type { S3 } from '../../base/s3/s3.ts';
import { openS3Source } from '../../base/s3/object.ts';
import type { Layout } from '../../iso/extent.ts';
import { openIso } from '../../iso/read/open.ts';
import type { Places } from '../../iso/extent.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import { placesOf, readIndex, type IndexExtent, type MediaIndex } from '../index/media-index.ts';
import { createCachedAccess } from '../../base/ranges.ts';
import { createRangeReader } from '../../base/ranges.ts';
import type { EarlierObject } from './send-options.ts';
import { bareEtag, openStoredObject, type FoundObject } from './stored-object.ts';

/** What an object says of itself, in its metadata; its report says with which ETag it was finished. */
export const OBJECT_KEYS = {
  layout: 'sealift-layout',
  extents: 'sealift-extents',
  etag: 'sealift-etag',
} as const;

/**
 * Names all extents with bytes: the rest of an ISO is zeros. Unlike the digest of a layout, it can be
 * computed from what stands on the medium.
 */
export const nameExtents = ({ size, extents }: Pick<Layout, 'size' | 'extents'>): Digest =>
  nameListed({
    size,
    extents: extents.filter(({ source }) => source.kind !== 'zero'),
  });

const nameListed = ({
  size,
  extents,
}: {
  readonly size: number;
  readonly extents: readonly Pick<IndexExtent, 'offset' | 'size' | 'digest'>[];
}): Digest =>
  digestCanonicalJson([
    size,
    ...extents
      .toSorted((a, b) => a.offset - b.offset)
      .map((extent) => [extent.offset, extent.size, extent.digest ?? null]),
  ]);

/**
 * The object that is there, where it has the ETag that a build of ours finished it with, when every byte had been
 * verified, and what its index says is what its metadata says. Undefined for any other object.
 */
export async function openEarlierObject(
  s3: S3,
  found: FoundObject & { readonly address: S3Address },
  signal: AbortSignal,
): Promise<EarlierObject | undefined> {
  const { address } = found;
  const named = found.metadata[OBJECT_KEYS.extents];
  if (named === undefined) return undefined;
  const source = await openS3Source(s3, address, signal);
  if (bareEtag(source.version ?? '') !== found.etag) return undefined; // another one by now
  const access = await openAccess(s3, source, signal);
  const index = await readOwnIndex(access);
  if (!index) return undefined;
  const { size } = access;
  const extents = await Promise.all(
    index.extents.map(async (extent) => ({
      ...extent,
      digest: extent.digest ?? digestOf(await access.read(extent.offset, extent.size)),
    })),
  );
  if (nameListed({ size, extents }) !== named) return undefined;
  return { size, extents, etag: found.etag, access };
}

async function openAccess(s3: S3, source: RangeSource, signal: AbortSignal): Promise<RandomAccess> {
  const host = await s3.hostOf(signal);
  const openBudget = (signal: AbortSignal) => s3.retries.open(host, signal);
  const readRange = createRangeReader(source, { signal, host, openBudget });
  return createCachedAccess(source, readRange, () => Promise.resolve());
}

/** Of an object that is not a medium, or a damaged one: none. */
async function readOwnIndex(access: RandomAccess): Promise<MediaIndex | undefined> {
  try {
    return await readIndex(await openIso(access));
  } catch (error) {
    if (error instanceof IntegrityError) return undefined;
    throw error;
  }
}

/** Where the object that is replaced has its bytes. */
export async function readObjectPlaces(
  s3: S3,
  address: S3Address,
  signal: AbortSignal,
): Promise<Places | undefined> {
  const found = await openStoredObject(s3, address, signal).look();
  if (found?.metadata[OBJECT_KEYS.extents] === undefined) return undefined;
  const source = await openS3Source(s3, address, signal);
  const index = await readOwnIndex(await openAccess(s3, source, signal));
  return index && placesOf(index);
}
