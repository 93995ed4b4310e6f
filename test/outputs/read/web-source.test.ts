import type { ServerResponse } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import type { HttpRequestEvent } from '../../../src/base/http/report-requests.ts';
import type { RetryEvent } from '../../../src/base/retry.ts';
import type { RandomAccess } from '../../../src/base/random-access.ts';
import { openSource } from '../../../src/outputs/read/open.ts';
import { serveLocally } from '../../support/local-http.ts';

const redaction = createRedaction();

/** Larger than what is read ahead, and different everywhere. */
const BYTES = Buffer.alloc(24 << 20);
for (let at = 0; at < BYTES.length; at += 4) BYTES.writeUInt32LE(at, at);

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-source-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

type Event = RetryEvent | HttpRequestEvent;

type Asked = {
  readonly first: number;
  readonly last: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
};

/** What RFC 9110 says to answer; a test spoils it. */
type Answer = { status: number; headers: Record<string, string>; body: Buffer; cutAt?: number };

/** Serves the bytes by ranges. `spoil` is told the number of the request, from 0: the one that asks for the size. */
async function serve(
  spoil: (answer: Answer, count: number, asked: Asked) => void = () => undefined,
) {
  const asked: Asked[] = [];
  const server = await serveLocally((request, response) => {
    const [, first = 0, last = 0] = /^bytes=(\d+)-(\d+)$/
      .exec(request.headers.range ?? '')
      ?.map(Number) ?? [0, 0, BYTES.length - 1];
    const answer: Answer = {
      status: 206,
      headers: { 'content-range': `bytes ${first}-${last}/${BYTES.length}`, 'etag': '"one"' },
      body: BYTES.subarray(first, last + 1),
    };
    const about = { first, last, headers: request.headers };
    asked.push(about);
    spoil(answer, asked.length - 1, about);
    send(response, answer);
  });
  onTestFinished(() => server.close());
  return { ...server, asked };
}

function send(response: ServerResponse, { status, headers, body, cutAt }: Answer): void {
  response.writeHead(status, { ...headers, 'content-length': String(body.length) });
  if (cutAt === undefined) response.end(body);
  else response.write(body.subarray(0, cutAt), () => response.destroy());
}

async function open(
  text: string,
  { env = {}, events = [] }: { env?: NodeJS.ProcessEnv; events?: Event[] } = {},
): Promise<RandomAccess> {
  const emit = (event: Event): void => void events.push(event);
  const signal = new AbortController().signal;
  const source = await openSource(text, { env, redaction, cwd: directory, signal, emit });
  onTestFinished(() => source.close());
  return source;
}

const code = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no error',
    (error: unknown) => (error as { code?: string }).code ?? error,
  );

