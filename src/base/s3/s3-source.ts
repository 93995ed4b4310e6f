import { Readable } from 'node:stream';
import { RegistryError } from '../errors.ts';
import { withoutUndefined } from '../members.ts';
import type { RangeSource } from '../range-source.ts';
import { formatS3Address, type S3Address } from './address.ts';
import type { S3 } from './s3.ts';

const NEVER = new AbortController().signal;

/**
 * An object that is read by ranges, as it is now: another one in its place is refused.
 *
 * @throws what `S3.call` throws
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
  new RegistryError('object-store.changed', `${name} has changed while it was read`, {
    hint: 'run again when nobody else writes to it',
  });

const noRanges = (
  name: string,
  { range, sent }: { readonly range: string; readonly sent: string },
): RegistryError =>
  new RegistryError('object-store.answer', `the object store does not give ranges of ${name}`, {
    expected: range,
    found: sent === '' ? 'all of it' : sent,
  });
