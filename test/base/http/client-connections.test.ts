import { connect, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it, vi } from 'vitest';
import type { ServerLimits } from '../../../src/base/http/server.ts';
import { startLimitedServer } from '../../support/limited-server.ts';
import { API, startService, type TestService } from '../../support/service.ts';

let service: TestService | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await service?.close();
  service = undefined;
});

const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const LAST = ask('/').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');

/** It reads nothing until it is told to. */
function open({ url }: TestService): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

it('a client that sends some requests ahead gets their answers in order', async () => {
  service = await startService();
  const socket = open(service);
  const paths = ['/live', '/nothing', `${API}/v2/clusters`, '/page/none', '/live'];
  socket.write(paths.map(ask).join('') + LAST);
  const all = (await text(socket)).matchAll(/HTTP\/1\.1 (\d+)/g);
  const statuses = [...all].map(([, code]) => code);
  expect(statuses).toEqual(['200', '404', '200', '404', '200', '200']);
});

it.each(['/live', '/metrics', '/', `${API}/openapi.json`, `${API}/v2/infra-envs`])(
  'a client that sends thousands of requests for %s ahead is cut off, and costs no memory',
  async (path) => {
    service = await startService();
    const socket = open(service);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(ask(path).repeat(5000));
    await closed;
    expect(service.answered.length).toBeLessThanOrEqual(9);
  },
);

/** Two places; more is answered than the kernel takes for a client that does not read. */
async function listen(limits: Partial<ServerLimits> = { connections: 2, slow: 100 }): Promise<{
  readonly open: (bytes: string) => Socket;
  readonly asked: (requests: number) => Promise<boolean>;
  readonly close: () => void;
}> {
  let asked = 0;
  const { port, close } = await startLimitedServer(limits, (request, response) => {
    asked += 1;
    if (request.url === '/later') return; // not answered yet
    if (request.method === 'GET') response.end(Buffer.alloc(request.url === '/' ? 1 : 64 << 20));
  });
  return {
    open(bytes) {
      const socket = connect(port, '127.0.0.1').pause();
      socket.on('error', () => undefined);
      sockets.push(socket);
      socket.write(bytes);
      return socket;
    },
    asked: (requests) => vi.waitUntil(() => asked === requests),
    close,
  };
}

const BODY = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n';

it.each([
  ['do not read', ask('/large')],
  ['do not send their body', BODY],
])('when all places are taken, clients that %s make room for others', async (_, bytes) => {
  const { open: openTo, asked, close } = await listen();
  openTo(bytes);
  openTo(bytes);
  await asked(2);
  await vi.waitFor(
    async () => {
      expect(await text(openTo(LAST))).toMatch(/^HTTP\/1\.1 200 /);
    },
    { timeout: 10_000 },
  );
  close();
});

it('when all places are taken, a client that waits for its answer is not cut off', async () => {
  const { open: openTo, asked, close } = await listen();
  const waiting = [openTo(ask('/later')), openTo(ask('/later'))];
  await asked(2);
  const until = performance.now() + 300;
  while (performance.now() < until) expect(await text(openTo(LAST))).toMatch(/^HTTP\/1\.1 503 /);
  expect(waiting.map((socket) => socket.resume().closed)).toEqual([false, false]);
  close();
});

it('a connection without an address is closed, unless it comes by a socket file', async () => {
  const asked: string[] = [];
  const { server, close } = await startLimitedServer({}, ({ url = '' }, response) => {
    asked.push(url);
    response.end();
  });
  const socket = new Socket();
  server.emit('connection', socket);
  expect(socket.destroyed).toBe(true);
  expect(asked).toEqual([]);
  close();
});