describe('a source behind HTTP', () => {
  it('has the bytes of the file at any offset', async () => {
    const { url } = await serve();
    const source = await open(`${url}/a.iso`);
    expect(source.size).toBe(BYTES.length);
    for (const [offset, size] of [
      [0, 1],
      [4095, 2],
      [1_000_000, 100_000],
      [3, 5 << 20],
      [BYTES.length - 7, 7],
      [500, 0],
    ] as const) {
      const found = await source.read(offset, size);
      expect(found.equals(BYTES.subarray(offset, offset + size))).toBe(true);
    }
    expect(await code(source.read(BYTES.length, 1))).toBe('iso.out-of-bounds');
  });

  it('is asked once for bytes that several readers want at the same time', async () => {
    const { url, asked } = await serve();
    const source = await open(`${url}/a.iso`);
    const found = await Promise.all([
      source.read(10_000, 50_000),
      source.read(20_000, 5000),
      source.read(10_000, 50_000),
    ]);
    expect(found[1].equals(BYTES.subarray(20_000, 25_000))).toBe(true);
    expect(asked).toHaveLength(2); // the size, and the range
    await source.read(30_000, 100);
    expect(asked).toHaveLength(2);
  });

  it('is read ahead for a sequential reader, by at most half of the bytes that were read', async () => {
    const { url, asked } = await serve();
    const source = await open(`${url}/a.iso`);
    const PIECE = 64 << 10;
    for (let at = 0; at < 16 << 20; at += PIECE) {
      expect((await source.read(at, PIECE)).equals(BYTES.subarray(at, at + PIECE))).toBe(true);
      const furthest = Math.max(...asked.map(({ last }) => last));
      expect(furthest).toBeLessThan((at + PIECE) * 1.5 + 8192);
    }
    expect(asked.length).toBeLessThan(40);
  });

  it('is continued at the byte where its connection broke off', async () => {
    let cuts = 0;
    const { url, asked } = await serve((answer, count) => {
      if (count === 0 || answer.body.length < 100_000 || cuts === 3) return;
      cuts += 1;
      answer.cutAt = 90_000;
    });
    const source = await open(`${url}/a.iso`);
    const found = await source.read(0, 3 << 20);
    expect(found.equals(BYTES.subarray(0, 3 << 20))).toBe(true);
    expect(cuts).toBe(3);
    const starts = asked.slice(1).map(({ first }) => first);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    expect(starts.at(-1)).toBeGreaterThan(0);
  });

  it('is asked again after an answer that asks to retry later', async () => {
    const events: Event[] = [];
    const { url } = await serve((answer, count) => {
      if (count === 2) Object.assign(answer, { status: 503, body: Buffer.from('later') });
    });
    const source = await open(`${url}/a.iso`, { events });
    await source.read(0, 1000);
    expect((await source.read(50_000, 1000)).equals(BYTES.subarray(50_000, 51_000))).toBe(true);
    expect(events.filter(({ type }) => type === 'retry')).toHaveLength(1);
  });

  it.each<[string, string, (answer: Answer) => void]>([
    ['serves no ranges', 'source.no-ranges', (answer) => void (answer.status = 200)],
    [
      'does not know the size',
      'source.range',
      ({ headers }) => void (headers['content-range'] = 'bytes 0-0/*'),
    ],
    [
      'compresses the bytes',
      'http.content-coding',
      ({ headers }) => void (headers['content-encoding'] = 'gzip'),
    ],
    ['asks for a credential', 'source.unauthorized', (answer) => void (answer.status = 401)],
    ['permits no request', 'source.forbidden', (answer) => void (answer.status = 403)],
    ['has no such file', 'source.not-found', (answer) => void (answer.status = 404)],
    ['does not know the method', 'source.refused', (answer) => void (answer.status = 405)],
  ])('gives an error when its server %s: %s', async (_what, expected, spoil) => {
    const { url } = await serve(spoil);
    expect(await code(open(`${url}/a.iso?token=hidden`))).toBe(expected);
  });

  it.each<[string, string, (answer: Answer) => void]>([
    ['has another ETag', 'source.changed', ({ headers }) => void (headers['etag'] = '"two"')],
    ['no longer fits its ETag', 'source.changed', (answer) => void (answer.status = 412)],
    [
      'has another size',
      'source.changed',
      ({ headers }) => void (headers['content-range'] = 'bytes 0-4095/5000'),
    ],
    [
      'is shorter than it was',
      'source.changed',
      (answer) => {
        answer.status = 416;
        answer.headers['content-range'] = 'bytes */100';
      },
    ],
    [
      'is sent from another offset',
      'source.range',
      ({ headers }) => void (headers['content-range'] = `bytes 1-4096/${BYTES.length}`),
    ],
    [
      'is sent beyond the requested range',
      'source.range',
      ({ headers }) => void (headers['content-range'] = `bytes 0-8191/${BYTES.length}`),
    ],
    [
      'has more bytes than its range',
      'source.range',
      (answer) => void (answer.body = BYTES.subarray(0, 9000)),
    ],
    [
      'ends before its range does',
      'source.too-short',
      (answer) => void (answer.body = Buffer.alloc(0)),
    ],
    ['is now sent only as a whole', 'source.no-ranges', (answer) => void (answer.status = 200)],
    ['is gone', 'source.not-found', (answer) => void (answer.status = 404)],
  ])('gives an error when it %s: %s', async (_what, expected, spoil) => {
    const { url } = await serve((answer, count) => {
      if (count > 0) spoil(answer);
    });
    const source = await open(`${url}/a.iso`);
    expect(await code(source.read(100, 1000))).toBe(expected);
  });

  it('is requested with its ETag, so that bytes of two files are never mixed', async () => {
    const { url, asked } = await serve();
    await (await open(`${url}/a.iso`)).read(0, 10);
    expect(asked[1]?.headers['if-match']).toBe('"one"');
  });

  it('gets the credential of the auth file when it asks for one, at its own origin only', async () => {
    const auth = Buffer.from('joe:pass-word-1').toString('base64');
    const file = join(directory, 'auth.json');
    const storage = await serve();
    const { url, host, asked } = await serve((answer, _count, { headers }) => {
      answer.headers['www-authenticate'] = 'Basic realm="files"';
      answer.status = headers['authorization'] === `Basic ${auth}` ? 302 : 401;
      answer.headers['location'] = `${storage.url}/stored`;
    });
    await writeFile(file, JSON.stringify({ auths: { [host]: { auth } } }));
    const source = await open(`${url}/a.iso`, { env: { REGISTRY_AUTH_FILE: file } });
    expect((await source.read(5, 5)).equals(BYTES.subarray(5, 10))).toBe(true);
    expect(asked.map(({ headers }) => headers['authorization'])).toEqual([
      undefined,
      `Basic ${auth}`,
      `Basic ${auth}`,
    ]);
    expect(storage.asked.every(({ headers }) => headers['authorization'] === undefined)).toBe(true);
    expect(await code(open(`${url}/a.iso`))).toBe('source.unauthorized');
  });

  it('is asked in the open form where a server knows no other one', async () => {
    const ranges: (string | undefined)[] = [];
    const server = await serveLocally(({ headers: { range } }, response) => {
      ranges.push(range);
      const [, first = '', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
      if (last !== '' && last !== '0') return void response.writeHead(416).end();
      const end = last === '' ? BYTES.length : 1;
      const stated = `bytes ${first}-${end - 1}/${BYTES.length}`;
      response.writeHead(206, { 'content-range': stated, 'etag': '"one"' });
      response.end(BYTES.subarray(Number(first), end));
    });
    onTestFinished(() => server.close());
    const source = await open(`${server.url}/a.iso`);
    const bytes = await source.read(2 << 20, 2 << 20);
    expect(bytes.equals(BYTES.subarray(2 << 20, 4 << 20))).toBe(true);
    expect(ranges.slice(1)).toEqual(['bytes=2097152-4194303', 'bytes=2097152-']);
  });

  it('is refused when its address has an unknown scheme', async () => {
    expect(await code(open('gopher://example.com/a.iso'))).toBe('source.address');
    expect(await code(open('https://'))).toBe('source.address');
  });

  it('stops at once when it is closed', async () => {
    const { url } = await serve((answer, count) => {
      if (count > 0) answer.cutAt = 1;
    });
    const source = await open(`${url}/a.iso`);
    const reading = source.read(0, 1000);
    const failing = expect(reading).rejects.toThrow('is closed');
    await source.close();
    await failing;
  });
});
