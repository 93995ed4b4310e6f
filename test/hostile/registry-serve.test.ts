import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { Agent as PlainAgent, get as getPlain, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent, get as getByTls } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectByTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { digestOf, type Digest } from '../../src/base/digest.ts';
import { createRegistryServer } from '../../src/registry/server.ts';
import { directoryTree } from '../../src/registry/layout/tree.ts';
import { startSealift } from '../support/child.ts';
import { makeMedium } from '../support/medium.ts';
import { requireTool } from '../support/tools.ts';

/** Of all of the program, whatever its clients do. */
const MEMORY_BOUND_MIB = 200;

let directory: string;
let iso: string;
/** 5 MB: more than the kernel takes of it for a client that reads nothing. */
let blob: Digest;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-hostile-serve-'));
  const medium = await makeMedium(directory);
  iso = medium.path;
  const etcd = medium.images.find(({ name }) => name === 'etcd')?.image.manifests[0];
  const { layers } = JSON.parse(Buffer.from(etcd?.bytes ?? []).toString()) as {
    readonly layers: readonly { readonly digest: Digest; readonly size: number }[];
  };
  blob = layers.find(({ size }) => size > 4_000_000)?.digest ?? 'sha256:';
});
afterAll(() => rm(directory, { recursive: true }));

let sockets: Socket[] = [];
let stop: () => Promise<unknown> = () => Promise.resolve();
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await stop();
  stop = () => Promise.resolve();
});

type Serving = { readonly port: number; readonly peakMiB: () => Promise<number> };

async function serve(...options: readonly string[]): Promise<Serving> {
  const args = ['registry', 'serve', iso, '--port', '0', '--log-format', 'json', ...options];
  const child = startSealift(args, { cwd: directory });
  stop = () => {
    child.process.kill('SIGTERM');
    return child.ended;
  };
  const [line] = (await once(child.process.stderr ?? child.process, 'data')) as [Buffer];
  const { url } = JSON.parse(line.toString().split('\n')[0] ?? '') as { readonly url: string };
  return {
    port: Number(new URL(url).port),
    async peakMiB() {
      const status = await readFile(`/proc/${child.process.pid ?? 0}/status`, 'utf8');
      return Number(/^VmHWM:\s*(\d+) kB/m.exec(status)?.[1]) / 1024;
    },
  };
}

const request = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: registry\r\n\r\n`;
const pathOf = (digest: Digest): string => `/v2/openshift/release/blobs/${digest}`;

/** A client that sends what it wants and reads none of the answer; settled when it came or broke. */
async function stall(open: () => Socket, text: string): Promise<void> {
  const socket = open();
  sockets.push(socket);
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    socket.once('close', () => {
      resolve();
    });
    socket.once('readable', () => {
      resolve();
    });
    socket.write(text);
  });
}

const stallAll = (count: number, open: () => Socket, text = request(pathOf(blob))) =>
  Promise.all(Array.from({ length: count }, () => stall(open, text)));

/** A client as others: it asks again where its connection is closed, or 503 says so. */
async function pull(get: (path: string) => Promise<Buffer>): Promise<Digest> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return digestOf(await get(pathOf(blob)));
    } catch (error) {
      if (attempt === 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }
}

const take = (call: (onResponse: (response: IncomingMessage) => void) => NodeJS.EventEmitter) =>
  new Promise<Buffer>((resolve, reject) => {
    call((response) => {
      if (response.statusCode !== 200) reject(new Error(String(response.statusCode)));
      response.toArray().then((pieces) => {
        resolve(Buffer.concat(pieces as Buffer[]));
      }, reject);
    }).once('error', reject);
  });

describe('a served registry', () => {
  it('still answers with 600 readers that stall, and stays below 200 MiB', async () => {
    const { port, peakMiB } = await serve();
    const open = (): Socket => connect(port, '127.0.0.1');
    await stallAll(600, open);
    const agent = new PlainAgent();
    const url = `http://127.0.0.1:${port}`;
    const get = (path: string) => take((done) => getPlain(`${url}${path}`, { agent }, done));
    expect(await pull(get)).toBe(blob);
    // The same with requests that are sent without waiting for an answer.
    await stallAll(10, open, request(pathOf(blob)).repeat(500));
    expect(await pull(get)).toBe(blob);
    expect(await peakMiB()).toBeLessThan(MEMORY_BOUND_MIB);
  });

  it.skipIf(!requireTool('openssl'))(
    'answers over TLS with 200 readers that stall and 20 that do not, below 200 MiB',
    async () => {
      const at = (name: string): string => join(directory, name);
      const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
      const files = ['-keyout', at('a.key'), '-out', at('a.crt'), '-subj', '/CN=a'];
      execFileSync('openssl', ['req', ...kind, ...files], { stdio: 'ignore' });
      const { port, peakMiB } = await serve('--tls-cert', at('a.crt'), '--tls-key', at('a.key'));
      const trust = { rejectUnauthorized: false };
      await stallAll(200, () => connectByTls({ port, host: '127.0.0.1', ...trust }));
      const agent = new TlsAgent({ ...trust, maxSockets: 20 });
      const url = `https://127.0.0.1:${port}`;
      const get = (path: string) => take((done) => getByTls(`${url}${path}`, { agent }, done));
      const pulled = await Promise.all(Array.from({ length: 20 }, () => pull(get)));
      expect(new Set(pulled)).toEqual(new Set([blob]));
      expect(await peakMiB()).toBeLessThan(MEMORY_BOUND_MIB);
    },
  );

  it('warns if others can connect without TLS', async () => {
    const args = ['registry', 'serve', iso, '--port', '0', '--host'];
    for (const [host, warns] of [
      ['0.0.0.0', true],
      ['127.0.0.1', false],
    ] as const) {
      const child = startSealift([...args, host], { cwd: directory });
      let said = '';
      child.process.stderr?.on('data', (piece: Buffer) => (said += piece.toString()));
      await vi.waitUntil(() => said.includes('try: '), { timeout: 60_000 });
      child.process.kill('SIGTERM');
      const { stderr } = await child.ended;
      expect(/^warning: anyone who reaches .* --tls-cert and --tls-key/m.test(stderr)).toBe(warns);
    }
  });
});

describe('a connection to a served registry is closed', () => {
  const startServer = async (
    limits: Parameters<typeof createRegistryServer>[1],
  ): Promise<number> => {
    const server = createRegistryServer(directoryTree(directory), limits);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    stop = () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    };
    const address = server.address();
    return typeof address === 'object' ? (address?.port ?? 0) : 0;
  };

  it.each([
    ['when nothing moves on it', request('/v2/'), { idle: 200 }],
    ['when it never sends a request', '', { head: 200 }],
  ])('%s', async (_, text, limits) => {
    const socket = connect(await startServer({ limits }), '127.0.0.1');
    sockets.push(socket);
    socket.write(text);
    socket.resume();
    await once(socket, 'close');
    expect(socket.destroyed).toBe(true);
  });

  it('if there is no room for a new one and it has been idle for longest', async () => {
    const port = await startServer({ limits: { connections: 2, slow: 0 } });
    const [first, second] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
    sockets.push(first, second);
    const closed = once(first, 'close');
    for (const socket of [first, second]) {
      socket.write(request('/v2/'));
      await once(socket, 'data');
    }
    const third = connect(port, '127.0.0.1');
    sockets.push(third);
    third.write(request('/v2/'));
    await once(third, 'data');
    await closed;
    expect(second.closed).toBe(false);
  });
});
