import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { openPartCache } from '../../src/base/store/part-cache.ts';
import { openReleases } from '../../src/service/store/releases.ts';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { startNginx, type Nginx } from '../support/nginx.ts';
import { API, PULL_SECRET } from '../support/service.ts';
import { requireTool } from '../support/tools.ts';

const redaction = createRedaction();

const PORT = 18_977;

let world: LiveWorld;
beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
  const built = await world.run('build', 'live-iso', '--output', 'files/appliance.iso');
  expect(built).toMatchObject({ exitCode: 0 });
});
afterAll(() => world.close());

describe.skipIf(!requireTool('nginx'))('a service that ends', () => {
  let nginx: Nginx;
  beforeAll(async () => {
    nginx = await startNginx(world.directory, PORT);
  });
  afterAll(() => nginx.kill());

  it('lets a download finish, and still reads its store for it', async () => {
    await writeFile(join(world.directory, 'serve.key'), 'k'.repeat(32));
    const store = `http://127.0.0.1:${PORT}/appliance.iso`;
    const args = ['--listen', '127.0.0.1:0', '--data', 'data', '--cache-size', '4MiB'];
    const words = ['serve', ...args, '--store', store, '--key', 'file:serve.key'];
    const { process: child, ended } = startSealift(words, { cwd: world.directory });
    const told = async (pattern: RegExp): Promise<string> => {
      for (let text = ''; ;) {
        const [piece] = (await once(child.stderr ?? child, 'data')) as [Buffer];
        text += piece.toString();
        const [found] = pattern.exec(text) ?? [];
        if (found !== undefined) return found;
      }
    };
    const url = await told(/http:\/\/127\.0\.0\.1:\d+/);
    const image = await order(url);
    const whole = await digest(await request(image));
    const slow = await request(image);
    slow.pause();
    const draining = told(/draining/);
    child.kill('SIGTERM');
    await draining;
    expect(await digest(slow)).toBe(whole);
    expect(await ended).toMatchObject({ code: 143 });
  });
});

const request = async (url: string): Promise<IncomingMessage> => {
  const [answer] = (await once(get(url, { agent: false }), 'response')) as [IncomingMessage];
  return answer;
};

async function digest(answer: IncomingMessage): Promise<string> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    hash.update(piece);
    size += piece.length;
  }
  expect(String(size)).toBe(answer.headers['content-length']);
  return hash.digest('hex');
}

/** The URL of an image. */
async function order(url: string): Promise<string> {
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    return (await (await fetch(`${url}${API}/v2/${path}`, init)).json()) as Record<string, string>;
  };
  const version = { name: 'edge', openshift_version: '4.21.3' };
  const { id: cluster_id } = await post('clusters/disconnected', version);
  const image_type = 'disconnected-iso';
  const values = { name: 'edge', cluster_id, image_type, pull_secret: PULL_SECRET };
  return (await post('infra-envs', values))['download_url'] ?? '';
}

describe('an ISO of the store that was replaced', () => {
  const countOpen = async (name: string): Promise<number> => {
    const fds = await readdir('/proc/self/fd');
    const targets = fds.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''));
    return (await Promise.all(targets)).filter((target) => target.includes(name)).length;
  };

  it('is readable until no client has read it for a while, and then frees its disk space', async () => {
    const store = join(world.directory, 'store');
    const iso = join(store, 'replaced.iso');
    const put = async (): Promise<void> => {
      await copyFile(join(world.directory, 'files/appliance.iso'), `${iso}.new`);
      await rename(`${iso}.new`, iso);
    };
    await mkdir(store);
    await put();
    const { signal } = new AbortController();
    const host = { env: {}, redaction, cwd: store, signal, emit: () => undefined };
    const warn = (message: string): never => expect.fail(message);
    const directory = join(world.directory, 'parts');
    const cache = await openPartCache({ partSize: 4 << 20, directory, limit: 1 << 20, warn });
    const kept = openReleases([store], { host, cache, warn });
    const first = await kept.find('4.21.3', 'x86_64');
    await put();
    const second = await kept.find('4.21.3', 'x86_64');
    const bytes = Buffer.alloc(2048);
    await first?.base.fill(bytes, 32_768, signal); // a download of it goes on
    expect(bytes.toString('latin1', 1, 6)).toBe('CD001');
    expect([second === first, await countOpen('replaced.iso')]).toEqual([false, 2]);
    await kept.close();
    const hasty = openReleases([store], { host, cache, warn, closeAfter: 0 });
    for (let turn = 0; turn < 3; turn += 1) {
      await hasty.find('4.21.3', 'x86_64');
      await put();
    }
    await hasty.find('4.21.3', 'x86_64');
    await expect.poll(() => countOpen('replaced.iso')).toBe(1);
    await rm(iso);
    expect(await hasty.find('4.21.3', 'x86_64')).toBe(undefined);
    await expect.poll(() => countOpen('replaced.iso')).toBe(0);
    await hasty.close();
    await cache.close();
  });
});
