import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createNetServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createHttp } from '../../../src/base/http/http.ts';
import { readProxies } from '../../../src/base/http/proxy.ts';
import { fetchText } from '../../../src/base/download/fetch.ts';
import { createTestRetries } from '../../support/test-clock.ts';
import { requireTool } from '../../support/tools.ts';

let cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
  cleanUps = [];
});

async function listen(server: Server | ReturnType<typeof createNetServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A proxy that answers every CONNECT with what it is given; '' closes the connection. */
async function startProxy(answer: string): Promise<{ port: number; connects: string[] }> {
  const connects: string[] = [];
  const server = createServer();
  server.on('connect', (request, socket) => {
    connects.push(request.url ?? '');
    socket.on('error', () => undefined);
    socket.end(answer === '' ? undefined : `HTTP/1.1 ${answer}\r\ncontent-length: 0\r\n\r\n`);
  });
  return { port: await listen(server), connects };
}

const { signal } = new AbortController();

/** The error of a request through a proxy, with what was waited for. */
async function askThrough(https_proxy: string, target = 'https://registry.invalid/') {
  const retries = createTestRetries();
  const http = createHttp({ env: { https_proxy, http_proxy: https_proxy }, retries });
  cleanUps.push(() => http.close());
  const error = await fetchText(http, { url: new URL(target), signal, limit: 1000 }).then(
    (text) => new Error(`no failure: ${text}`),
    (error: unknown) => error,
  );
  const waited = retries.clock.waits.reduce((sum, wait) => sum + wait, 0);
  return { error: error as Error & { code: string; hint?: string }, waited };
}

describe('a request through a proxy', () => {
  it.each([
    ['407 Proxy Authentication Required', 'proxy.unauthorized', 0],
    ['403 Forbidden', 'proxy.forbidden', 0],
    ['405 Method Not Allowed', 'proxy.answer', 0],
    ['502 Bad Gateway', 'proxy.unavailable', 30_000],
    ['503 Service Unavailable', 'proxy.unavailable', 30_000],
    ['', 'proxy.unreachable', 30_000],
  ])(
    'names the proxy, without its credentials and with its own code, when it answers "%s"',
    async (answer, code, patience) => {
      const { port, connects } = await startProxy(answer);
      const { error, waited } = await askThrough(`http://user:secret@127.0.0.1:${port}`);
      expect(error).toMatchObject({ code });
      expect(error.message).toContain(`proxy http://127.0.0.1:${port} `);
      expect(error.message).toContain('registry.invalid:443');
      expect(`${error.message} ${error.hint ?? ''}`).not.toContain('secret');
      expect(waited).toBeGreaterThanOrEqual(patience && patience - 2000);
      expect(waited).toBeLessThanOrEqual(patience);
      expect(connects.length).toBeLessThan(30);
      if (patience === 0) expect(connects).toEqual(['registry.invalid:443']);
    },
  );

  it('names the proxy, with its own code, when it cannot be reached', async () => {
    const closed = createNetServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const { error } = await askThrough(`http://127.0.0.1:${port}`);
    expect(error).toMatchObject({ code: 'proxy.unreachable', found: 'ECONNREFUSED' });
    expect(error.message).toContain(`proxy http://127.0.0.1:${port} `);
  });

  it.each([
    ['http://user:100%@p.example:3128', '100%'],
    ['http://user:p%25w%23@p.example:3128', 'p%w#'],
    ['http://us%40er:ü@p.example:3128', 'ü'],
    ['http://user:p%a%23%C3%B6%@p.example:3128', 'p%a#ö%'],
    ['socks5h://user:100%25%zz@p.example:3128', '100%%zz'],
  ])('has the password that was written in its address: %s', (address, password) => {
    const proxy = readProxies({ HTTPS_PROXY: address })(new URL('https://quay.io/'));
    expect(decodeURIComponent(new URL(proxy ?? '').password)).toBe(password);
  });

  it.each([
    'http://user:1#x@p.example:3128',
    'http://user:1/x@p.example:3128',
    'http://user:a#x@p:1',
    'http://user:1?x@p:1',
  ])('is refused if a password cuts its address off: %s', (HTTPS_PROXY) => {
    expect(() => readProxies({ HTTPS_PROXY })).toThrow('HTTPS_PROXY is not the address of a proxy');
  });

  it.each([
    [{ https_proxy: '', HTTPS_PROXY: 'http://big:1' }, 'http://big:1'],
    [{ https_proxy: 'http://small:1', HTTPS_PROXY: 'http://big:1' }, 'http://small:1'],
    [{ https_proxy: 'http://small:1', no_proxy: '', NO_PROXY: 'quay.io' }, undefined],
    [{ https_proxy: '', HTTPS_PROXY: '' }, undefined],
  ])('goes by the variables that are not empty: %o', (env, proxy) => {
    expect(readProxies(env)(new URL('https://quay.io/'))).toBe(proxy);
  });

  it('is refused before it is sent if the address of the proxy is not valid', async () => {
    const { error } = await askThrough('ftp://user:secret@proxy');
    expect(error).toMatchObject({ code: 'proxy.malformed' });
    expect(JSON.stringify(error) + error.message).not.toContain('secret');
  });
});

async function freePort(): Promise<number> {
  const server = createNetServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false; // not yet
  } finally {
    socket.destroy();
  }
}

