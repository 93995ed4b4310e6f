import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { openRandomAccess } from '../../../src/base/random-access.ts';
import { packOverlay, parsePackedOverlay } from '../../../src/media/serve/overlay.ts';
import { serveBytes, type ServedEntry } from '../../../src/base/http/serve-bytes.ts';
import type { Served } from '../../../src/base/http/plan-answer.ts';
import { createVirtualIso } from '../../../src/media/serve/virtual.ts';
import { startLimitedServer } from '../../support/limited-server.ts';
import { freePort } from '../../support/local-http.ts';
import { startNginx, type Nginx } from '../../support/nginx.ts';
import { requireTool } from '../../support/tools.ts';

const hasJudges = requireTool('nginx') && requireTool('curl');
const run = promisify(execFile);

const SIZE = 3_000_001;
/** Over the first megabyte's border, and over the end of the base. */
const PARTS = [
  {
    offset: 1_000_000,
    bytes: Buffer.concat([Buffer.alloc(70_000, 'overlay'), Buffer.alloc(90_000)]),
  },
  { offset: SIZE - 3, bytes: Buffer.from('behind the end') },
];
const WHOLE = SIZE - 3 + 14;

let directory: string;
let nginx: Nginx;
let server: Awaited<ReturnType<typeof startLimitedServer>>;
let served: Served;
let lastModified: Date;
/** Of what was answered, by path. */
const entries: ServedEntry[] = [];
const urls = { nginx: '', sealift: '' };

beforeAll(async () => {
  if (!hasJudges) return;
  directory = await mkdtemp(join(tmpdir(), 'sealift-serve-'));
  const base = createHash('shake256', { outputLength: SIZE }).update('base').digest();
  const whole = Buffer.concat([base, Buffer.alloc(WHOLE - SIZE)]);
  for (const { offset, bytes } of PARTS) whole.set(bytes, offset);
  await mkdir(join(directory, 'files'));
  const made = join(directory, 'files/made.iso');
  await writeFile(made, whole);
  await writeFile(join(directory, 'base.iso'), base);
  lastModified = new Date(Math.floor((await stat(made)).mtimeMs / 1000) * 1000);
  const port = await freePort();
  nginx = await startNginx(directory, port, 'max_ranges 1;');
  const access = await openRandomAccess(join(directory, 'base.iso'));
  served = createVirtualIso(
    {
      size: SIZE,
      digest: digestOf(base),
      fill: async (bytes, offset) => {
        await access.read(offset, bytes.length, bytes);
      },
    },
    parsePackedOverlay(packOverlay(PARTS)),
  );
  const options = { filename: 'agent-ove.x86_64.iso', lastModified };
  server = await startLimitedServer({}, (request, response) => {
    void serveBytes({ request, response }, served, options).then((entry) => entries.push(entry));
  });
  urls.nginx = `http://127.0.0.1:${port}/made.iso`;
  urls.sealift = `http://127.0.0.1:${server.port}/made.iso`;
});
afterAll(async () => {
  if (!hasJudges) return;
  server.close();
  await nginx.kill();
  await rm(directory, { recursive: true, force: true });
});

/** Those in which a client must not see a difference. */
const COMPARED = ['content-range', 'content-length', 'last-modified'];

/** What curl has of an answer. */
async function ask(url: string, args: readonly string[]) {
  const [head, body] = [join(directory, 'head'), join(directory, 'body')];
  await rm(body, { force: true });
  await run('curl', ['-sS', '-D', head, '-o', body, ...args, url]);
  const lines = (await readFile(head, 'utf8')).trim().toLowerCase().split('\r\n');
  const status = Number(lines[0]?.split(' ')[1]);
  const headers: Record<string, string> = {};
  for (const line of lines.slice(1))
    headers[line.split(': ')[0] ?? ''] = line.split(/: (.*)/s)[1] ?? '';
  const isPlain = status < 300;
  const digest =
    isPlain && !args.includes('-I') ? digestOf(await readFile(body).catch(() => '')) : '';
  const compared = isPlain ? COMPARED : COMPARED.slice(0, status === 416 ? 1 : 0);
  return {
    headers,
    answer: {
      status,
      digest,
      headers: compared.map((name) => [name, headers[name]]),
    },
  };
}

