import { type Digest, digestOf } from '../../base/digest.ts';
import type { RandomAccess, RangeSource } from '../../base/random-access.ts';
import { createCachedAccess, createRangeReader } from '../../base/ranges.ts';
import { type S3Address, openS3Source } from '../../base/s3/object.ts';
import type { S3 } from '../../base/s3/s3.ts';
import { digestCanonicalJson } from '../../base/text/json.ts';
import type { Layout } from '../../iso/index.ts';
import type { ExtentOpener } from '../../pour/index.ts';
import type { MediaReader } from '../place.ts';
import type { EarlierExtent, EarlierContents } from './parts.ts';
import { type StoredObject, bareEtag, openStoredObject, type FoundObject } from './stored.ts';

/* An object that a build of ours sent: how it describes itself, and when its bytes may be copied. */

/** The existing object, as a build of ours left it. */
export type EarlierObject = EarlierContents & {
  readonly etag: string;
  readonly access: RandomAccess;
};

export type SendOptions = {
  readonly layout: Layout;
  /** Name of the layout, also stored in the metadata of the object. */
  readonly digest: Digest;
  readonly metadata: Readonly<Record<string, string>>;
  readonly open: (signal: AbortSignal) => StoredObject;
  readonly endpoint: string;
  readonly record: string;
  /** ETag of the existing object. */
  readonly replaces?: string;
  readonly earlier?: EarlierObject;
  readonly openExtent: ExtentOpener;
  readonly lanes: number;
  /** Number of parts that every service takes; absent: 1000, the default of Swift. */
  readonly fewParts?: number;
  readonly signal: AbortSignal;
  /** The last step before the object is replaced. */
  readonly beforeComplete: () => Promise<void>;
  readonly onProgress: (bytes: number, fetched: number) => void;
  readonly warn: (message: string) => void;
};

export type SentCounters = {
  /** Bytes from registries, and from this machine. */
  fetched: number;
  copied: number;
  /** Bytes of parts that an earlier run sent. */
  reused: number;
  /** Bytes of parts that were sent. */
  written: number;
  /** Bytes that the service copied out of the earlier object. */
  copiedByServer: number;
};

export type SentIso = SentCounters & {
  /** Digest of the whole ISO; if it is absent, `noChecksum` gives the reason. */
  readonly digest?: Digest;
  readonly noChecksum?: string;
};

/** Metadata of an object; its report states the ETag with which it was finished. */
export const OBJECT_KEYS = {
  layout: 'sealift-layout',
  extents: 'sealift-extents',
  etag: 'sealift-etag',
} as const;

/** Unlike the digest of a layout, it can be computed from the contents of the medium. */
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
  readonly extents: readonly EarlierExtent[];
}): Digest =>
  digestCanonicalJson([
    size,
    ...extents
      .toSorted((a, b) => a.offset - b.offset)
      .map((extent) => [extent.offset, extent.size, extent.digest ?? null]),
  ]);

/**
 * The existing object, if it has the ETag with which a build of ours finished it, after every byte had been
 * verified, and its index agrees with its metadata. Undefined for any other object.
 *
 * @param options `readExtents` returns undefined for bytes that are not a whole medium
 */
export async function openEarlierObject(
  s3: S3,
  found: FoundObject & { readonly address: S3Address },
  {
    readExtents,
    signal,
  }: {
    readonly readExtents: MediaReader['readExtents'];
    readonly signal: AbortSignal;
  },
): Promise<EarlierObject | undefined> {
  const { address } = found;
  const named = found.metadata[OBJECT_KEYS.extents];
  if (named === undefined) return undefined;
  const source = await openS3Source(s3, address, signal);
  if (bareEtag(source.version ?? '') !== found.etag) return undefined; // another object by now
  const access = await openAccess(s3, source, signal);
  const known = await readExtents(access);
  if (!known) return undefined;
  const { size } = access;
  const extents = await Promise.all(
    known.map(async (extent) => ({
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

/** Undefined if no build of ours sent the object. */
export async function openSentObject(
  s3: S3,
  address: S3Address,
  signal: AbortSignal,
): Promise<RandomAccess | undefined> {
  const found = await openStoredObject(s3, address, signal).look();
  if (found?.metadata[OBJECT_KEYS.extents] === undefined) return undefined;
  return openAccess(s3, await openS3Source(s3, address, signal), signal);
}

export type OpenStored = (address: S3Address) => StoredObject;

/** The objects that describe an ISO, next to it. */
export const objectsBeside = ({ bucket, key }: S3Address) => ({
  report: { bucket, key: `${key}.report.json` },
  checksum: { bucket, key: `${key}.sha256` },
});

/**
 * True if an object has the ETag that the service gave our build. Metadata proves nothing about bytes: a
 * program that writes the object again may keep it.
 *
 * @param noted the record in the work directory of an upload that was not sealed
 */
export async function isAsSent(
  { address, etag }: { readonly address: S3Address; readonly etag: string },
  noted: string | undefined,
  open: OpenStored,
): Promise<boolean> {
  if (etag === '') return false;
  if (etag === noted) return true;
  return (await open(objectsBeside(address).report).look())?.metadata[OBJECT_KEYS.etag] === etag;
}
