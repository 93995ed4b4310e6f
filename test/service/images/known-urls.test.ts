import { copyFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createIssuerKeys, issueToken } from '../../../src/service/auth/tokens.ts';
import { Secret } from '../../../src/base/secret.ts';
import { createKnownUrls, type KnownImage } from '../../../src/service/images/known-urls.ts';
import { createLiveWorld, type LiveWorld } from '../../support/live-iso.ts';
import {
  API,
  PULL_SECRET,
  SSH_KEY,
  startService,
  type TestService,
} from '../../support/service.ts';
import type { IncomingMessage } from 'node:http';

const LIFETIME = 3_600_000;

describe('a URL that was answered before', () => {
  let world: LiveWorld;
  let service: TestService;
  let clock = Date.now() + 10_000;
  let token = '';
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const built = await world.run('build', 'live-iso', '--output', 'store/appliance.iso');
    expect(built).toMatchObject({ exitCode: 0 });
    const { privateKey, publicKey } = createIssuerKeys();
    const issued = Date.now();
    const claims = { user: 'alice', issued, expires: issued + LIFETIME };
    token = await issueToken(new Secret(privateKey), claims);
    service = await startService({
      stores: [join(world.directory, 'store')],
      auth: { type: 'local', keys: publicKey },
      urlLifetime: LIFETIME,
      now: () => clock,
    });
  });
  afterAll(async () => {
    await service.close();
    await world.close();
  });

  const call = async (method: string, path: string, body?: object) => {
    const answer = await service.call(method, `${API}/v2/${path}`, { token, body });
    expect(answer.status).toBeLessThan(300);
    return answer.body as Readonly<Record<string, string>>;
  };
  /** An InfraEnv, with its URLs: each has been answered twice, the second time from memory. */
  async function order() {
    const version = { name: 'edge', openshift_version: '4.21.3' };
    const cluster = (await call('POST', 'clusters/disconnected', version))['id'] ?? '';
    const { id = '' } = await call('POST', 'infra-envs', {
      name: 'edge',
      cluster_id: cluster,
      image_type: 'disconnected-iso',
      pull_secret: PULL_SECRET,
      ssh_authorized_key: SSH_KEY,
    });
    clock += 2000; // the time of the image is strong by then
    const urls = await call('GET', `infra-envs/${id}/downloads/image-url`);
    const both = [urls['url'] ?? '', urls['long_url'] ?? ''];
    for (const url of both) {
      const answers = [await range(url), await range(url)];
      expect(answers[0]).toMatchObject({ status: 206 });
      expect(answers[1]).toEqual(answers[0]);
    }
    return { id, cluster, urls: both };
  }
  /** What a client has of a range over the overlay. */
  async function range(url: string, headers: object = {}) {
    const answer = await fetch(url, { headers: { range: 'bytes=30000-99999', ...headers } });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const seen = Object.fromEntries(
      [...answer.headers].filter(([name]) => !['date', 'retry-after'].includes(name)),
    );
    return { status: answer.status, headers: seen, text: bytes.toString('latin1') };
  }
  const statuses = (urls: readonly string[]) =>
    Promise.all(urls.map(async (url) => (await range(url)).status));

  it('ends with a change, which is answered after it', async () => {
    const { id, urls } = await order();
    await call('PATCH', `infra-envs/${id}`, { ssh_authorized_key: `${SSH_KEY}-2` });
    expect(await statuses(urls)).toEqual([410, 410]);
  });

  it('ends with the InfraEnv, and gives without its cluster what the routes give', async () => {
    const { id, urls } = await order();
    await call('DELETE', `infra-envs/${id}`);
    expect(await statuses(urls)).toEqual([404, 404]);
    const other = await order();
    await call('DELETE', `clusters/${other.cluster}`);
    // The routes answer pages of other origins.
    const routed = other.urls.map(async (url) => (await range(url, { origin: 'http://a' })).status);
    expect(await statuses(other.urls)).toEqual(await Promise.all(routed));
  });

  it('ends at its time', async () => {
    const { urls } = await order();
    clock += LIFETIME + 1000;
    expect(await statuses(urls)).toEqual([410, 401]);
    clock -= LIFETIME;
  });

  it('ends within a second after its ISO was replaced', async () => {
    const { urls } = await order();
    const place = join(world.directory, 'store/appliance.iso');
    await copyFile(place, `${place}.kept`);
    const other = await world.run(
      'customize',
      place,
      '--kargs-append',
      'x=1',
      '--output',
      'other.iso',
    );
    expect(other).toMatchObject({ exitCode: 0 });
    await rename(join(world.directory, 'other.iso'), place);
    await sleep(1100);
    const found = await statuses(urls);
    await rename(`${place}.kept`, place);
    expect(found).toEqual([410, 410]);
  });

  it('counts in the metrics, and refuses what the routes refuse', async () => {
    const { urls } = await order();
    const [url = ''] = urls;
    const before = service.answered.length;
    expect((await range(url, { range: 'bytes=0-9' })).status).toBe(206);
    expect(service.answered.slice(before)).toMatchObject([
      { method: 'GET', route: '/i/:token/:revision/:file', status: 206, isCut: false },
    ]);
    expect((await fetch(url, { method: 'POST' })).status).toBeGreaterThanOrEqual(400);
  });
});

describe('the memory of URLs', () => {
  const request = (url: string, headers: object = {}): IncomingMessage =>
    ({ url, headers, rawHeaders: [] }) as unknown as IncomingMessage;
  const imageOf = (id: string, bytes = 0): KnownImage =>
    ({ records: [id], bytes, isCurrent: () => true, file: { id } }) as unknown as KnownImage;
  const image = imageOf('a');

  it('does not remember what was looked up before a change', () => {
    const known = createKnownUrls(() => 0);
    const [early, late] = [request('/1'), request('/2')];
    known.begin(early);
    void known.forget('a');
    known.begin(late);
    known.remember(early, image);
    known.remember(late, image);
    expect([known.find(early), known.find(late)]).toEqual([undefined, image]);
    void known.forget('b');
    expect(known.find(late)).toBe(image);
    void known.forget('a');
    expect(known.find(late)).toBe(undefined);
  });

  it.each([0, 100_000])(
    'of an InfraEnv with hundreds of URLs of %s bytes displaces its own',
    (bytes) => {
      const known = createKnownUrls(() => 0);
      const remember = (url: string, of: KnownImage): void => {
        const asked = request(url);
        known.begin(asked);
        known.remember(asked, of);
      };
      remember('/other', imageOf('other', bytes));
      for (let index = 0; index < 300; index += 1)
        remember(`/1?${index}`, imageOf('greedy', bytes));
      expect(known.find(request('/other'))).toBeDefined();
      expect(known.find(request('/1?0'))).toBe(undefined);
      expect(known.find(request('/1?299'))).toBeDefined();
    },
  );

  it.each(['image-token', 'origin'])(
    'leaves a request with %s in its head to the routes',
    (name) => {
      const known = createKnownUrls(() => 0);
      const plain = request('/1');
      known.begin(plain);
      known.remember(plain, image);
      expect(known.find(request('/1'))).toBe(image);
      expect(known.find(request('/1', { [name]: 'x' }))).toBe(undefined);
    },
  );
});
