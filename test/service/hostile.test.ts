import { createHmac, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startSealift, type Child } from '../support/child.ts';
import { API, createJudge, PULL_SECRET, startService } from '../support/service.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

/** A process of its own: what it does not expect must not end it. */
describe('the service as a process', () => {
  let folder: string;
  let child: Child;
  let url: URL;
  let infraEnv: string;
  let judge: Awaited<ReturnType<typeof createJudge>>;
  let told = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sealift-hostile-'));
    await writeFile(join(folder, 'key'), 'k'.repeat(40));
    const args = ['--data', 'data', '--key', 'file:key', '--listen', '127.0.0.1:0'];
    child = startSealift(['serve', ...args], { cwd: folder });
    child.process.stderr?.on('data', (piece: Buffer) => (told += piece.toString()));
    const found = await vi.waitUntil(() => /serving on (\S+);/.exec(told)?.[1], {
      timeout: 60_000,
    });
    url = new URL(found);
    judge = await createJudge(url.origin);
    const created = await fetch(`${url.origin}${API}/v2/infra-envs`, {
      method: 'POST',
      headers: JSON_TYPE,
      body: JSON.stringify({ name: 'edge', pull_secret: PULL_SECRET }),
    });
    infraEnv = ((await created.json()) as { id: string }).id;
  });
  afterAll(async () => {
    child.process.kill();
    expect((await child.ended).code).toBe(143);
    await rm(folder, { recursive: true });
  });

  /** What comes back for bytes, until the server closes. */
  const send = async (bytes: string): Promise<string> => {
    const socket = connect(Number(url.port), url.hostname);
    socket.on('error', () => undefined);
    socket.write(bytes);
    return text(socket);
  };
  const ask = async (
    line: string,
    ...headers: string[]
  ): Promise<{ status: number; body: string }> => {
    const all = [line, 'Host: localhost', 'Connection: close', ...headers, '', ''];
    const answer = await send(all.join('\r\n'));
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    const status = Number(head.split(' ')[1]);
    const [method = '', target = ''] = line.split(' ');
    const type = /^content-type: ([^;\r]*)/im.exec(head)?.[1] ?? '';
    const { pathname } = new URL(target, url);
    if (pathname !== '/') judge(method, pathname, { status, type, text: body });
    return { status, body };
  };
  const statusOf = async (line: string, ...headers: string[]): Promise<number> =>
    (await ask(line, ...headers)).status;

  it('answers HTTP/1.0 without a host, and targets in absolute form', async () => {
    expect(await send('GET /live HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 [^]*"ok"/);
    const target = `${API}/v2/infra-envs/${infraEnv}`;
    expect(await statusOf(`GET http://other.example${target} HTTP/1.1`)).toBe(200);
    expect(await statusOf(`GET ${target} HTTP/1.0`)).toBe(200);
  });

  it('uses the first value of a repeated query parameter', async () => {
    const files = `${API}/v2/infra-envs/${infraEnv}/downloads/files`;
    const both = `${files}?file_name=static-network-config&file_name=../x`;
    expect(await statusOf(`GET ${both} HTTP/1.1`)).toBe(200);
    const { status, body } = await ask(
      `GET ${files}?file_name=..&file_name=discovery.ign HTTP/1.1`,
    );
    expect([status, body]).toEqual([
      400,
      expect.stringContaining('file_name in query should be one of'),
    ]);
    const id = `version=1&version=2&type=x&type=disconnected-iso`;
    expect(await statusOf(`GET /images/${infraEnv}?${id} HTTP/1.1`)).toBe(400);
  });

  it.each([
    [
      '..',
      '..%2f..',
      '%2e%2e',
      '%252e%252e%252f',
      '..%5c',
      '%00',
      '%zz',
      '%c0%ae%c0%ae',
      '__proto__',
    ],
  ])('finds nothing by a path in an id or a name', async (...names) => {
    for (const name of names) {
      for (const path of [
        `${API}/v2/infra-envs/${name}`,
        `${API}/v2/clusters/${name}/x`,
        `${API}/v2/infra-envs/${infraEnv}/downloads/files?file_name=${name}`,
        `/byid/${name}/4.21.3/x86_64/disconnected.iso`,
        `/byid/${infraEnv}/4.21.3/x86_64/${name}`,
        `/byid/${infraEnv}/${name}/x86_64/disconnected.iso`,
        `/bytoken/${name}/4.21.3/x86_64/disconnected.iso`,
        `/boot-artifacts/${name}?version=${name}`,
        `/images/${name}/pxe-initrd?version=${name}`,
        `/images/${infraEnv}?version=${name}&type=disconnected-iso`,
      ]) {
        const { status, body } = await ask(`GET ${path} HTTP/1.1`);
        // What is the page by the rules of URLs is not a path in a name.
        const refusals = new URL(path, url).pathname === '/' ? [200] : [400, 401, 404, 405, 503];
        expect([path, refusals.includes(status)]).toEqual([path, true]);
        expect(body).not.toMatch(/root:|serve\.key|ENOENT|sealift-hostile/);
      }
    }
  });

  it('refuses unknown methods, and bytes that are not HTTP, in its own error format', async () => {
    for (const method of ['PUT', 'TRACE', 'OPTIONS', 'PROPFIND']) {
      const answer = await send(
        `${method} ${API}/v2/infra-envs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      );
      expect(answer).toMatch(
        /^HTTP\/1\.1 405 [^]*allow: GET, POST\r[^]*is not allowed, but \[GET,POST\] are"/i,
      );
    }
    for (const bytes of [
      'BREW / HTTP/1.1\r\nHost: a\r\n\r\n',
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      'GET /live HTTP/1.1\r\nHost: a\r\nHost b\r\n\r\n',
      'POST /live HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'POST /live HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde',
      'GET /live HTTP/1.1\r\nHost: a b/c\r\nConnection: close\r\n\r\n',
      'GET /live HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
    ]) {
      expect(await send(bytes)).toMatch(/^HTTP\/1\.1 400 [^]*"kind":"Error","id":400/);
    }
    const long = `GET /live HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`;
    expect(await send(long)).toMatch(/^HTTP\/1\.1 431 [^]*"id":431/);
    expect(await send('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n')).not.toMatch(/ 200 /);
  });

  it('limits bodies, however their size is declared, and the nesting in them', async () => {
    const post = `POST ${API}/v2/infra-envs HTTP/1.1`;
    const { status } = await ask(
      post,
      'Content-Type: application/json',
      'Content-Length: 99999999999',
    );
    expect(status).toBe(413);
    const piece = 'x'.repeat(65_536);
    const chunked = `10000\r\n${piece}\r\n`.repeat(40);
    const head = `${post}\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
    expect(await send(head + chunked)).toMatch(/^HTTP\/1\.1 413 /);
    const nested = '['.repeat(200_000) + ']'.repeat(200_000);
    for (const ignition_config_override of [
      nested,
      `{"ignition":{"version":"3.2.0"},"storage":{"files":${nested}}}`,
    ]) {
      const answer = await fetch(`${url.origin}${API}/v2/infra-envs`, {
        method: 'POST',
        headers: JSON_TYPE,
        body: JSON.stringify({ name: 'e', pull_secret: PULL_SECRET, ignition_config_override }),
      });
      expect(answer.status).toBe(400);
    }
    const deep = await fetch(`${url.origin}${API}/v2/infra-envs`, {
      method: 'POST',
      headers: JSON_TYPE,
      body: nested,
    });
    expect(deep.status).toBe(400);
  });

  it('repeats nothing of its input, and goes on', async () => {
    const token = createHmac('sha256', 'a').update(randomUUID()).digest('hex');
    await ask(`GET /bytoken/${token}/1/x86_64/disconnected.iso HTTP/1.1`);
    expect(await statusOf('GET /live HTTP/1.1')).toBe(200);
    expect(told).not.toContain(token);
    expect(told).not.toMatch(/at .*\.js:\d+|canary/);
    expect(child.process.exitCode).toBeNull();
  });
});

it('slow clients get 408 in time, while others are answered', async () => {
  const limits = {
    connections: 500,
    head: 400,
    request: 800,
    idle: 400,
    stalled: 2000,
    slow: 1000,
  };
  const service = await startService({ limits });
  const { port } = new URL(service.url);
  const drip = async (start: string, bytes: string): Promise<string> => {
    const socket = connect(Number(port), '127.0.0.1');
    let all = '';
    socket.on('error', () => undefined); // whoever writes to what is closed may lose the answer
    socket.on('data', (piece: Buffer) => (all += piece.toString()));
    socket.write(start);
    const timer = setInterval(() => bytes === '' || socket.write(bytes), 50);
    await new Promise((resolve) => socket.once('close', resolve));
    clearInterval(timer);
    return all;
  };
  const heads = 'GET /live HTTP/1.1\r\nHost: a\r\n';
  const post = `POST ${API}/v2/infra-envs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n`;
  const many = Array.from({ length: 50 });
  const slow = many.flatMap(() => [drip(heads, 'X: y\r\n'), drip(post, '{')]);
  const stopped = many.flatMap(() => [drip(heads, ''), drip(post, '')]);
  const silent = drip('', '');
  expect((await service.call('GET', '/live')).status).toBe(200);
  for (const answer of await Promise.all(stopped)) {
    expect(answer).toMatch(/^HTTP\/1\.1 408 [^]*"id":408/);
  }
  for (const answer of await Promise.all(slow)) expect(answer).toMatch(/^$|^HTTP\/1\.1 408 /);
  await silent;
  expect((await service.call('GET', '/live')).status).toBe(200);
  await service.close();
});
