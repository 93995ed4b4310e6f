import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request as forward, type Server } from 'node:http';
import { connect, createServer as createNetServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { readBodyText } from '../../../src/base/http/body.ts';
import { createHttp, type HttpRequest } from '../../../src/base/http/http.ts';
import { readProxies } from '../../../src/base/http/proxy.ts';
import { fetchText } from '../../../src/base/download/fetch.ts';
import { createTestRetries } from '../../support/test-clock.ts';
import { requireTool } from '../../support/tools.ts';

const redaction = createRedaction();

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

/**
 * A proxy as Squid is delivered: CONNECT to port 443 alone, all other requests forwarded by their
 * whole address, its own errors marked. Asks for a login if there is one.
 */
async function startSquid(login?: string): Promise<{ address: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    asked.push(`${method} ${url}`);
    const refuse = (status: number, error: string): void => {
      response.writeHead(status, { 'x-squid-error': `${error} 0` }).end('refused');
    };
    if (login !== undefined && headers['proxy-authorization'] !== login) {
      refuse(407, 'ERR_CACHE_ACCESS_DENIED');
    } else if (!URL.canParse(url)) refuse(400, 'ERR_INVALID_URL');
    else if (new URL(url).port === '81') refuse(403, 'ERR_ACCESS_DENIED');
    else {
      const forwarded = Object.fromEntries(
        Object.entries(headers).filter(([name]) => !name.startsWith('proxy-')),
      );
      const far = forward(url, { method, headers: forwarded }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
      });
      far.on('error', () => {
        refuse(503, 'ERR_CONNECT_FAIL');
      });
      request.pipe(far);
    }
  });
  server.on('connect', ({ url = '' }, socket) => {
    asked.push(`CONNECT ${url}`);
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 403 Forbidden\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\n\r\n');
  });
  return { address: `127.0.0.1:${await listen(server)}`, asked };
}

const { signal } = new AbortController();

/** The error of a request through a proxy, with what was waited for. */
async function askThrough(https_proxy: string, target = 'https://registry.invalid/') {
  const retries = createTestRetries();
  const http = createHttp({ redaction, env: { https_proxy, http_proxy: https_proxy }, retries });
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
    const proxy = readProxies({ HTTPS_PROXY: address }, redaction)(new URL('https://quay.io/'));
    expect(decodeURIComponent(new URL(proxy ?? '').password)).toBe(password);
  });

  it.each([
    'http://user:1#x@p.example:3128',
    'http://user:1/x@p.example:3128',
    'http://user:a#x@p:1',
    'http://user:1?x@p:1',
  ])('is refused if a password cuts its address off: %s', (HTTPS_PROXY) => {
    expect(() => readProxies({ HTTPS_PROXY }, redaction)).toThrow(
      'HTTPS_PROXY is not the address of a proxy',
    );
  });

  it.each([
    [{ https_proxy: '', HTTPS_PROXY: 'http://big:1' }, 'http://big:1'],
    [{ https_proxy: 'http://small:1', HTTPS_PROXY: 'http://big:1' }, 'http://small:1'],
    [{ https_proxy: 'http://small:1', no_proxy: '', NO_PROXY: 'quay.io' }, undefined],
    [{ https_proxy: '', HTTPS_PROXY: '' }, undefined],
  ])('goes by the variables that are not empty: %o', (env, proxy) => {
    expect(readProxies(env, redaction)(new URL('https://quay.io/'))).toBe(proxy);
  });

  it('is refused before it is sent if the address of the proxy is not valid', async () => {
    const { error } = await askThrough('ftp://user:secret@proxy');
    expect(error).toMatchObject({ code: 'proxy.malformed' });
    expect(JSON.stringify(error) + error.message).not.toContain('secret');
  });
});

