import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttp, type Http } from '../../src/base/http/http.ts';
import { openS3Source } from '../../src/base/s3/s3-source.ts';
import { createS3, type S3 } from '../../src/base/s3/s3.ts';
import { startSwift, type Swift } from '../support/swift.ts';
import { requireTool } from '../support/tools.ts';

/*
 * All that needs a real S3 service, in one file: it is Debian's Swift, which takes seconds to start.
 */

const SERVERS = ['account', 'container', 'object', 'proxy'].map((kind) => `swift-${kind}-server`);
const hasSwift = [...SERVERS, 'memcached'].every(requireTool);

let directory: string;
let swift: Swift;
let http: Http;
let s3: S3;

const { signal } = new AbortController();
const Bucket = 'media';

beforeAll(async () => {
  if (!hasSwift) return;
  directory = await mkdtemp(join(tmpdir(), 'swift-'));
  swift = await startSwift(directory);
  http = createHttp({ env: {} });
  s3 = createS3({ http, env: swift.env });
  await s3.call(
    ({ client, options }) => client.send(new CreateBucketCommand({ Bucket }), options),
    { about: Bucket, signal },
  );
});

afterAll(async () => {
  if (!hasSwift) return;
  await http.close();
  await swift.stop();
  await rm(directory, { recursive: true });
});

const put = (Key: string, Body: Uint8Array) =>
  s3.call(
    ({ sdk, client, options }) =>
      client.send(new sdk.PutObjectCommand({ Bucket, Key, Body }), options),
    { about: Key, signal },
  );

async function textOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString();
}

describe.skipIf(!hasSwift)('an object that is read by ranges', () => {
  it('has its size, its version, and the bytes of each range', async () => {
    await put('folder/a b.bin', Buffer.from('0123456789'));
    const source = await openS3Source(s3, { bucket: Bucket, key: 'folder/a b.bin' });
    expect(source).toMatchObject({
      name: 's3://media/folder/a b.bin',
      size: 10,
      version: '"781e5e245d69b566979b86e28d23f2c7"',
    });
    const range = { offset: 3, size: 4 };
    expect(await textOf(await source.open(range))).toBe('3456');
  });

  it('is refused when another one took its place', async () => {
    await put('changing', Buffer.from('0123456789'));
    const source = await openS3Source(s3, { bucket: Bucket, key: 'changing' });
    await put('changing', Buffer.from('9876543210'));
    const reading = source.open({ offset: 0, size: 4 });
    await expect(reading).rejects.toMatchObject({ code: 'object-store.changed' });
  });

  it('is not found where there is none, and forbidden with a wrong secret, which no message shows', async () => {
    const address = { bucket: Bucket, key: 'none' };
    await expect(openS3Source(s3, address)).rejects.toMatchObject({
      code: 'object-store.not-found',
    });
    const env = { ...swift.env, AWS_SECRET_ACCESS_KEY: 'wrong-secret-of-a-test' };
    const stranger = createS3({ http, env });
    const error: unknown = await openS3Source(stranger, address).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'object-store.forbidden' });
    expect(String((error as Error).cause) + String(error)).not.toContain('wrong-secret');
  });
});
