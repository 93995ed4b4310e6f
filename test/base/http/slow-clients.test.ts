import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveBytes, type ServedEntry } from '../../../src/base/http/serve-bytes.ts';

const MIB = 1 << 20;
const SLOW = 40;
const IDLE = 1000;

let server: Server;
let port: number;
let read = 0;
const entries: ServedEntry[] = [];
const sockets: Socket[] = [];

beforeAll(async () => {
  const served = {
    size: 64 * MIB,
    etag: '"a"',
    fill: (bytes: Buffer) => {
      bytes.fill(1);
      read += bytes.length;
      return undefined;
    },
  };
  server = createServer((request, response) => {
    void serveBytes({ request, response }, served).then((entry) => entries.push(entry));
  });
  server.listen(0, '127.0.0.1', 2000);
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  server.close();
});

async function open(): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

describe('clients that take nothing', () => {
  it('hold a piece each and stop the reads, while other clients are answered', async () => {
    const before = process.memoryUsage().arrayBuffers;
    const slow = await Promise.all(Array.from({ length: SLOW }, open));
    for (const socket of slow) {
      socket.pause();
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    }
    await Promise.all(Array.from({ length: IDLE }, open));
    const url = `http://127.0.0.1:${port}`;
    const answer = await fetch(url, { headers: { range: 'bytes=5-104' } });
    expect([answer.status, (await answer.arrayBuffer()).byteLength]).toEqual([206, 100]);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * MIB);
    expect(entries.filter(({ sent }) => sent > 100)).toEqual([]);
    for (const socket of slow) socket.destroy();
    const cut = () => entries.filter(({ complete, status }) => !complete && status === 200);
    while (cut().length < SLOW) await fetch(url, { method: 'HEAD' });
    const taken = read;
    await fetch(url, { method: 'HEAD' });
    expect(read).toBe(taken);
    expect(taken).toBeLessThan((SLOW * 64 * MIB) / 2);
  });
});
