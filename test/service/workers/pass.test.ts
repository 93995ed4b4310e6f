import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPass } from '../../../src/service/workers/pass.ts';

describe('a worker that passes a request on', () => {
  let folder: string;
  let inner: Server;
  let outer: Server;
  let passed: IncomingHttpHeaders[];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sealift-pass-'));
    passed = [];
    inner = createServer((request, response) => {
      passed.push(request.headers);
      if (request.url === '/killed') request.socket.destroy();
      else if (request.method === 'PUT') {
        response.end('refused', () => {
          request.socket.destroySoon();
        });
      } else request.resume().on('end', () => response.end('passed'));
    });
    await once(inner.listen(join(folder, 'socket')), 'listening');
    const pass = createPass({ inner: join(folder, 'socket'), isProxy: () => false });
    outer = createServer((request, response) => {
      pass({ request, response });
    });
    await once(outer.listen(0, '127.0.0.1'), 'listening');
  });
  afterEach(async () => {
    for (const server of [inner, outer]) {
      server.closeAllConnections();
      server.close();
    }
    await rm(folder, { recursive: true });
  });

  /** Sends a head as it is, and returns the status of the answer. */
  async function ask(...lines: readonly string[]): Promise<number> {
    const socket = connect((outer.address() as AddressInfo).port, '127.0.0.1');
    socket.write(`${[...lines, 'Host: a', 'Connection: close'].join('\r\n')}\r\n\r\n`, 'latin1');
    return Number(/^HTTP\/1\.1 (\d+)/.exec(await text(socket))?.[1]);
  }

  it.each([
    ['trailers without a body', ['GET / HTTP/1.1', 'Trailer: x']],
    ['trailers of a body with a length', ['POST / HTTP/1.1', 'Content-Length: 0', 'Trailer: x']],
    ['a value with bytes of no character set', ['GET / HTTP/1.1', 'X-A: \u00ff\u0080']],
    ['an upgrade', ['GET / HTTP/1.1', 'Upgrade: websocket']],
    ['an expectation', ['GET / HTTP/1.1', 'Expect: 100-continue']],
    ['a length of zero', ['GET / HTTP/1.1', 'Content-Length: 0', 'TE: trailers']],
  ])('has an answer to a head with %s', async (_, lines) => {
    expect([200, 100]).toContain(await ask(...lines));
    expect(await ask('GET / HTTP/1.1')).toBe(200);
  });

  it('does not let a client set what workers tell the first process', async () => {
    const heads = ['X-Sealift-Passed: tls offer', 'X-Forwarded-For: 192.0.2.1'];
    expect(await ask('GET / HTTP/1.1', ...heads)).toBe(200);
    expect(passed).toMatchObject([{ 'x-sealift-passed': 'plain', 'x-forwarded-for': '127.0.0.1' }]);
  });

  it.each([8, 1 << 20])(
    'goes on after a body of %d bytes that the first process does not take',
    async (size) => {
      const socket = connect((outer.address() as AddressInfo).port, '127.0.0.1');
      const answers = text(socket);
      const refused = once(inner, 'connection').then(([one]) => once(one as Socket, 'close'));
      socket.write(`PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`);
      await refused;
      socket.write('x'.repeat(size));
      socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      expect((await answers).match(/refused|passed/g)).toEqual(['refused', 'passed']);
    },
  );

  it('says that a change was not made only if it is sure of that', async () => {
    expect(await ask('GET /killed HTTP/1.1')).toBe(503);
    expect(await ask('PATCH /killed HTTP/1.1')).toBeNaN();
    inner.closeAllConnections();
    inner.close();
    await once(inner, 'close');
    expect(await ask('PATCH / HTTP/1.1')).toBe(503);
  });
});
