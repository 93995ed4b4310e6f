import { Readable } from 'node:stream';
import { UsageError, RegistryError } from '../errors.ts';
import { withoutUndefined } from '../lists.ts';
import type { RangeSource } from '../random-access.ts';
import type { S3 } from './s3.ts';

/** An object: `s3://bucket/key`. */
export type S3Address = { readonly bucket: string; readonly key: string };

export const formatS3Address = ({ bucket, key }: S3Address): string => `s3://${bucket}/${key}`;

/** Bucket names of AWS; other services allow more. */
const BUCKET = /^[A-Za-z0-9][\w.-]{1,254}$/;
const MAX_KEY = 1024 - 64;

/**
 * Parses the address of an object. A key with a part `.` or `..` is refused: HTTP clients and
 * proxies would request another key.
 *
 * @throws UsageError `object-store.address`
 */
export function parseS3Address(text: string): S3Address {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]*)\/(.*)$/s.exec(text) ?? [];
  const isKey = /^[^\p{Cc}]+$/u.test(key) && Buffer.byteLength(key) <= MAX_KEY;
  const hasDots = key.split('/').some((part) => /^\.{0,2}$/.test(part));
  if (BUCKET.test(bucket) && isKey && !hasDots) return { bucket, key };
  throw new UsageError('object-store.address', `"${text}" is not the address of an object`, {
    expected: 's3://BUCKET/KEY',
    found: text,
    hint: 'name a bucket and the key of one object, such as s3://media/appliance.iso',
  });
}

const NEVER = new AbortController().signal;

/**
 * Opens an object that is read by ranges, in its current version: a later version is refused.
 *
 * @throws errors of `S3.call`
 */
export async function openS3Source(
  s3: S3,
  address: S3Address,
  signal: AbortSignal = NEVER,
): Promise<RangeSource> {
  const name = formatS3Address(address);
  const wanted = { Bucket: address.bucket, Key: address.key };
  const found = await s3.call(
    ({ sdk, client, options }) => client.send(new sdk.HeadObjectCommand(wanted), options),
    { about: name, signal },
  );
  const version = found.ETag;
  return {
    name,
    size: found.ContentLength ?? 0,
    ...withoutUndefined({ version }),
    async open({ offset, size }, signal = NEVER) {
      const range = `bytes=${offset}-${offset + size - 1}`;
      const answer = await s3.call(
        ({ sdk, client, options }) =>
          client.send(
            new sdk.GetObjectCommand({ ...wanted, Range: range, IfMatch: version }),
            options,
          ),
        { about: name, signal },
      );
      const { Body: body, ContentRange: sent = '', ETag: etag } = answer;
      if (!(body instanceof Readable)) throw new Error('the SDK gives bodies as streams of Node');
      const isWanted = sent.startsWith(`bytes ${offset}-${offset + size - 1}/`);
      if (isWanted && etag === version) return body;
      body.destroy();
      throw isWanted ? changed(name) : noRanges(name, { range, sent });
    },
  };
}

const changed = (name: string): RegistryError =>
  new RegistryError('object-store.changed', `${name} changed while it was read`, {
    hint: 'run again when no other program writes to it',
  });

const noRanges = (
  name: string,
  { range, sent }: { readonly range: string; readonly sent: string },
): RegistryError =>
  new RegistryError(
    'object-store.answer',
    `the object store does not return the requested range of ${name}`,
    {
      expected: range,
      found: sent === '' ? 'all of it' : sent,
    },
  );
