import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { startSealift, type Child } from '../support/child.ts';
import { makeNightlyBase, noiseImage, writeNightly } from '../support/nightly-medium.ts';
import { startPlainRegistry, type PlainRegistry } from '../support/plain-registry.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['docker-registry', 'genisoimage'].map(requireTool).every(Boolean);

const LAYERS = 16;
const LAYER = 3_000_000;

/**
 * What four lanes have under way: two buffers of 1 MiB each, and what waits in the stream and in the socket. The front
 * holds sockets nearly empty.
 */
const MOST_LOST = 4 * (2 * 1_048_576 + 600_000);

/** Passes connections on to a registry, 16 MB a second each, and counts what it has sent. */
async function startFront(host: string) {
  const [address = '', port = ''] = host.split(':');
  const clients = new Set<Socket>();
  let sent = 0;
  const server = createServer((client) => {
    const origin = connect(Number(port), address);
    clients.add(client);
    client.on('close', () => {
      clients.delete(client);
      origin.destroy();
    });
    client.on('error', () => undefined);
    origin.on('error', () => client.destroy());
    origin.on('end', () => client.end());
    origin.on('data', (piece: Buffer) => {
      if (client.destroyed) return;
      sent += piece.length;
      client.write(piece);
      origin.pause();
      setTimeout(() => origin.resume(), piece.length / 16_000);
    });
    client.pipe(origin);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: () => sent,
    /** What is sent to a process that is stopped is lost on the way, and not by it. */
    cutAll() {
      for (const client of clients) client.destroy();
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

const isStopped = ({ process: { pid } }: Child): boolean =>
  readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') T');

describe.skipIf(!hasTools)('a pull that is killed', () => {
  let home: string;
  let registry: PlainRegistry;
  let front: Awaited<ReturnType<typeof startFront>>;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'sealift-killed-pull-'));
    registry = await startPlainRegistry(join(home, 'registry'));
    front = await startFront(registry.host);
    const basePath = await makeNightlyBase(home, 'base', 1 << 20);
    const names = Array.from({ length: LAYERS }, (_, at) => `layer-${at}`);
    const images = [{ name: 'all', source: 'quay.io/a/b', image: noiseImage(names, LAYER) }];
    await writeNightly(join(home, 'pushed.iso'), { basePath, images });
    await mkdir(join(home, 'site'));
    const pushed = startSealift(['push', 'pushed.iso', `oci://${registry.host}/m/iso:1`], {
      cwd: home,
    });
    expect(await pushed.ended).toMatchObject({ code: 0 });
  }, 120_000);
  afterAll(async () => {
    await front.close();
    await registry.close();
    await rm(home, { recursive: true });
  });

  it('fetches again at most the blobs that its lanes were fetching', async () => {
    const args = ['pull', `oci://${front.host}/m/iso:1`, '--output', 'pulled.iso', '-o', 'json'];
    const start = (): Child => startSealift(args, { cwd: join(home, 'site') });
    const kills = [0.3, 0.6, 0.85];
    for (const share of kills) {
      const child = start();
      while (front.sent() < share * LAYERS * LAYER && child.process.exitCode === null)
        await sleep(2);
      child.process.kill('SIGSTOP');
      while (!isStopped(child)) await sleep(1);
      front.cutAll();
      child.process.kill('SIGKILL');
      await child.ended;
    }
    const { code, stdout } = await start().ended;
    const { size } = JSON.parse(stdout) as { readonly size: number };
    expect(code).toBe(0);
    await runProcess('cmp', [join(home, 'pushed.iso'), join(home, 'site/pulled.iso')]);
    expect(front.sent() - size).toBeLessThanOrEqual(kills.length * MOST_LOST);
  }, 180_000);
});
