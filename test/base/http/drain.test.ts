import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LimitedServer } from '../../../src/base/http/server.ts';
import { serveBytes } from '../../../src/base/http/serve-bytes.ts';
import { startLimitedServer } from '../../support/limited-server.ts';

/** More than the kernel takes for a client that reads nothing. */
const SIZE = 32 << 20;

let draining: LimitedServer;
let port: number;
let close: () => void;
beforeEach(async () => {
  const served = {
    size: SIZE,
    etag: '"a"',
    fill: (bytes: Buffer) => {
      bytes.fill(1);
      return Promise.resolve();
    },
  };
  const started = await startLimitedServer({}, (request, response) => {
    void serveBytes({ request, response }, served);
  });
  draining = started;
  ({ port, close } = started);
});
afterEach(() => {
  close();
});

/** A client that has the beginning of its answer and takes no more until it is told. */
async function ask(head = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`GET / HTTP/1.1\r\nHost: a\r\n${head}\r\n`);
  await once(socket, 'readable');
  return socket;
}

async function nextResponse(): Promise<ServerResponse> {
  const [, response] = (await once(draining.server, 'request')) as [unknown, ServerResponse];
  return response;
}

async function takeAll(socket: Socket): Promise<number> {
  let size = 0;
  socket.on('data', (piece: Buffer) => (size += piece.length));
  socket.resume();
  await once(socket, 'close');
  return size;
}

describe('a server that drains', () => {
  it('lets each download end, closes idle connections, and takes no new ones', async () => {
    const slow = await ask();
    const idle = await ask('Range: bytes=0-9\r\n');
    idle.resume();
    const ended = draining.drain(new AbortController().signal);
    await once(idle, 'close');
    const refused = connect(port, '127.0.0.1');
    const [error] = (await once(refused, 'error')) as [Error];
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    const size = await takeAll(slow);
    expect(size).toBeGreaterThan(SIZE);
    expect(size).toBeLessThan(SIZE + 1000);
    await ended;
  });

  it('cuts off the remaining downloads when the time is up, and ends after them', async () => {
    let slow = new Socket();
    const [response] = await Promise.all([nextResponse(), ask().then((socket) => (slow = socket))]);
    const limit = new AbortController();
    const ended = draining.drain(limit.signal);
    limit.abort(new Error('time is up'));
    await expect(ended).rejects.toThrow('time is up');
    // Whoever answers knows by now: what it reads from may be closed.
    expect(response.closed).toBe(true);
    expect(await takeAll(slow)).toBeLessThan(SIZE);
  });
});