describe('a request for plain HTTP', () => {
  /** Says what it was asked; under another name of loopback, which is asked through a proxy. */
  async function startOrigin(): Promise<string> {
    const server = createServer((request, response) => {
      const { method = '', url = '', headers } = request;
      const login = 'proxy-authorization' in headers ? 'with the login of the proxy' : '';
      void request.toArray().then((pieces) => {
        response.end([method, url, headers.host, pieces.join(''), login].join(' ').trim());
      });
    });
    return `http://0.0.0.0:${await listen(server)}`;
  }

  async function send(http_proxy: string, wanted: Omit<HttpRequest, 'url'> & { url: string }) {
    const http = createHttp({ redaction, env: { http_proxy } });
    cleanUps.push(() => http.close());
    const { status, body } = await http.request({ ...wanted, url: new URL(wanted.url), signal });
    return { status, text: await readBodyText(body) };
  }

  it('is forwarded by the proxy, which opens tunnels to port 443 alone', async () => {
    const [{ address, asked }, origin] = [await startSquid(), await startOrigin()];
    const { host } = new URL(origin);
    const url = `${origin}/v2/a?b=%20c`;
    const get = await send(`http://${address}`, { url });
    expect(get).toEqual({ status: 200, text: `GET /v2/a?b=%20c ${host}` });
    const put = await send(`http://${address}`, { url, method: 'PUT', body: 'x' });
    expect(put).toEqual({ status: 200, text: `PUT /v2/a?b=%20c ${host} x` });
    const head = await send(`http://${address}`, { url, method: 'HEAD' });
    expect(head).toEqual({ status: 200, text: '' });
    expect(asked).toEqual([`GET ${url}`, `PUT ${url}`, `HEAD ${url}`]);
  });

  it.each([
    ['user:p%25w', 'user:p%w', 'utf8'],
    ['user:%C3%B6', 'user:ö', 'utf8'],
    ['user:s3cr%F6t%', 'user:s3cröt%', 'latin1'],
    ['%FC:%C3%B6', 'ü:\u00C3\u00B6', 'latin1'],
  ] as const)('has the bytes of the login for the proxy alone: %s', async (...row) => {
    const [written, login, encoding] = row;
    const value = `Basic ${Buffer.from(login, encoding).toString('base64')}`;
    const [{ address }, origin] = [await startSquid(value), await startOrigin()];
    const { text } = await send(`http://${written}@${address}`, { url: `${origin}/` });
    expect(text).toBe(`GET / ${new URL(origin).host}`);
    const { error } = await askThrough(`http://user:wrong@${address}`, origin);
    expect(error).toMatchObject({ code: 'proxy.unauthorized' });
    expect(error.hint).toContain('correct the user or the password in HTTP_PROXY');
  });

  it.each([
    ['http://registry.invalid:81/', 'proxy.forbidden', '403'],
    ['http://registry.invalid/', 'proxy.unavailable', '503'],
  ])('that the proxy refuses (%s) is its own failure', async (url, code, found) => {
    const { address } = await startSquid();
    const { error } = await askThrough(`http://${address}`, url);
    expect(error).toMatchObject({ code, found });
    const { hostname, port } = new URL(url);
    const target = `${hostname}:${port || '80'}`;
    expect(error.message).toContain(`proxy http://${address} answers ${found} to GET ${target}`);
  });

  it('has the answers of the server as they are', async () => {
    const { address } = await startSquid();
    const port = await listen(createServer((_, response) => response.writeHead(403).end('mine')));
    const answer = await send(`http://${address}`, { url: `http://0.0.0.0:${port}/` });
    expect(answer).toEqual({ status: 403, text: 'mine' });
  });

  it('names the proxy that it cannot reach', async () => {
    const address = `http://127.0.0.1:${await freePort()}`;
    const { error } = await askThrough(address, 'http://registry.invalid/');
    expect(error).toMatchObject({ code: 'proxy.unreachable', found: 'ECONNREFUSED' });
    expect(error.message).toContain(
      `proxy ${address} failed before it reached registry.invalid:80`,
    );
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
    const secure = (port: number): string => `https://0.0.0.0:${port}/`;
    expect((await askThrough(through, secure(1))).error).toMatchObject({ code: 'proxy.forbidden' });
    for (const target of [at(closed), secure(closed)]) {
      const { error } = await askThrough(through, target);
      expect(error).toMatchObject({ code: 'proxy.unavailable' });
    }
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
