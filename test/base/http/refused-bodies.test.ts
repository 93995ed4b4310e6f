import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type NetConnectOpts } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it, vi } from 'vitest';
import { createClientAddresses } from '../../../src/base/http/client-address.ts';
import { createLimitedServer, type LimitedServer } from '../../../src/base/http/server.ts';
import { SERVER_LIMITS } from '../../../src/service/door.ts';

/* A server that answers before it has the whole body: the client gets the answer nonetheless. */

let folder: string | undefined;
let limited: LimitedServer | undefined;
const requests: string[] = [];

afterEach(async () => {
  await limited?.drain(AbortSignal.abort()).catch(() => undefined);
  if (folder) await rm(folder, { recursive: true });
  folder = undefined;
  requests.splice(0);
});

/** Starts a server that refuses every body as soon as a byte of it has come; by TCP, or by a socket file. */
async function start(isInner: boolean): Promise<NetConnectOpts> {
  limited = createLimitedServer(
    (request, response) => {
      requests.push(request.url ?? '');
      request.once('data', () => {
        request.pause();
        response.writeHead(413, { 'connection': 'close', 'content-length': 7 }).end('refused');
      });
    },
    {
      limits: SERVER_LIMITS,
      addresses: createClientAddresses({ isInner }),
      isInner,
      refuse: () => undefined,
    },
  );
  const { server } = limited;
  folder = await mkdtemp(join(tmpdir(), 'sealift-refused-'));
  const path = join(folder, 'socket');
  await new Promise<void>((resolve) => {
    if (isInner) server.listen({ path }, resolve);
    else server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return typeof address === 'string' ? { path: address } : { port: address?.port ?? 0 };
}

const HEAD = 'POST /one HTTP/1.1\r\nHost: localhost\r\n';
const BODY = Buffer.alloc(8 << 20, 'x');

it.each([
  ['TCP', false],
  ['a socket file', true],
])('a client that reads after it has sent all gets its answer by %s', async (_, isInner) => {
  const place = await start(isInner);
  const socket = connect(place);
  socket.write(`${HEAD}Content-Length: ${BODY.length}\r\n\r\n`);
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.write(BODY, () => {
      resolve();
    });
  });
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 413 [^]*refused$/);
});

it('requests after a body that was refused are not answered', async () => {
  const socket = connect(await start(false));
  socket.write(`${HEAD}Content-Length: ${BODY.length}\r\n\r\n`);
  socket.write(BODY);
  socket.write('GET /two HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect((await text(socket)).match(/HTTP\/1\.1/g)).toHaveLength(1);
  expect(requests).toEqual(['/one']);
});

it('a client that goes on sending is cut off after a while', async () => {
  const socket = connect({ ...(await start(false)), allowHalfOpen: true });
  socket.on('error', () => undefined);
  let isClosed = false;
  socket.on('close', () => (isClosed = true));
  socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
  const send = (): void => {
    if (!isClosed) socket.write('4\r\nmore\r\n', () => setImmediate(send));
  };
  send();
  let answer = '';
  socket.on('data', (piece: Buffer) => (answer += piece.toString()));
  await once(socket, 'end');
  expect(answer).toMatch(/^HTTP\/1\.1 413 [^]*refused$/);
  expect(isClosed).toBe(false);
  await vi.waitUntil(() => isClosed, { timeout: 60_000 });
});
