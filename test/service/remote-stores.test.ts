import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { freePort, serveLocally } from '../support/local-http.ts';
import { startNginx, type Nginx } from '../support/nginx.ts';
import { startPlainRegistry, type PlainRegistry } from '../support/plain-registry.ts';
import { API, PULL_SECRET, SSH_KEY, startService, type TestService } from '../support/service.ts';
import { requireTool } from '../support/tools.ts';
import { createRedaction } from '../../src/base/text/redact.ts';

const redaction = createRedaction();

const run = promisify(execFile);
const hasTools = ['nginx', 'docker-registry', 'curl', 'genisoimage']
  .map(requireTool)
  .every(Boolean);

describe.skipIf(!hasTools)('an image of a remote ISO', () => {
  let world: LiveWorld;
  let nginx: Nginx;
  let registry: PlainRegistry;
  let port: number;
  const services: TestService[] = [];
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const built = await world.run('build', 'live-iso', '--output', 'files/appliance.iso');
    expect(built).toMatchObject({ exitCode: 0 });
    port = await freePort();
    [nginx, registry] = await Promise.all([
      startNginx(world.directory, port),
      startPlainRegistry(join(world.directory, 'registry')),
    ]);
  });
  afterAll(async () => {
    await Promise.all(services.map((each) => each.close()));
    await Promise.all([nginx.kill(), registry.close()]);
    await world.close();
  });

  const serve = async (store: string, more: object = {}): Promise<TestService> => {
    const { env, directory: cwd } = world;
    const host = {
      env,
      redaction,
      cwd,
      signal: new AbortController().signal,
      emit: () => undefined,
    };
    const service = await startService({ stores: [store], host, ...more });
    services.push(service);
    return service;
  };
  const download = async (url: string, to: string, ...args: string[]): Promise<string> => {
    const path = join(world.directory, to);
    await run('curl', ['-sSf', '-o', path, ...args, url]);
    return createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
  };

  /** The URL of an image with the same values each time. */
  const createImage = async (service: TestService, version = '4.21.3'): Promise<string> => {
    const cluster = await service.call('POST', `${API}/v2/clusters/disconnected`, {
      body: { name: 'edge', openshift_version: version },
    });
    const { body } = await service.call('POST', `${API}/v2/infra-envs`, {
      body: {
        name: 'edge',
        cluster_id: cluster.body['id'],
        pull_secret: PULL_SECRET,
        ssh_authorized_key: SSH_KEY,
      },
    });
    return String(body['download_url']);
  };

  it('is the same by HTTP, from a registry and from a folder, through a cache of limited size', async () => {
    const address = `oci://${registry.host}/isos/appliance:one`;
    const pushed = await world.run('push', 'files/appliance.iso', address);
    expect(pushed).toMatchObject({ exitCode: 0 });
    const cacheLimit = 6 << 20;
    const digests: string[] = [];
    const statuses: number[] = [];
    for (const store of ['files', `http://127.0.0.1:${port}/appliance.iso`, address]) {
      const service = await serve(store, { cacheLimit });
      expect((await service.call('GET', '/ready')).status).toBe(200);
      const image = await createImage(service);
      digests.push(await download(image, 'got.iso'));
      // To know its SHA-256 would fetch all of it once more.
      statuses.push((await fetch(`${image}.sha256`)).status);
      const { stdout } = await run('du', ['-sb', join(service.data, 'cache')]);
      expect(Number.parseInt(stdout)).toBeLessThan(cacheLimit + 65_536);
    }
    expect(statuses).toEqual([202, 404, 404]);
    const [expected] = digests;
    expect(digests).toEqual([expected, expected, expected]);
    expect(await download(`http://127.0.0.1:${port}/appliance.iso`, 'plain.iso')).not.toBe(
      expected,
    );
  });

  it('is cut off when its store goes away, and continues with the same bytes when the store is back', async () => {
    const place = `http://127.0.0.1:${port}/appliance.iso`;
    const expected = await download(await createImage(await serve('files')), 'whole.iso');
    const fresh = await serve(place, { retryFor: 1500, storeRetryAfter: 50 });
    const other = await createImage(fresh);
    await createImage(fresh);
    await download(other, 'first.iso', '-r', '0-99999');
    await nginx.kill();
    const cut = download(other, 'cut.iso');
    await expect(cut).rejects.toMatchObject({ code: 18 });
    const path = join(world.directory, 'cut.iso');
    const { length } = await readFile(path);
    expect(length).toBeGreaterThanOrEqual(100_000);
    expect(await statusOf(fresh, '/ready')).toBe(503);
    expect(await statusOf(fresh, '/live')).toBe(200);
    const { pathname, search } = new URL(other);
    const answered = await fresh.call('GET', pathname + search, {
      headers: { Range: 'bytes=-1000' },
    });
    expect(answered.status).toBe(503);
    expect(answered.text).not.toContain(String(port));
    const { text: listed } = await fresh.call('GET', `${API}/v2/infra-envs`);
    const infraEnvs = JSON.parse(listed) as readonly { id: string; download_url: string }[];
    const infraEnv = infraEnvs.find((each) => each.download_url !== other);
    const record = `${API}/v2/infra-envs/${infraEnv?.id ?? ''}`;
    const body = { additional_ntp_sources: '192.0.2.1' };
    expect((await fresh.call('PATCH', record, { body })).status).toBe(201);
    const named = await fresh.call('GET', `${record}/downloads/image-url`);
    expect([named.status, named.body['size']]).toEqual([200, undefined]);
    nginx = await startNginx(world.directory, port);
    await vi.waitUntil(async () => (await statusOf(fresh, '/ready')) === 200, { timeout: 20_000 });
    expect(await download(other, 'cut.iso', '-C', '-')).toBe(expected);
  });

  it.each(['no answer', 'half an answer'] as const)(
    'is refused or cut off for all clients if its store returns %s, and served after it recovers',
    async (illness) => {
      const file = await readFile(join(world.directory, 'files/appliance.iso'));
      let isWell = true;
      const store = await serveLocally(({ headers }, response) => {
        const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
        const [from, to] = [Number(first), Number(last) + 1];
        const range = `bytes ${from}-${to - 1}/${file.length}`;
        if (!isWell && illness === 'no answer') return;
        response.writeHead(206, { 'content-range': range, 'content-length': to - from });
        if (isWell) response.end(file.subarray(from, to));
        else response.write(file.subarray(from, Math.floor((from + to) / 2)));
      });
      const service = await serve(`${store.url}/appliance.iso`, {
        ...{ retryFor: 1500, storeRetryAfter: 50, cacheLimit: 0 },
      });
      const { pathname, search } = new URL(await createImage(service));
      const ask = (offset: number): Promise<number> =>
        statusOf(service, pathname + search, { Range: `bytes=${offset}-${offset}` });
      expect(await ask(0)).toBe(206);
      isWell = false;
      const offsets = Array.from({ length: 40 }, (_, index) =>
        Math.floor((index * file.length) / 40),
      );
      // What is in memory already is served.
      const answers = new Set(await Promise.all(offsets.map(ask)));
      expect(answers).toEqual(answers.has(206) ? new Set([503, 206]) : new Set([503]));
      isWell = true;
      await vi.waitUntil(async () => (await ask(file.length - 1)) === 206, { timeout: 20_000 });
      expect(new Set(await Promise.all(offsets.map(ask)))).toEqual(new Set([206]));
      await store.close();
    },
    // A request that is silent for a minute is no longer waited for, elsewhere.
    60_000,
  );

  it('is served as soon as its store answers', async () => {
    const later = await freePort();
    const service = await serve(`http://127.0.0.1:${later}/appliance.iso`, {
      retryFor: 0,
      storeRetryAfter: 50,
    });
    expect(await statusOf(service, '/ready')).toBe(503);
    expect(service.warnings).toEqual([expect.stringMatching(/is not served: /)]);
    const short = new URL(await createImage(service)).pathname;
    const pathname = await longPathOf(service, short);
    expect(await statusOf(service, pathname)).toBe(503);
    const started = await startNginx(world.directory, later);
    await vi.waitUntil(async () => (await statusOf(service, '/ready')) === 200, {
      timeout: 20_000,
    });
    expect(await statusOf(service, pathname, { Range: 'bytes=0-0' })).toBe(206);
    // Its URL was made for an ISO that nobody knew.
    expect(await statusOf(service, short)).toBe(410);
    await started.kill();
  });

  it('is not reported as missing while its store is away, even if there are other ISOs', async () => {
    const later = await freePort();
    const others = join(world.directory, 'others');
    await mkdir(others);
    await run('genisoimage', ['-quiet', '-o', join(others, 'live.iso'), 'others'], {
      cwd: world.directory,
    });
    const image = { openshift_version: '4.1.1', cpu_architecture: 'x86_64', url: 'live.iso' };
    await writeFile(join(others, 'os-images.json'), JSON.stringify([image]));
    const service = await serve(others, {
      stores: [others, `http://127.0.0.1:${later}/appliance.iso`],
      retryFor: 0,
      storeRetryAfter: 50,
    });
    const urls = [await createImage(service), await createImage(service, '4.21.4')];
    const paths = await Promise.all(urls.map((url) => longPathOf(service, new URL(url).pathname)));
    const ask = () => Promise.all(paths.map((path) => statusOf(service, path)));
    expect(await statusOf(service, '/ready')).toBe(200);
    expect(await ask()).toEqual([503, 503]);
    const started = await startNginx(world.directory, later);
    await vi.waitUntil(async () => (await ask())[0] === 200, { timeout: 20_000 });
    // Now nobody else can have it.
    expect(await ask()).toEqual([200, 500]);
    await started.kill();
  });
});

const statusOf = async (
  service: TestService,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> => (await service.call('GET', path, { headers })).status;

/** The path of an image by its id alone, which an ISO that comes later has as well. */
async function longPathOf(service: TestService, short: string): Promise<string> {
  const { text } = await service.call('GET', `${API}/v2/infra-envs`);
  const all = JSON.parse(text) as readonly Record<'id' | 'download_url', string>[];
  const id = all.find(({ download_url: url }) => new URL(url).pathname === short)?.id ?? '';
  const { body } = await service.call('GET', `${API}/v2/infra-envs/${id}/downloads/image-url`);
  return new URL(String(body['long_url'])).pathname;
}
