import type { IncomingMessage, ServerResponse } from 'node:http';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { digestOf } from '../../../src/base/digest.ts';
import { hasFile } from '../../../src/base/disk/files.ts';
import { createHttp } from '../../../src/base/http/http.ts';
import { downloadFile, type Download } from '../../../src/base/download/fetch.ts';
import { serveLocally, type LocalServer } from '../../support/local-http.ts';
import { createTestRetries } from '../../support/test-clock.ts';

const content = Buffer.alloc(500_000, 'abcdefghij');
const http = createHttp({ redaction: createRedaction(), env: {}, retries: createTestRetries() });
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

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const download = async (
  answer: Answer,
  options: Partial<Download> = {},
): Promise<{ readonly size: number }> => {
  server = await serveLocally(answer);
  return downloadFile({
    url: new URL(server.url),
    digest: digestOf(content),
    limit: 1_000_000,
    path,
    http,
    signal: AbortSignal.timeout(20_000),
    ...options,
  });
};

const whenSizeIs = async (file: string, size: number): Promise<void> => {
  while ((await stat(file)).size < size) await sleep(5);
};

const sendRange = (request: IncomingMessage, response: ServerResponse): void => {
  const start = Number(/^bytes=(\d+)-\d*$/.exec(request.headers.range ?? '')?.[1] ?? 0);
  if (start >= content.length) {
    response.writeHead(416, { 'content-range': `bytes */${content.length}` }).end();
    return;
  }
  const range = `bytes ${start}-${content.length - 1}/${content.length}`;
  response.writeHead(start > 0 ? 206 : 200, {
    'content-length': content.length - start,
    ...(start > 0 && { 'content-range': range }),
  });
  response.end(content.subarray(start));
};

describe('a download', () => {
  it('brings the bytes of its digest', async () => {
    expect(await download(sendRange)).toEqual({
      size: content.length,
      digest: digestOf(content),
    });
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
    expect(starts).toEqual([undefined, `bytes=200000-${content.length - 1}`]);
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

  it('continues what an earlier run left from a server that knows closed ranges only', async () => {
    await writeFile(path, content.subarray(0, 123_456));
    const ranges: (string | undefined)[] = [];
    await download((request, response) => {
      const { range } = request.headers;
      ranges.push(range);
      if (range?.endsWith('-') === true) response.writeHead(416).end();
      else sendRange(request, response);
    });
    expect(ranges).toEqual(['bytes=123456-', undefined, `bytes=123456-${content.length - 1}`]);
    expect(digestOf(await readFile(path))).toBe(digestOf(content));
  });

  it('finds that an earlier run left the whole file', async () => {
    await writeFile(path, content);
    expect(await download(sendRange)).toEqual({
      size: content.length,
      digest: digestOf(content),
    });
  });

  it('starts over when the server ignores Range', async () => {
    await writeFile(path, content.subarray(0, 1000));
    await download((_, response) => response.end(content));
    expect(digestOf(await readFile(path))).toBe(digestOf(content));
  });

  it('starts over when an earlier run left more bytes than the file has', async () => {
    await writeFile(path, Buffer.alloc(content.length + 1));
    await download(sendRange);
    expect(digestOf(await readFile(path))).toBe(digestOf(content));
  });

  it('reports the size of the file if the server states it', async () => {
    await writeFile(path, content.subarray(0, 400_000));
    const told: (number | undefined)[] = [];
    await download(sendRange, { onProgress: (_, total) => told.push(total) });
    expect(new Set(told)).toEqual(new Set([content.length]));
  });

  it('ends at its limit, whether the size is announced or not, and leaves nothing', async () => {
    const announced: Answer = (_, response) => {
      response.writeHead(200, { 'content-length': 2_000_000 });
      response.write('abc');
    };
    const endless: Answer = (_, response) => {
      const more = (): void => {
        if (!response.destroyed) response.write(content, more);
      };
      more();
    };
    for (const answer of [announced, endless]) {
      await expect(download(answer)).rejects.toMatchObject({
        code: 'download.too-large',
        exitCode: 5,
      });
      expect(await hasFile(path)).toBe(false);
      await server?.close();
    }
  });

  it('is not complete before all announced bytes have come', async () => {
    const short: Answer = (_, response) => {
      response.writeHead(200, { 'content-length': content.length });
      response.write(content.subarray(0, 1000), () => response.destroy());
    };
    await expect(download(short, { digest: digestOf('x') })).rejects.toMatchObject({ exitCode: 4 });
  });

  it('leaves no bytes that have another digest', async () => {
    await expect(download((_, response) => response.end('other'))).rejects.toMatchObject({
      code: 'download.digest',
      exitCode: 5,
      expected: digestOf(content),
      found: digestOf('other'),
      message: expect.stringContaining('(5 bytes)') as string,
    });
    expect(await hasFile(path)).toBe(false);
  });

  it('refuses a part that it did not request, and an answer that is not a file', async () => {
    await writeFile(path, content.subarray(0, 1000));
    const wrong = download((_, response) => {
      response.writeHead(206, { 'content-range': `bytes 5-9/${content.length}` }).end('fghij');
    });
    await expect(wrong).rejects.toMatchObject({ code: 'download.refused' });
    await server?.close();
    const missing = download((_, response) => response.writeHead(404).end());
    await expect(missing).rejects.toMatchObject({ code: 'download.refused', found: '404' });
    await rm(path);
    await server?.close();
    const gone = download((_, response) => response.writeHead(404).end('<html>'));
    await expect(gone).rejects.toMatchObject({ code: 'download.refused', found: '404' });
    expect(await hasFile(path)).toBe(false);
  });

  it('follows no endless redirects, and none from https to http', async () => {
    const circle = download((_, response) => response.writeHead(302, { location: '/' }).end());
    await expect(circle).rejects.toMatchObject({ code: 'http.redirect' });
    await server?.close();
    const odd = download((_, response) => {
      response.writeHead(302, { location: 'file:///etc/passwd' }).end();
    });
    await expect(odd).rejects.toMatchObject({ code: 'http.redirect' });
  });
});
