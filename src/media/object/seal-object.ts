import { isDigest, hexOf, type Digest } from '../../base/digest.ts';
import { UsageError } from '../../base/errors.ts';
import { formatS3Address, type S3Address } from '../../base/s3/object.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import { parseJsonObject } from '../../shape/go-json.ts';
import type { FoundObject, StoredObject } from './stored-object.ts';
import { OBJECT_KEYS } from './earlier-object.ts';

/** Opens an object of the same service. */
export type OpenStored = (address: S3Address) => StoredObject;

const besides = ({ bucket, key }: S3Address) => ({
  report: { bucket, key: `${key}.report.json` },
  checksum: { bucket, key: `${key}.sha256` },
});

const isOurs = ({ metadata }: FoundObject): boolean => metadata[OBJECT_KEYS.layout] !== undefined;

/**
 * Decides, before anything is fetched, whether an object and the two beside it may be written: nothing is
 * there, or what a build of ours sent, or it is forced.
 *
 * @throws UsageError `output.exists`; what `StoredObject.look` throws
 */
export async function claimObject(
  address: S3Address,
  { open, force }: { readonly open: OpenStored; readonly force: boolean },
): Promise<void> {
  await open(address).listUploads(); // only this tells that there is no such bucket
  for (const one of [address, ...Object.values(besides(address))]) {
    const found = await open(one).look();
    if (!found || isOurs(found) || force) continue;
    throw new UsageError('output.exists', `${formatS3Address(one)} exists and would be replaced`, {
      expected: 'nothing, or an object that a build sent',
      found: `an object of ${found.size} bytes`,
      hint: 'name another key, or replace this object with --force',
    });
  }
}

export type FinishedObject = {
  /** Of the whole ISO, where it is known. */
  readonly digest?: Digest;
  /** Of the object, as the service gave it. */
  readonly etag: string;
  /** Whether the report is beside it: a build that is killed at its end leaves none. */
  readonly isSealed: boolean;
};

/**
 * Whether an object is what a build of ours left: it has the ETag that the service gave it then. Its metadata says
 * nothing of its bytes, for who writes it again may keep that.
 *
 * @param noted what the work directory has of an upload that was not sealed
 */
export async function isAsSent(
  { address, etag }: { readonly address: S3Address; readonly etag: string },
  noted: string | undefined,
  open: OpenStored,
): Promise<boolean> {
  if (etag === '') return false;
  if (etag === noted) return true;
  return (await open(besides(address).report).look())?.metadata[OBJECT_KEYS.etag] === etag;
}

/** Whether the object is of this layout already, and as a build of ours left it. */
export async function findFinished(
  address: S3Address,
  wanted: {
    readonly layout: Digest;
    readonly size: number;
    /** As in `isAsSent`. */
    readonly noted: string | undefined;
    readonly open: OpenStored;
  },
): Promise<FinishedObject | undefined> {
  const { layout, size, noted, open } = wanted;
  const found = await open(address).look();
  if (found?.metadata[OBJECT_KEYS.layout] !== layout || found.size !== size) return undefined;
  if (!(await isAsSent({ address, etag: found.etag }, noted, open))) return undefined;
  return { etag: found.etag, ...(await readReport(open(besides(address).report), found)) };
}

/** A damaged report is none: it is written again. */
async function readReport(
  report: StoredObject,
  { metadata, etag }: FoundObject,
): Promise<Omit<FinishedObject, 'etag'>> {
  const { metadata: told = {} } = (await report.look()) ?? {};
  const isOfIt =
    told[OBJECT_KEYS.layout] === metadata[OBJECT_KEYS.layout] && told[OBJECT_KEYS.etag] === etag;
  const content = isOfIt && parseJsonObject(Buffer.from(await report.read()).toString('utf8'));
  if (!content) return { isSealed: false };
  const { digest } = content;
  const isTold = typeof digest === 'string' && isDigest(digest);
  return { isSealed: true, ...(isTold && { digest }) };
}

/** A checksum of other bytes must not stand beside an object: it goes before the object is complete. */
export const removeChecksum = (address: S3Address, open: OpenStored): Promise<void> =>
  open(besides(address).checksum).remove();

/** Writes what tells of a finished ISO. */
export async function sealObject(
  address: S3Address,
  made: {
    readonly layout: Digest;
    /** Of the object, as the service gave it. */
    readonly etag?: string;
    readonly digest?: Digest;
    readonly report: Readonly<Record<string, Json | undefined>>;
    readonly open: OpenStored;
  },
): Promise<void> {
  const { layout, etag, digest, report, open } = made;
  const names = besides(address);
  const metadata = { [OBJECT_KEYS.layout]: layout };
  if (digest !== undefined) {
    const name = address.key.split('/').at(-1) ?? '';
    const about = { type: 'text/plain', metadata };
    await open(names.checksum).write(`${hexOf(digest)}  ${name}\n`, about);
  }
  const marked = { ...metadata, ...(etag !== undefined && { [OBJECT_KEYS.etag]: etag }) };
  const about = { type: 'application/json', metadata: marked };
  await open(names.report).write(formatReadableJson(report), about);
}
