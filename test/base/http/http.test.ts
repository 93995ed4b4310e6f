import { createServer, type Server } from 'node:http';
import { createServer as createRawServer, type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { createHttp, type Http } from '../../../src/base/http/http.ts';
import { readSmallBody } from '../../../src/base/http/body.ts';
import { explainNetworkFailure } from '../../../src/base/http/network-failure.ts';

const redaction = createRedaction();

let server: Server;
let proxy: Server;
let forwarded: string[];
let http: Http | undefined;

const listen = async (started: Server): Promise<number> => {
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
  return (started.address() as AddressInfo).port;
};
const portOf = (started: Server): number => (started.address() as AddressInfo).port;

beforeEach(async () => {
  forwarded = [];
  server = createServer((request, response) => {
    if (request.url === '/away') response.writeHead(302, { location: '/' }).end();
    else if (request.url === '/cut') {
      response.writeHead(200, { 'content-length': 10 });
      response.write('half', () => response.destroy());
    } else response.end('x'.repeat(1000));
  });
  proxy = createServer((request, response) => {
    forwarded.push(request.url ?? '');
    response.end('x'.repeat(1000));
  });
  await Promise.all([listen(server), listen(proxy)]);
});

afterEach(async () => {
  await http?.close();
  for (const started of [server, proxy]) {
    started.closeAllConnections();
    await new Promise((resolve) => started.close(resolve));
  }
});

const urlOf = (path: string): URL => new URL(`http://127.0.0.1:${portOf(server)}${path}`);

describe('the door to HTTP', () => {
  it('reports the bytes of a body as they arrive', async () => {
    http = createHttp({ redaction, env: {} });
    let count = 0;
    const { body } = await http.request({ url: urlOf('/'), onBytes: (size) => (count += size) });
    expect((await body.toArray()).join('')).toHaveLength(1000);
    expect(count).toBe(1000);
  });

  it('does not wait forever for a small document that comes byte by byte', async () => {
    server.removeAllListeners('request').on('request', (_, response) => {
      const drip = setInterval(() => response.write('x'), 5);
      response.once('close', () => {
        clearInterval(drip);
      });
    });
    http = createHttp({ redaction, env: {} });
    const { body } = await http.request({ url: urlOf('/') });
    const reading = readSmallBody(body, 1 << 20, 200);
    await expect(reading).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    expect(body.destroyed).toBe(true);
  });

  it('ends an endless series of early hints after some of them, at no cost', async () => {
    const endless = createRawServer((socket) => {
      socket.on('error', () => undefined);
      const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'.repeat(1000);
      const send = (): void => {
        while (socket.writable && socket.write(hints));
      };
      socket.on('drain', send).once('data', send);
    });
    await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve));
    const { port } = endless.address() as AddressInfo;
    http = createHttp({ redaction, env: {} });
    const { user } = process.cpuUsage();
    const asked = http.request({ url: new URL(`http://127.0.0.1:${port}/`), headersTimeout: 5000 });
    await expect(asked).rejects.toMatchObject({ code: 'http.no-answer', exitCode: 4 });
    expect(process.cpuUsage().user - user).toBeLessThan(2_000_000);
    await new Promise((resolve) => endless.close(resolve));
  });

  it('states in round numbers how long there was no answer', async () => {
    server.removeAllListeners('request').on('request', () => undefined);
    http = createHttp({ redaction, env: {} });
    await expect(http.request({ url: urlOf('/'), headersTimeout: 301.77 })).rejects.toMatchObject({
      cause: expect.objectContaining({ message: 'no answer in 302 ms' }) as Error,
    });
  });

  it('follows no redirect', async () => {
    http = createHttp({ redaction, env: {} });
    const { status, headers, body } = await http.request({ url: urlOf('/away') });
    expect([status, headers['location']]).toEqual([302, '/']);
    body.resume();
  });

  it('sends one HEAD request after the other on one connection', async () => {
    let connections = 0;
    server.on('connection', () => (connections += 1));
    http = createHttp({ redaction, env: {}, connections: 1 });
    for (let index = 0; index < 3; index++) {
      const { body } = await http.request({ method: 'HEAD', url: urlOf('/') });
      await body.toArray();
    }
    expect(connections).toBe(1);
  });

  it('survives a body that breaks while no code reads it', async () => {
    http = createHttp({ redaction, env: {} });
    const { body } = await http.request({ url: urlOf('/cut') });
    await new Promise((resolve) => body.once('close', resolve).resume());
    expect(body.errored).toBeInstanceOf(Error);
  });

  it('uses the proxy of its environment, except for the hosts in NO_PROXY', async () => {
    const HTTP_PROXY = `http://127.0.0.1:${portOf(proxy)}`;
    http = createHttp({ redaction, env: { HTTP_PROXY } });
    const url = new URL('http://registry.invalid/');
    expect((await (await http.request({ url })).body.toArray()).join('')).toHaveLength(1000);
    expect(forwarded).toEqual(['http://registry.invalid/']);
    await http.close();
    http = createHttp({ redaction, env: { HTTP_PROXY, NO_PROXY: '127.0.0.1' } });
    (await http.request({ url: urlOf('/') })).body.resume();
    expect(forwarded).toHaveLength(1);
  });

  it('reports a server that does not speak HTTP as unreachable', async () => {
    const raw = createRawServer((socket) => {
      socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\nno header\u0001\r\n\r\n');
    });
    await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
    const { port } = raw.address() as AddressInfo;
    http = createHttp({ redaction, env: {} });
    const failure: unknown = await http
      .request({ url: new URL(`http://127.0.0.1:${port}/`) })
      .catch((error: unknown) => error);
    raw.close();
    expect(explainNetworkFailure('host', failure)).toMatchObject({ code: 'registry.unreachable' });
  });
});
