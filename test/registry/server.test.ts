import { once } from 'node:events';
import { mkdtemp, rm, truncate } from 'node:fs/promises';
import { request, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { pathTo, planDistributionTree } from '../../src/registry/layout/distribution.ts';
import { createRegistryServer, type RequestEntry } from '../../src/registry/server.ts';
import { directoryTree, type ServedTree } from '../../src/registry/layout/tree.ts';
import { buildImage, buildIndex, packTar, writeTree } from '../support/images.ts';

const image = buildImage([{ tar: await packTar([['file', 'x'.repeat(100_000)]]) }]);
const index = buildIndex([[{ architecture: 'amd64', os: 'linux' }, image]], { family: 'docker' });
const damaged = buildImage([{ tar: await packTar([['file', 'damaged']]) }]);
const [top] = index.manifests;
const [child] = image.manifests;
const [config = Buffer.alloc(0), layer = Buffer.alloc(0)] = [...image.blobs.values()];
const tags = ['v1', 'v10', 'v2', 'latest', 'a'];

/** Sparse files under names of their own: the first is more than any socket buffers. */
const big = digestOf('big');
const middle = digestOf('middle');
const SPARSE = [
  ['big', big, 1024 ** 3],
  ['middle', middle, 8 << 20],
] as const;

let root = '';
let server: Server;
let port = 0;
const entries: RequestEntry[] = [];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sealift-server-'));
  const images = [
    { repository: 'openshift/release', tags, manifests: index.manifests },
    { repository: 'ubi', tags: ['9'], manifests: image.manifests },
    { repository: 'openshift/release/nested', tags: [], manifests: image.manifests },
    { repository: 'damaged', tags: ['1'], manifests: damaged.manifests },
  ];
  const blobs = new Map([...index.blobs, ...damaged.blobs]);
  await writeTree(root, planDistributionTree(images), blobs);
  for (const [name, digest, size] of SPARSE) {
    const link = { path: pathTo.layerLink(name, digest), bytes: Buffer.from(digest) };
    const files = [{ path: pathTo.blob(digest), bytes: Buffer.alloc(0) }, link];
    await writeTree(
      root,
      files.map(({ path, bytes }) => ({ path, content: { kind: 'bytes', bytes } })),
      new Map(),
    );
    await truncate(join(root, pathTo.blob(digest)), size);
  }
  for (const { descriptor } of damaged.manifests) {
    await truncate(join(root, pathTo.blob(descriptor.digest)), 20);
  }
  server = createRegistryServer(directoryTree(root), {
    onRequest: (entry) => entries.push(entry),
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(root, { recursive: true, force: true });
});

type Reply = { status: number; headers: IncomingHttpHeaders; body: Buffer };

/** node:http sends the path as it is given; fetch would tidy it up. */
async function call(
  path: string,
  options: { method?: string; headers?: Record<string, string> } = {},
): Promise<Reply> {
  const sent = request({ host: '127.0.0.1', port, path, ...options }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const body = await buffer(response);
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

/** Takes all of an answer, and keeps nothing of it. */
const take = async (response: Response): Promise<void> =>
  response.body?.pipeTo(new WritableStream());

const json = ({ body }: Reply): unknown => JSON.parse(body.toString());
const codeOf = (reply: Reply): unknown =>
  (json(reply) as { errors: { code: string; message: string }[] }).errors[0]?.code;

describe('a registry server', () => {
  it('answers the ping that every client begins with', async () => {
    for (const path of ['/v2/', '/v2']) {
      const reply = await call(path);
      expect(reply.status).toBe(200);
      expect(reply.headers['docker-distribution-api-version']).toBe('registry/2.0');
    }
  });

  it('gives a manifest by tag and by digest, byte for byte, with its type and digest', async () => {
    const digest = top?.descriptor.digest ?? '';
    for (const reference of ['v1', digest, digest.replace(':', '%3A')]) {
      const reply = await call(`/v2/openshift/release/manifests/${reference}`);
      expect(reply.status).toBe(200);
      expect(digestOf(reply.body)).toBe(digest);
      expect(reply.headers).toMatchObject({
        'docker-content-digest': digest,
        'content-type': 'application/vnd.docker.distribution.manifest.list.v2+json',
        'etag': `"${digest}"`,
        'content-length': String(reply.body.length),
      });
    }
    const oci = await call(`/v2/ubi/manifests/${child?.descriptor.digest ?? ''}`);
    expect(oci.headers['content-type']).toBe('application/vnd.oci.image.manifest.v1+json');
  });

  it('answers HEAD with the headers alone', async () => {
    for (const path of [
      '/v2/ubi/manifests/9',
      `/v2/ubi/blobs/${digestOf(layer)}`,
      '/v2/ubi/tags/list',
      '/v2/ubi/manifests/nothing',
    ]) {
      const [got, head] = await Promise.all([call(path), call(path, { method: 'HEAD' })]);
      expect(head.status).toBe(got.status);
      expect(head.body.length).toBe(0);
      expect(head.headers).toMatchObject({ ...got.headers, date: expect.anything() as unknown });
    }
  });

  it('answers 304 if a client already has the bytes', async () => {
    const etag = `"${digestOf(layer)}"`;
    const headers = { 'if-none-match': `"other", ${etag}` };
    expect((await call(`/v2/ubi/blobs/${digestOf(layer)}`, { headers })).status).toBe(304);
  });

  it('gives a blob whole, and only in repositories that use it', async () => {
    const reply = await call(`/v2/ubi/blobs/${digestOf(layer)}`);
    expect(reply.body.equals(layer)).toBe(true);
    expect(reply.headers).toMatchObject({
      'accept-ranges': 'bytes',
      'content-type': 'application/octet-stream',
      'docker-content-digest': digestOf(layer),
    });
    const elsewhere = await call(`/v2/damaged/blobs/${digestOf(layer)}`);
    expect([elsewhere.status, codeOf(elsewhere)]).toEqual([404, 'BLOB_UNKNOWN']);
  });

  it('gives parts of a blob', async () => {
    const size = config.length;
    const cases = [
      ['bytes=0-0', 0, 0],
      ['bytes=5-9', 5, 9],
      ['bytes=10-', 10, size - 1],
      ['bytes=-7', size - 7, size - 1],
      [`bytes=-${size * 2}`, 0, size - 1],
      [`bytes=3-${size * 2}`, 3, size - 1],
    ] as const;
    for (const [range, start, end] of cases) {
      const reply = await call(`/v2/ubi/blobs/${digestOf(config)}`, { headers: { range } });
      expect([range, reply.status]).toEqual([range, 206]);
      expect(reply.headers['content-range']).toBe(`bytes ${start}-${end}/${size}`);
      expect(reply.body.equals(config.subarray(start, end + 1))).toBe(true);
    }
  });

  it('refuses ranges beyond the end of a blob, and ignores malformed ranges', async () => {
    const size = config.length;
    const path = `/v2/ubi/blobs/${digestOf(config)}`;
    for (const range of [`bytes=${size}-`, `bytes=${size}-${size + 5}`, 'bytes=-0']) {
      const reply = await call(path, { headers: { range } });
      expect([range, reply.status]).toEqual([range, 416]);
      expect(reply.headers['content-range']).toBe(`bytes */${size}`);
    }
    for (const range of ['bytes=9-5', 'bytes=-', 'lines=1-2', 'bytes=0-1,4-5', 'bytes=a-b']) {
      const reply = await call(path, { headers: { range } });
      expect([range, reply.status, reply.body.length]).toEqual([range, 200, size]);
    }
    const headers = { 'range': 'bytes=0-3', 'if-range': '"something else"' };
    expect((await call(path, { headers })).status).toBe(200);
  });

  it('lists tags in order, in pages when asked', async () => {
    const all = await call('/v2/openshift/release/tags/list');
    const sorted = ['a', 'latest', 'v1', 'v10', 'v2'];
    expect(json(all)).toEqual({ name: 'openshift/release', tags: sorted });
    expect(all.headers['link']).toBeUndefined();
    const pages: string[][] = [];
    for (let path = '/v2/openshift/release/tags/list?n=2'; path !== '';) {
      const page = await call(path);
      pages.push((json(page) as { tags: string[] }).tags);
      path = /^<(.+)>; rel="next"$/.exec(page.headers['link']?.toString() ?? '')?.[1] ?? '';
    }
    expect(pages).toEqual([['a', 'latest'], ['v1', 'v10'], ['v2']]);
    const after = await call('/v2/openshift/release/tags/list?last=m');
    expect(json(after)).toMatchObject({ tags: ['v1', 'v10', 'v2'] });
    expect(json(await call('/v2/ubi/tags/list?n=0'))).toMatchObject({ tags: [] });
    const wrong = await call('/v2/ubi/tags/list?n=-1');
    expect([wrong.status, codeOf(wrong)]).toEqual([400, 'PAGINATION_NUMBER_INVALID']);
  });

  it('lists repositories, also those inside others and those without tags', async () => {
    const nested = ['openshift/release', 'openshift/release/nested'];
    const repositories = ['big', 'damaged', 'middle', ...nested, 'ubi'];
    expect(json(await call('/v2/_catalog'))).toEqual({ repositories });
    const page = await call('/v2/_catalog?n=2&last=middle');
    expect(json(page)).toEqual({ repositories: nested });
    expect(page.headers['link']).toContain('/v2/_catalog?n=2&last=openshift%2Frelease%2Fnested');
    expect(json(await call('/v2/openshift/release/nested/tags/list'))).toMatchObject({ tags: [] });
  });

  it.each([
    ['/v2/nowhere/manifests/v1', 404, 'NAME_UNKNOWN'],
    ['/v2/openshift/manifests/v1', 404, 'NAME_UNKNOWN'],
    ['/v2/nowhere/tags/list', 404, 'NAME_UNKNOWN'],
    [`/v2/nowhere/blobs/${digestOf('')}`, 404, 'NAME_UNKNOWN'],
    ['/v2/ubi/manifests/v404', 404, 'MANIFEST_UNKNOWN'],
    ['/v2/ubi/manifests/..', 404, 'MANIFEST_UNKNOWN'],
    [`/v2/ubi/manifests/${digestOf('')}`, 404, 'MANIFEST_UNKNOWN'],
    [`/v2/ubi/manifests/${digestOf(layer)}`, 404, 'MANIFEST_UNKNOWN'],
    [`/v2/ubi/blobs/${digestOf('')}`, 404, 'BLOB_UNKNOWN'],
    ['/v2/ubi/blobs/sha256:short', 400, 'DIGEST_INVALID'],
    ['/v2/ubi/manifests/sha512:abc', 400, 'DIGEST_INVALID'],
    ['/v2/UBI/tags/list', 400, 'NAME_INVALID'],
    ['/v2/a/../ubi/tags/list', 400, 'NAME_INVALID'],
    ['/v2/..%2f..%2fubi/tags/list', 400, 'NAME_INVALID'],
    ['/v2/ubi/_manifests/tags/list', 400, 'NAME_INVALID'],
    ['/v2/%ff/tags/list', 400, 'NAME_INVALID'],
    [`/v2/${'a/'.repeat(3000)}a/tags/list`, 400, 'NAME_INVALID'],
    [`/v2/ubi/referrers/${digestOf('')}`, 404, 'UNSUPPORTED'],
    ['/v2/ubi/blobs/uploads/', 404, 'UNSUPPORTED'],
    ['/', 404, 'UNSUPPORTED'],
    ['/docker/registry/v2/blobs', 404, 'UNSUPPORTED'],
  ])('answers %s with %d and the code %s', async (path, status, code) => {
    const reply = await call(path);
    expect([reply.status, codeOf(reply)]).toEqual([status, code]);
    expect(reply.headers['content-type']).toBe('application/json');
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE'])('refuses %s: it is read-only', async (method) => {
    for (const path of ['/v2/ubi/blobs/uploads/', '/v2/ubi/manifests/9', '/v2/']) {
      const reply = await call(path, { method });
      expect([reply.status, codeOf(reply)]).toEqual([405, 'UNSUPPORTED']);
      expect(reply.headers.allow).toBe('GET, HEAD');
    }
  });

  it('does not send a damaged manifest, and names it', async () => {
    const reply = await call('/v2/damaged/manifests/1');
    expect([reply.status, codeOf(reply)]).toEqual([500, 'UNKNOWN']);
    expect(reply.body.toString()).toContain(damaged.manifests[0]?.descriptor.digest);
  });

  it('breaks off a blob that is shorter than announced, so that it cannot look whole', async () => {
    const whole = directoryTree(root);
    const broken: RequestEntry[] = [];
    // As a file that was cut after its size was read.
    const cut: ServedTree = {
      ...whole,
      async size(path) {
        const size = await whole.size(path);
        return size !== undefined && path.endsWith('/data') ? size + 1 : size;
      },
    };
    const other = createRegistryServer(cut, { onRequest: (entry) => broken.push(entry) });
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}/v2`;
    const long = await fetch(`${url}/middle/blobs/${middle}`);
    await expect(take(long)).rejects.toThrow('terminated');
    // Nothing was sent yet: the answer can say so.
    const short = await fetch(`${url}/ubi/blobs/${digestOf(layer)}`);
    expect([short.status, await short.text()]).toEqual([500, expect.stringContaining('UNKNOWN')]);
    other.close();
    await expect
      .poll(() => broken)
      .toMatchObject([
        {
          status: 200,
          complete: false,
          error: expect.objectContaining({ found: `${8 << 20} bytes` }) as unknown,
        },
        {
          status: 500,
          complete: true,
          error: expect.objectContaining({ found: `${layer.length} bytes` }) as unknown,
        },
      ]);
  });

  it('goes on serving when a client goes away in the middle', async () => {
    entries.length = 0;
    const sent = request({ host: '127.0.0.1', port, path: `/v2/big/blobs/${big}` }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.destroy();
    await expect.poll(() => entries).toMatchObject([{ status: 200, complete: false }]);
    expect((await call('/v2/')).status).toBe(200);
  });

  it('reports each request and its answer', async () => {
    entries.length = 0;
    await call('/v2/ubi/tags/list?n=1');
    await expect
      .poll(() => entries)
      .toEqual([{ method: 'GET', url: '/v2/ubi/tags/list?n=1', status: 200, complete: true }]);
  });
});
