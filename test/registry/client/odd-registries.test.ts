import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { digestOf } from '../../../src/base/digest.ts';
import { createHttp, type Http } from '../../../src/base/http/http.ts';
import { createRegistryClient, type RegistryClient } from '../../../src/registry/client.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import { createTestRetries } from '../../support/test-clock.ts';

/* Registries, and proxies in front of them, that answer in ways that a standard allows or people met. */

const TYPE = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: TYPE, manifests: [] }));
const BLOB = Buffer.alloc(100_000, 'layer');
const { signal } = new AbortController();

type Answer = (request: IncomingMessage, response: ServerResponse) => void;
let server: Server | undefined;
let http: Http | undefined;

afterEach(async () => {
  await http?.close();
  server?.closeAllConnections();
  await new Promise((resolve) => server?.close(resolve));
});

/** Starts a registry; `asked` has each request as `METHOD path range`. */
async function start(answer: Answer): Promise<{
  readonly client: RegistryClient;
  readonly host: string;
  readonly asked: string[];
}> {
  const asked: string[] = [];
  server = createServer((request, response) => {
    if (request.url === '/v2/') return void response.end('{}');
    const { method, url, headers } = request;
    asked.push([method, url?.split('/').at(-2), headers.range].filter(Boolean).join(' '));
    answer(request, response);
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  http = createHttp({ redaction: createRedaction(), env: {}, retries: createTestRetries() });
  const client = createRegistryClient({ http, credentials: [], insecureRegistries: [host] });
  return { client, host, asked };
}

describe('a server that applies a content coding although none is accepted', () => {
  const CODINGS: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['identity', (bytes) => bytes],
    ['identity, gzip', gzipSync],
  ];
  const packed =
    (coding: string, pack: (bytes: Buffer) => Buffer): Answer =>
    ({ method, url, headers }, response) => {
      expect(headers['accept-encoding']).toBe('identity');
      const body = pack(url?.includes('/blobs/') === true ? BLOB : MANIFEST);
      response.writeHead(200, {
        'content-type': TYPE,
        'content-encoding': coding,
        'content-length': body.length,
        'docker-content-digest': digestOf(MANIFEST),
      });
      response.end(method === 'HEAD' ? undefined : body);
    };

  it.each(CODINGS)('is understood: %s', async (coding, pack) => {
    const { client, host } = await start(packed(coding, pack));
    const reference = parseReference(`${host}/a/b:v1`);
    const { bytes } = await client.fetchManifest(reference, { signal });
    expect(Buffer.from(bytes).equals(MANIFEST)).toBe(true);
    expect(await client.resolveTag(reference, { signal })).toMatchObject({
      digest: digestOf(MANIFEST),
      size: MANIFEST.length,
    });
    const [source] = client.sourcesOf(reference);
    const blob = { digest: digestOf(BLOB), size: BLOB.length };
    const opened = await source?.open(blob, { offset: 0, signal });
    expect((await buffer(opened?.body ?? Readable.from([]))).equals(BLOB)).toBe(true);
  });

  it.each([
    ['a coding that is not known', 'zstd', (bytes: Buffer) => bytes],
    ['two codings', 'gzip, br', (bytes: Buffer) => brotliCompressSync(gzipSync(bytes))],
    ['bytes without the coding that it names', 'gzip', (bytes: Buffer) => bytes],
    ['half of the coded bytes', 'gzip', (bytes: Buffer) => gzipSync(bytes).subarray(0, 30)],
  ])('is refused by name for %s', async (_what, coding, pack) => {
    const { client, host } = await start(packed(coding, pack));
    const asked = client.fetchManifest(parseReference(`${host}/a/b:v1`), { signal });
    await expect(asked).rejects.toMatchObject({ code: 'http.content-coding' });
  });
});

describe('a server that packs parts of a blob', () => {
  const PACKED = gzipSync(BLOB);
  const pack: Answer = ({ headers: { range } }, response) => {
    const part = `bytes 10-${PACKED.length - 1}/${PACKED.length}`;
    if (range === undefined) {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(PACKED);
    } else {
      response.writeHead(206, { 'content-encoding': 'gzip', 'content-range': part });
      response.end(PACKED.subarray(10));
    }
  };

  it('is asked for all of it', async () => {
    const { client, host, asked } = await start(pack);
    const [source] = client.sourcesOf(parseReference(`${host}/a/b:v1`));
    const blob = { digest: digestOf(BLOB), size: BLOB.length };
    const opened = await source?.open(blob, { offset: 10, signal });
    expect(opened?.offset).toBe(0);
    expect((await buffer(opened?.body ?? Readable.from([]))).equals(BLOB)).toBe(true);
    expect(asked).toEqual([`GET blobs bytes=10-${BLOB.length - 1}`, 'GET blobs']);
  });
});

describe('a coded answer that unpacks without end', () => {
  const PACKED = gzipSync(Buffer.alloc(1 << 24));
  let sent = 0;
  const endless: Answer = (_request, response) => {
    sent = 0;
    response.writeHead(200, { 'content-type': TYPE, 'content-encoding': 'gzip' });
    const send = (): void => {
      if (response.destroyed || sent > 1 << 26) response.end();
      else {
        sent += PACKED.length;
        response.write(PACKED, () => setImmediate(send));
      }
    };
    send();
  };

  it('is given up at the limit of a manifest', async () => {
    const { client, host } = await start(endless);
    const asked = client.fetchManifest(parseReference(`${host}/a/b:v1`), { signal });
    await expect(asked).rejects.toMatchObject({ code: 'manifest.too-large' });
    expect(sent).toBeLessThan(1 << 24);
  });
});

describe('a registry that knows one form of a range', () => {
  const FIRST = 60_000;
  const inOneForm =
    (form: RegExp): Answer =>
    ({ headers: { range = '' } }, response) => {
      const [, from] = form.exec(range) ?? [];
      if (range === '') response.writeHead(200, { 'content-length': BLOB.length });
      else if (from === undefined) return void response.writeHead(416).end();
      else {
        const part = `bytes ${from}-${BLOB.length - 1}/${BLOB.length}`;
        response.writeHead(206, { 'content-range': part });
      }
      response.end(BLOB.subarray(Number(from ?? 0)));
    };

  it.each([
    ['closed', /^bytes=(\d+)-\d+$/, 1],
    ['open', /^bytes=(\d+)-$/, 2],
  ])('is asked in the %s form for what is missing', async (_form, form, requests) => {
    const { client, host, asked } = await start(inOneForm(form));
    const [source] = client.sourcesOf(parseReference(`${host}/a/b:v1`));
    const blob = { digest: digestOf(BLOB), size: BLOB.length };
    const opened = await source?.open(blob, { offset: FIRST, signal });
    expect(opened?.offset).toBe(FIRST);
    expect((await buffer(opened?.body ?? Readable.from([]))).equals(BLOB.subarray(FIRST))).toBe(
      true,
    );
    expect(asked).toHaveLength(requests);
  });

  it('is asked for all bytes when it has no range of a blob', async () => {
    const { client, host, asked } = await start(inOneForm(/^never$/));
    const [source] = client.sourcesOf(parseReference(`${host}/a/b:v1`));
    const blob = { digest: digestOf(BLOB), size: BLOB.length };
    const opened = await source?.open(blob, { offset: FIRST, signal });
    expect(opened?.offset).toBe(0);
    opened?.body.destroy();
    expect(asked.map((one) => one.split(' ').slice(2).join())).toEqual([
      `bytes=${FIRST}-${BLOB.length - 1}`,
      `bytes=${FIRST}-`,
      '',
    ]);
  });
});

describe('a registry that answers HEAD with something else than 200', () => {
  const withHead =
    (status: number): Answer =>
    ({ method }, response) => {
      if (method === 'HEAD') return void response.writeHead(status).end();
      response.writeHead(200, { 'content-type': TYPE }).end(MANIFEST);
    };

  it.each([301, 400, 401, 403, 404, 405, 429, 500, 501, 503])(
    'has what GET brings: %d',
    async (status) => {
      const { client, host, asked } = await start(withHead(status));
      const found = await client.resolveTag(parseReference(`${host}/a/b:v1`), { signal });
      expect(found?.digest).toBe(digestOf(MANIFEST));
      expect(asked).toEqual(['HEAD manifests', 'GET manifests']);
    },
  );

  it('is not asked by HEAD for what is mostly absent', async () => {
    const { client, host, asked } = await start(withHead(404));
    const tag = `sha256-${'0'.repeat(64)}.sig`;
    const found = await client.resolveTag(parseReference(`${host}/a/b:${tag}`), { signal });
    expect(found?.digest).toBe(digestOf(MANIFEST));
    expect(asked).toEqual(['GET manifests']);
  });

  it('has nothing that GET does not bring either', async () => {
    const { client, host } = await start((_, response) => void response.writeHead(404).end());
    const reference = parseReference(`${host}/a/b:v1`);
    expect(await client.resolveTag(reference, { signal })).toBeUndefined();
  });
});

it('a page in place of a manifest is named with its image, and with what may have sent it', async () => {
  const { client, host } = await start((_, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8').end('<html>login</html>');
  });
  const hint = `check whether a proxy or a login page answers in place of ${host}: it sent a web page`;
  const tag = parseReference(`${host}/x:v1`);
  const message = expect.stringContaining(`${host}/x:v1: manifest `) as string;
  const malformed = { code: 'manifest.malformed', message, hint };
  await expect(client.fetchManifest(tag, { signal })).rejects.toMatchObject(malformed);
  await expect(client.resolveTag(tag, { signal })).rejects.toMatchObject(malformed);
  const pinned = parseReference(`${host}/x@${digestOf(MANIFEST)}`);
  await expect(client.fetchManifest(pinned, { signal })).rejects.toMatchObject({
    code: 'manifest.digest-mismatch',
    hint,
  });
});