describe.skipIf(!requireTool('tinyproxy'))('tinyproxy', () => {
  /** Lets CONNECT through to one port, and forbids all others. */
  async function startTinyproxy(allowed: number, ...lines: string[]): Promise<number> {
    const directory = await mkdtemp(join(tmpdir(), 'tinyproxy-'));
    const port = await freePort();
    const file = join(directory, 'tinyproxy.conf');
    const settings = [`Port ${port}`, 'Listen 127.0.0.1', `ConnectPort ${allowed}`, ...lines];
    await writeFile(file, `${settings.join('\n')}\n`);
    const child = spawn('tinyproxy', ['-d', '-c', file], { stdio: 'ignore' });
    const ended = once(child, 'exit');
    cleanUps.push(async () => {
      child.kill();
      await ended;
      await rm(directory, { recursive: true });
    });
    while (!(await isOpen(port))) await sleep(20);
    return port;
  }

  it('brings an answer, forbids a port, asks for a password, and reports an unreachable host', async () => {
    const origin = await listen(createServer((_, response) => response.end('hello')));
    const closed = await freePort();
    const open = await startTinyproxy(origin, `ConnectPort ${closed}`);
    // Another name of loopback: what is named as this machine is not asked through a proxy.
    const at = (port: number): string => `http://0.0.0.0:${port}/`;
    const through = `http://127.0.0.1:${open}`;
    expect((await askThrough(through, at(origin))).error.message).toBe('no failure: hello');
    expect((await askThrough(through, at(1))).error).toMatchObject({ code: 'proxy.forbidden' });
    expect((await askThrough(through, at(closed))).error).toMatchObject({
      code: 'proxy.unavailable',
    });
    const locked = await startTinyproxy(origin, 'BasicAuth user secret');
    const bare = await askThrough(`http://127.0.0.1:${locked}`, at(origin));
    expect(bare.error).toMatchObject({ code: 'proxy.unauthorized' });
    expect(bare.error.hint).toContain('put user and password into HTTP_PROXY:');
    const wrong = await askThrough(`http://user:no@127.0.0.1:${locked}`, at(origin));
    expect(wrong.error).toMatchObject({ code: 'proxy.unauthorized' });
    expect(wrong.error.hint).toContain('correct the user or the password in HTTP_PROXY');
    const known = await askThrough(`http://user:secret@127.0.0.1:${locked}`, at(origin));
    expect(known.error.message).toBe('no failure: hello');
  });
});
