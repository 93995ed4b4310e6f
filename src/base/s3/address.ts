import { UsageError } from '../errors.ts';

/** An object: `s3://bucket/key`. */
export type S3Address = { readonly bucket: string; readonly key: string };

export const formatS3Address = ({ bucket, key }: S3Address): string => `s3://${bucket}/${key}`;

/** Of AWS; other services allow more. */
const BUCKET = /^[A-Za-z0-9][\w.-]{1,254}$/;
const MAX_KEY = 1024 - 64;

/**
 * A key with a part `.` or `..` is refused: HTTP clients and proxies would ask for another.
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