/** The same request to both; `ETAG` is the tag that each has given, `SAME` is the time of the file. */
async function askBoth(args: readonly string[]) {
  const answers = [];
  for (const url of [urls.nginx, urls.sealift]) {
    const { headers } = await ask(url, ['-I']);
    const words = args.map((arg) =>
      arg
        .replace('ETAG', headers['etag'] ?? '')
        .replace('SAME', date(0))
        .replace('LATER', date(1))
        .replace('EARLIER', date(-1)),
    );
    answers.push(await ask(url, words));
  }
  return answers;
}

const date = (seconds: number): string =>
  new Date(lastModified.getTime() + seconds * 1000).toUTCString();

describe.skipIf(!hasJudges)('a request for the bytes of a virtual ISO', () => {
  it.each([
    [200, []],
    [200, ['-I']],
    [206, ['-r', '0-0']],
    [206, ['-r', '999990-1160010']],
    [206, ['-r', '2999990-']],
    [206, ['-r', '0-']],
    [206, ['-r', '-5']],
    [206, ['-r', `-${WHOLE}`]],
    [206, ['-r', `-${WHOLE + 1}`]],
    [206, ['-r', `5-${WHOLE + 5}`]],
    [206, ['-H', 'Range: Bytes=7-9']],
    [416, ['-r', `${WHOLE}-`]],
    [416, ['-r', `${WHOLE}-${WHOLE + 1}`]],
    [416, ['-r', '-0']],
    [416, ['-r', '99999999999999999999-']],
    [200, ['-r', '0-5,10-15']],
    [200, ['-r', '0-5,-5']],
    [200, ['-H', 'Range: lines=0-5']],
    [206, ['-r', '5-9', '-H', 'If-Range: ETAG']],
    [200, ['-r', '5-9', '-H', 'If-Range: "another"']],
    [200, ['-r', '5-9', '-H', 'If-Range: W/ETAG']],
    [206, ['-r', '5-9', '-H', 'If-Range: SAME']],
    [200, ['-r', '5-9', '-H', 'If-Range: LATER']],
    [200, ['-r', '5-9', '-H', 'If-Range: EARLIER']],
    [206, ['-r', '5-9', '-H', 'If-Unmodified-Since: SAME']],
    [304, ['-H', 'If-Modified-Since: SAME']],
    [304, ['-I', '-H', 'If-Modified-Since: SAME']],
    [200, ['-H', 'If-Modified-Since: EARLIER']],
    [200, ['-H', 'If-Modified-Since: yesterday']],
    [304, ['-H', 'If-None-Match: ETAG']],
    [304, ['-H', 'If-None-Match: "a", W/ETAG']],
    [304, ['-H', 'If-None-Match: *']],
    [304, ['-I', '-H', 'If-None-Match: ETAG']],
    [200, ['-H', 'If-None-Match: "another"', '-H', 'If-Modified-Since: LATER']],
    [200, ['-H', 'If-Match: ETAG']],
    [412, ['-H', 'If-Match: "another"']],
    [412, ['-H', 'If-Unmodified-Since: EARLIER']],
  ])('is answered with %d as nginx answers for the made file: curl %j', async (status, args) => {
    const [theirs, ours] = await askBoth(args);
    expect(ours?.answer).toEqual(theirs?.answer);
    expect(ours?.answer.status).toBe(status);
  });

  it('is answered with a file name, a strong tag, and no type to guess', async () => {
    const { headers } = await ask(urls.sealift, ['-I']);
    expect(headers).toMatchObject({
      'etag': served.etag,
      'content-disposition': 'attachment; filename=agent-ove.x86_64.iso',
      'content-type': 'application/octet-stream',
      'x-content-type-options': 'nosniff',
      'accept-ranges': 'bytes',
    });
    expect(headers['etag']).toMatch(/^"[0-9a-f]{64}"$/);
  });

  it('has no effect of its range if it is HEAD or the range is malformed (RFC 9110 14.2)', async () => {
    expect((await ask(urls.sealift, ['-I', '-r', '0-5'])).answer.status).toBe(200);
    for (const range of ['bytes=5-2', 'bytes=-', 'bytes=a-b', 'bytes', 'bytes=0x1-5']) {
      const { answer } = await ask(urls.sealift, ['-H', `Range: ${range}`]);
      expect([range, answer.status]).toEqual([range, 200]);
    }
  });

  it('is refused with another method, and the answer names the allowed ones', async () => {
    const { answer, headers } = await ask(urls.sealift, ['-X', 'DELETE']);
    expect([answer.status, headers['allow']]).toEqual([405, 'get, head']);
  });

  it('is answered completely to a download that is cut and resumed many times', async () => {
    const target = join(directory, 'resumed');
    await writeFile(target, '');
    for (let cut = 1; cut <= 8; cut += 1) {
      // curl takes what comes until it has too much, and leaves.
      const limit = String(Math.floor((WHOLE * cut) / 8));
      const size = (await stat(target)).size;
      const range = `${size}-`;
      const etag = `If-Range: ${served.etag}`;
      const piece = await run(
        'bash',
        [
          '-c',
          'curl -sS -r "$0" -H "$1" "$2" | head -c "$3"',
          range,
          etag,
          urls.sealift,
          String(Number(limit) - size),
        ],
        { encoding: 'buffer', maxBuffer: WHOLE },
      );
      await writeFile(target, piece.stdout, { flag: 'a' });
    }
    expect(digestOf(await readFile(target))).toBe(
      digestOf(await readFile(join(directory, 'files/made.iso'))),
    );
  });

  it('stops the reads when its client goes away', async () => {
    const before = entries.length;
    const port = Number(new URL(urls.sealift).port);
    const socket = connect(port, '127.0.0.1');
    socket.write('GET /made.iso HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    socket.destroy();
    while (entries.length === before)
      await once(server.server, 'connection', { signal: AbortSignal.timeout(5) }).catch(
        () => undefined,
      );
    expect(entries.at(-1)).toMatchObject({ status: 200, complete: false });
    expect(entries.at(-1)?.sent).toBeLessThan(WHOLE);
  });

  it('closes its connection if too many requests were sent ahead', async () => {
    const port = Number(new URL(urls.sealift).port);
    const socket: Socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('GET /made.iso HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1000));
    await once(socket, 'close');
  });
});

describe('an error of reading', () => {
  it('is thrown before bytes are sent, and breaks the connection afterwards', async () => {
    const results: unknown[] = [];
    const failing = await startLimitedServer({}, (request, response) => {
      const isLate = request.url === '/late';
      const bytes: Served = {
        size: 2 << 20,
        etag: '"a"',
        fill: (buffer, offset) =>
          isLate && offset === 0
            ? Promise.resolve(void buffer.fill(1))
            : Promise.reject(new Error('gone')),
      };
      serveBytes({ request, response }, bytes).then(
        (entry) => results.push(entry),
        (error: unknown) => {
          results.push(error);
          response.writeHead(500).end();
        },
      );
    });
    const url = `http://127.0.0.1:${failing.port}`;
    expect((await fetch(`${url}/early`)).status).toBe(500);
    await expect(fetch(`${url}/late`).then((answer) => answer.arrayBuffer())).rejects.toThrow();
    expect(results).toEqual([
      new Error('gone'),
      expect.objectContaining({ status: 200, complete: false, error: new Error('gone') }),
    ]);
    failing.close();
  });
});
