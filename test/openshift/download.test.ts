import type { IncomingMessage, ServerResponse } from 'node:http';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { hasFile } from '../../src/base/files.ts';
import { createHttp } from '../../src/base/http.ts';
import { downloadFile } from '../../src/openshift/files/download.ts';
import { serveLocally, type LocalServer } from '../support/local-http.ts';

const content = Buffer.alloc(500_000, 'abcdefghij');
const http = createHttp({ env: {} });
let directory: string;
let path: string;
let server: LocalServer | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'download-'));
  path = join(directory, 'file.partial');
});
afterEach(async () => {
  await server?.close();
  await rm(directory, { recursive: true });
});

const download = async (
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ readonly size: number }> => {
  server = await serveLocally(answer);
  return downloadFile({
    url: new URL(server.url),
    digest: digestOf(content),
    path,
    http,
    signal: AbortSignal.timeout(20_000),
    pacing: { wait: () => Promise.resolve() },
  });
};

const whenSizeIs = async (file: string, size: number): Promise<void> => {
  while ((await stat(file)).size < size) await sleep(5);
};

const sendRange = (request: IncomingMessage, response: ServerResponse): void => {
  const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
  if (start >= content.length) {
    response.writeHead(416, { 'content-range': `bytes */${content.length}` }).end();
    return;
  }
  const range = `bytes ${start}-${content.length - 1}/${content.length}`;
  response.writeHead(start > 0 ? 206 : 200, start > 0 ? { 'content-range': range } : {});
  response.end(content.subarray(start));
};

describe('a download', () => {
  it('brings the bytes of its digest', async () => {
    expect(await download(sendRange)).toEqual({ size: content.length });
    expect(digestOf(await readFile(path))).toBe(digestOf(content));
  });

  it('continues where the connection broke off', async () => {
    const starts: (string | undefined)[] = [];
    await download((request, response) => {
      starts.push(request.headers.range);
      if (starts.length > 1) {
        sendRange(request, response);
        return;
      }
      response.writeHead(200, { 'content-length': content.length });
      response.write(content.subarray(0, 200_000));
      void whenSizeIs(path, 200_000).then(() => response.destroy());
    });
    expect(starts).toEqual([undefined, 'bytes=200000-']);
    expect(digestOf(await readFile(path))).toBe(digestOf(content));
  });

  it('continues what an earlier run left', async () => {
    await writeFile(path, content.subarray(0, 123_456));
    let range: string | undefined;
    await download((request, response) => {
      range = request.headers.range;
      sendRange(request, response);
    });
    expect(range).toBe('bytes=123456-');
    expect(digestOf(await readFile(path))).toBe(digestOf(content));
  });

  it('finds that an earlier run left all of it', async () => {
    await writeFile(path, content);
    expect(await download(sendRange)).toEqual({ size: content.length });
  });

  it('starts over where the server ignores Range', async () => {
    await writeFile(path, content.subarray(0, 1000));
    await download((_, response) => response.end(content));
    expect(digestOf(await readFile(path))).toBe(digestOf(content));
  });

  it('leaves nothing of bytes that have another digest', async () => {
    await expect(download((_, response) => response.end('other'))).rejects.toMatchObject({
      code: 'download.digest',
      exitCode: 5,
      expected: digestOf(content),
      found: digestOf('other'),
    });
    expect(await hasFile(path)).toBe(false);
  });

  it('refuses another part than it asked for, and an answer that is no file', async () => {
    await writeFile(path, content.subarray(0, 1000));
    const wrong = download((_, response) => {
      response.writeHead(206, { 'content-range': `bytes 5-9/${content.length}` }).end('fghij');
    });
    await expect(wrong).rejects.toMatchObject({ code: 'download.refused' });
    await server?.close();
    const missing = download((_, response) => response.writeHead(404).end());
    await expect(missing).rejects.toMatchObject({ code: 'download.refused', found: '404' });
  });

  it('does not go round in circles, nor from https to http', async () => {
    const circle = download((_, response) => response.writeHead(302, { location: '/' }).end());
    await expect(circle).rejects.toMatchObject({ code: 'http.redirect' });
    await server?.close();
    const odd = download((_, response) => {
      response.writeHead(302, { location: 'file:///etc/passwd' }).end();
    });
    await expect(odd).rejects.toMatchObject({ code: 'http.redirect' });
  });
});
