import { once } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  pickOffsets,
  serveControllerImage,
  type ControllerImage,
} from '../../support/controller-image.ts';
import { requireTool } from '../../support/tools.ts';

/* Owns the pattern of management controllers: slow random ranges of 64 KiB, by clients with little HTTP. */

const BLOCK = 64 << 10;
const hasTools = ['genisoimage', 'curl', 'openssl', 'isohybrid'].map(requireTool).every(Boolean);

describe.skipIf(!hasTools)('a management controller', () => {
  let image: ControllerImage;
  beforeAll(async () => {
    image = await serveControllerImage();
  }, 120_000);
  afterAll(async () => {
    expect(await image.close()).toBe(143);
  });

  const urls = (): readonly string[] => [image.http, image.https];
  const offsets = (): readonly number[] => pickOffsets(24, image.bytes.length - BLOCK);

  /** Requires an answer to the range, cut at the end of the image. */
  const requireRange = (answer: RawAnswer, start: number, end: number): void => {
    const size = image.bytes.length;
    const last = Math.min(end, size - 1);
    expect([answer.status, answer.headers['content-range']]).toEqual([
      206,
      `bytes ${start}-${last}/${size}`,
    ]);
    expect(answer.headers['content-length']).toBe(String(last + 1 - start));
    expect(answer.body.equals(image.bytes.subarray(start, last + 1)), `from ${start}`).toBe(true);
  };

  it('gets its ranges on one connection that it keeps, with HEAD between them', async () => {
    for (const url of urls()) {
      const client = await openClient(url);
      for (const start of offsets()) {
        const head = await client.ask('HEAD');
        expect([head.status, head.headers['accept-ranges']]).toEqual([200, 'bytes']);
        expect(head.headers['content-length']).toBe(String(image.bytes.length));
        requireRange(await client.ask('GET', [start, start + BLOCK - 1]), start, start + BLOCK - 1);
      }
      client.close();
    }
  });

  it('gets its ranges with a new connection each, as slowly as it likes, beside others', async () => {
    const read = async (url: string, start: number): Promise<void> => {
      const client = await openClient(url, { pause: 2 });
      const end = start + BLOCK - 1;
      requireRange(await client.ask('GET', [start, end], 'Connection: close\r\n'), start, end);
      await client.requireEnd();
    };
    await Promise.all(urls().flatMap((url) => offsets().map((start) => read(url, start))));
  });

  it('gets a range that passes the end cut at the end, and 416 behind it', async () => {
    const size = image.bytes.length;
    for (const url of urls()) {
      const client = await openClient(url);
      for (const start of [size - BLOCK + 1, size - 2048, size - 1]) {
        const end = start + BLOCK - 1;
        requireRange(await client.ask('GET', [start, end]), start, end);
      }
      const behind = await client.ask('GET', [size, size + BLOCK - 1]);
      expect([behind.status, behind.headers['content-range']]).toEqual([416, `bytes */${size}`]);
      requireRange(await client.ask('GET', [0, BLOCK - 1]), 0, BLOCK - 1);
      client.close();
    }
  });

  it('gets its ranges, and the length, with HTTP/1.0 and without Host', async () => {
    for (const url of urls()) {
      const head = await (await openClient(url, { version: '1.0' })).ask('HEAD');
      expect([head.status, head.headers['content-length']]).toEqual([
        200,
        String(image.bytes.length),
      ]);
      for (const start of offsets().slice(0, 8)) {
        const client = await openClient(url, { version: '1.0' });
        const end = start + BLOCK - 1;
        requireRange(await client.ask('GET', [start, end]), start, end);
        await client.requireEnd();
      }
    }
  });
});

type RawAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

type RawClient = {
  readonly ask: (
    method: 'GET' | 'HEAD',
    range?: readonly [number, number],
    more?: string,
  ) => Promise<RawAnswer>;
  /** Requires that the server ends the connection, without a byte more. */
  readonly requireEnd: () => Promise<void>;
  readonly close: () => void;
};

/**
 * A connection that writes its requests by hand.
 *
 * @param options.pause milliseconds after each piece
 */
async function openClient(
  url: string,
  { version = '1.1', pause = 0 }: { readonly version?: string; readonly pause?: number } = {},
): Promise<RawClient> {
  const { protocol, hostname: host, port, pathname } = new URL(url);
  const isTls = protocol === 'https:';
  const socket: Socket = isTls
    ? connectTls({ host, port: Number(port), rejectUnauthorized: false })
    : connectPlain({ host, port: Number(port) });
  await once(socket, isTls ? 'secureConnect' : 'connect');
  const pieces = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let received = Buffer.alloc(0);
  const take = async (isEnough: () => boolean): Promise<void> => {
    while (!isEnough()) {
      const next = await pieces.next();
      if (next.done === true) throw new Error('answer is cut off');
      received = Buffer.concat([received, next.value]);
      await sleep(pause);
    }
  };
  const ask: RawClient['ask'] = async (method, range, more = '') => {
    const field = range ? `Range: bytes=${range.join('-')}\r\n` : '';
    const name = version === '1.1' ? `Host: ${host}:${port}\r\n` : '';
    socket.write(`${method} ${pathname} HTTP/${version}\r\n${name}${field}${more}\r\n`);
    await take(() => received.includes('\r\n\r\n'));
    const end = received.indexOf('\r\n\r\n') + 4;
    const [line = '', ...fields] = received.subarray(0, end).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(
      fields.map((each) => [each.split(':')[0]?.toLowerCase(), each.replace(/^[^:]*:\s*/, '')]),
    ) as Readonly<Record<string, string>>;
    const size = end + (method === 'HEAD' ? 0 : Number(headers['content-length']));
    await take(() => received.length >= size);
    const body = received.subarray(end, size);
    received = received.subarray(size);
    // A byte too many would be taken for the next answer.
    expect(received.length).toBe(0);
    return { status: Number(line.split(' ')[1]), headers, body };
  };
  return {
    ask,
    async requireEnd() {
      expect((await pieces.next()).done).toBe(true);
    },
    close() {
      socket.destroy();
    },
  };
}
