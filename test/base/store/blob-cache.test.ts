import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf, hexOf } from '../../../src/base/digest.ts';
import { createBlobCache } from '../../../src/base/store/blob-cache.ts';
import type { BlobSource } from '../../../src/base/store/blob-source.ts';
import type { Descriptor } from '../../../src/registry/manifest.ts';
import {
  patternOf,
  startScriptedRegistry,
  type ScriptedRegistry,
} from '../../support/scripted-registry.ts';
import { createTestClient } from '../../support/registry-client.ts';

const MIB = 1024 * 1024;
const bytes = patternOf(3 * MIB);
const options = { signal: new AbortController().signal, wait: () => Promise.resolve() };
/** No Linux process has this id: kernel.pid_max ends at 2^22. */
const DEAD_PID = 2 ** 22 + 1;
let directory: string;
let registry: ScriptedRegistry;
let client: ReturnType<typeof createTestClient>;
let blob: Descriptor;
let sources: readonly BlobSource[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'blob-cache-'));
  registry = await startScriptedRegistry();
  client = createTestClient();
  blob = registry.addBlob(bytes);
  sources = client.sourcesOf({ registry: registry.host, repository: 'a/b' });
});

afterEach(async () => {
  await client.close();
  await registry.close();
  await rm(directory, { recursive: true });
});

const leaveBehind = async (content: Uint8Array, pid = DEAD_PID): Promise<void> => {
  await mkdir(join(directory, 'partial'), { recursive: true });
  await writeFile(join(directory, 'partial', `${hexOf(blob.digest)}.${pid}.feed.1`), content);
};

const inBlobs = (path: string): boolean => path.includes('/blobs/');

describe('the blob cache', () => {
  it('fetches a blob once, and then is a source of it', async () => {
    const cache = createBlobCache(directory);
    expect((await cache.list()).has(blob.digest)).toBe(false);
    expect(await cache.source.open(blob, { ...options, offset: 0 })).toBeUndefined();
    const [path] = await Promise.all([
      cache.ensure(blob, sources, options),
      cache.ensure(blob, sources, options),
    ]);
    expect(path).toBe(join(directory, 'sha256', hexOf(blob.digest)));
    expect(bytes.equals(await readFile(path))).toBe(true);
    expect(registry.requestsOf('blobs')).toHaveLength(1);
    expect(await readdir(join(directory, 'partial'))).toEqual([]);
    const opened = await cache.source.open(blob, { ...options, offset: 3 * MIB - 2 });
    expect((await opened?.body.toArray())?.length).toBe(1);
  });

  it('continues what a killed run left, after hashing it again', async () => {
    await leaveBehind(bytes.subarray(0, 2 * MIB));
    const progress: number[] = [];
    await createBlobCache(directory).ensure(blob, sources, {
      ...options,
      onProgress: (count) => progress.push(count),
    });
    expect(registry.requestsOf('blobs').map(({ headers }) => headers.range)).toEqual([
      `bytes=${2 * MIB}-${3 * MIB - 1}`,
    ]);
    expect(progress.at(-1)).toBe(3 * MIB);
  });

  it('continues the longest of several parts, and removes the others', async () => {
    await leaveBehind(bytes.subarray(0, 2 * MIB), DEAD_PID);
    await leaveBehind(bytes.subarray(0, MIB), DEAD_PID + 1);
    await createBlobCache(directory).ensure(blob, sources, options);
    expect(registry.requestsOf('blobs')[0]?.headers.range).toBe(`bytes=${2 * MIB}-${3 * MIB - 1}`);
    expect(await readdir(join(directory, 'partial'))).toEqual([]);
  });

  it('starts again when the part that was left is damaged', async () => {
    await leaveBehind(Buffer.alloc(2 * MIB));
    const path = await createBlobCache(directory).ensure(blob, sources, options);
    expect(digestOf(await readFile(path))).toBe(blob.digest);
    await rm(path);
    await leaveBehind(Buffer.concat([bytes, bytes]));
    await createBlobCache(directory).ensure(blob, sources, options);
    expect(digestOf(await readFile(path))).toBe(blob.digest);
  });

  it('continues its own part after a source gave up', async () => {
    const cache = createBlobCache(directory);
    registry.script(({ path }, nth) =>
      inBlobs(path) ? (nth === 1 ? { cutAfter: MIB } : { status: 404 }) : undefined,
    );
    await expect(cache.ensure(blob, sources, options)).rejects.toThrow();
    registry.script(() => undefined);
    await cache.ensure(blob, sources, options);
    expect(registry.requestsOf('blobs').at(-1)?.headers.range).toBe(`bytes=${MIB}-${3 * MIB - 1}`);
  });

  it('does not touch a part that a living process writes', async () => {
    await leaveBehind(bytes.subarray(0, MIB), process.ppid);
    await createBlobCache(directory).ensure(blob, sources, options);
    expect(registry.requestsOf('blobs')[0]?.headers.range).toBeUndefined();
    expect(await readdir(join(directory, 'partial'))).toHaveLength(1);
  });

  it('takes the next source when the bytes of one are wrong', async () => {
    const liar = await startScriptedRegistry();
    liar.script(({ path }) =>
      inBlobs(path) ? { status: 200, body: patternOf(3 * MIB, 2) } : undefined,
    );
    const lies = client.sourcesOf({ registry: liar.host, repository: 'a/b' });
    const cache = createBlobCache(directory);
    const path = await cache.ensure(blob, [...lies, ...sources], options);
    expect(digestOf(await readFile(path))).toBe(blob.digest);
    await rm(path);
    await expect(createBlobCache(directory).ensure(blob, lies, options)).rejects.toMatchObject({
      code: 'blob.digest-mismatch',
      expected: blob.digest,
      found: digestOf(patternOf(3 * MIB, 2)),
    });
    await liar.close();
  });

  it('does not trust a file that another run left under a name', async () => {
    const cache = createBlobCache(directory);
    const path = join(directory, 'sha256', hexOf(blob.digest));
    await mkdir(join(directory, 'sha256'));
    await writeFile(path, Buffer.alloc(3 * MIB));
    await cache.ensure(blob, sources, options);
    expect(digestOf(await readFile(path))).toBe(blob.digest);
    await writeFile(path, 'short');
    await expect(cache.source.open(blob, { ...options, offset: 0 })).rejects.toMatchObject({
      code: 'blob.too-short',
    });
  });

  it('stores small documents by their digest', async () => {
    const cache = createBlobCache(directory);
    const digest = await cache.put(Buffer.from('hello'));
    expect(digest).toBe(digestOf('hello'));
    expect((await cache.list()).has(digest)).toBe(true);
  });
});
