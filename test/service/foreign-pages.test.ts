import { once } from 'node:events';
import { request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/service/page.ts';
import {
  API,
  createJudge,
  PULL_SECRET,
  startService,
  type TestService,
} from '../support/service.ts';

const CLUSTERS = `${API}/v2/clusters`;
const INFRA_ENVS = `${API}/v2/infra-envs`;
const JSON_TYPE = { 'Content-Type': 'application/json' };
const NETWORK =
  'interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: true\n';
const CLUSTER = JSON.stringify({ name: 'edge', openshift_version: '4.21.3' });

let everybody: TestService;
let local: TestService;
beforeAll(async () => {
  const publicUrl = 'https://iso.example.com/below';
  everybody = await startService({ publicUrl });
  local = await startService({ publicUrl, isLocal: true });
});
afterAll(() => Promise.all([everybody.close(), local.close()]));

/** As a browser asks: with any host and origin. The status, in the shape that the document has for it. */
async function ask(
  { url }: TestService,
  [method, path]: readonly [string, string],
  headers: OutgoingHttpHeaders,
): Promise<number> {
  const asked = request(url + path, { method, agent: false, headers });
  asked.end(method === 'POST' ? CLUSTER : '');
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  const { statusCode: status = 0 } = answer;
  const [type = ''] = (answer.headers['content-type'] ?? '').split(';');
  const body = await text(answer);
  if (path !== '/') (await createJudge(url))(method, path, { status, type, text: body });
  return status;
}

describe('a change that a page of another site makes a browser request', () => {
  it.each([
    [400, { 'Content-Type': 'text/plain' }],
    [400, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }],
    [400, { 'Content-Type': 'text/plain; application/json' }],
    [400, {}],
    [201, { 'Content-Type': 'Application/JSON ; charset=utf-8' }],
    [403, { ...JSON_TYPE, 'Sec-Fetch-Site': 'cross-site' }],
    [403, { ...JSON_TYPE, 'Sec-Fetch-Site': 'same-site', 'Origin': 'http://localhost:1' }],
    [403, { ...JSON_TYPE, Origin: 'http://evil.example' }],
    [403, { ...JSON_TYPE, Origin: 'null' }],
    [201, { ...JSON_TYPE, Origin: 'https://iso.example.com' }],
    [201, { ...JSON_TYPE, Host: 'iso.internal:80', Origin: 'http://iso.internal' }],
    // A proxy asks with another host.
    [201, { ...JSON_TYPE, 'Sec-Fetch-Site': 'same-origin', 'Origin': 'https://other.example' }],
    [201, { ...JSON_TYPE, 'Sec-Fetch-Site': 'none' }],
  ])('is answered %i with %j', async (status, headers) => {
    expect(await ask(everybody, ['POST', `${CLUSTERS}/disconnected`], headers)).toBe(status);
  });

  it('is refused for existing records too, while reading is allowed', async () => {
    const cross = { 'Sec-Fetch-Site': 'cross-site', 'Origin': 'http://evil.example' };
    const one = `${CLUSTERS}/6ba7b811-9dad-11d1-80b4-00c04fd430c8`;
    expect(await ask(everybody, ['DELETE', one], cross)).toBe(403);
    expect(await ask(everybody, ['GET', one], cross)).toBe(404);
  });
});

describe('a service that only its own machine can reach', () => {
  it.each([
    'evil.example',
    'evil.example:8090',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
  ])('refuses a browser that was led to it by the name %s', async (host) => {
    for (const path of ['/', '/live', CLUSTERS]) {
      expect(await ask(local, ['GET', path], { Host: host })).toBe(421);
    }
    const headers = { ...JSON_TYPE, Host: host, Origin: `http://${host}` };
    expect(await ask(local, ['POST', `${CLUSTERS}/disconnected`], headers)).toBe(421);
    expect(await ask(everybody, ['GET', CLUSTERS], { Host: host })).toBe(200);
  });

  it.each(['localhost', 'LOCALHOST:8090', '127.0.0.1:1', '[::1]:8090', 'iso.example.com'])(
    'answers %s',
    async (host) => {
      expect(await ask(local, ['GET', CLUSTERS], { Host: host })).toBe(200);
    },
  );
});

describe('a change of an InfraEnv', () => {
  const settings = {
    openshift_version: '4.21.3',
    pull_secret: PULL_SECRET,
    proxy: { http_proxy: 'http://proxy.example:3128' },
    static_network_config: [
      {
        network_yaml: NETWORK,
        mac_interface_map: [{ mac_address: '02:00:00:00:00:01', logical_nic_name: 'eth0' }],
      },
    ],
  };
  const good = { ...settings, name: 'edge', image_type: 'disconnected-iso' };
  const create = async (): Promise<{ one: string; body: Record<string, unknown> }> => {
    const { body } = await everybody.call('POST', INFRA_ENVS, { body: good });
    return { one: `${INFRA_ENVS}/${String(body['id'])}`, body };
  };

  it('keeps the URL of the image valid if it has no effect', async () => {
    const { one, body: before } = await create();
    for (const body of [{}, settings, { ssh_authorized_key: null, ntp_sources: '' }]) {
      const { status, body: after } = await everybody.call('PATCH', one, { body });
      expect([status, after]).toEqual([201, before]);
    }
    for (const change of [{ pull_secret: '{"auths":{}}' }, { proxy: {} }]) {
      const { body: earlier } = await everybody.call('GET', one);
      const { body } = await everybody.call('PATCH', one, { body: change });
      expect(body['download_url']).not.toBe(earlier['download_url']);
    }
  });

  it('is refused if it makes the InfraEnv too large, in one step or in two', async () => {
    const { one } = await create();
    const networkOf = (hosts: number): object => ({
      static_network_config: Array.from({ length: hosts }, (_, host) => ({
        mac_interface_map: [{ mac_address: `02:00:00:00:00:1${host}`, logical_nic_name: 'eth0' }],
        network_yaml: `${NETWORK}#`.padEnd(60_000, 'x'),
      })),
    });
    const statusOf = async (method: string, path: string, body: object): Promise<number> =>
      (await everybody.call(method, path, { body })).status;
    expect(await statusOf('POST', INFRA_ENVS, { ...good, ...networkOf(9) })).toBe(413);
    expect(await statusOf('PATCH', one, networkOf(5))).toBe(201);
    const override = JSON.stringify({ ignition: { version: '3.2.0' }, x: 'x'.repeat(240 << 10) });
    expect(await statusOf('PATCH', one, { ignition_config_override: override })).toBe(413);
  });

  it.each([
    [{ proxy: { http_proxy: 'http://proxy.example/\0' } }],
    [{ proxy: { no_proxy: 'a\0b' } }],
    [{ pull_secret: '{"auths":{"a":{"auth":7654321}}}' }],
  ])('to %j is refused without an echo of the value', async (body) => {
    const { one } = await create();
    const answer = await everybody.call('PATCH', one, { body });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain('7654321');
  });
});

it('downloads that end early are counted by their route', async () => {
  const metrics = createMetrics({ dropped: () => 0 });
  const download = { method: 'GET', route: '/byid', status: 200, milliseconds: 1 };
  metrics.count({ ...download, isCut: true });
  metrics.count({ ...download, isCut: false });
  expect(await metrics.format()).toContain('sealift_downloads_cut_total{route="/byid"} 1\n');
});

describe('a page of a configured origin', () => {
  const origin = 'https://console.example.com';
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ corsOrigins: [origin] });
  });
  afterAll(() => service.close());
  const clusters = `${API}/v2/clusters`;
  const body = { name: 'edge', openshift_version: '4.21' };
  const ask = (from: string) =>
    service.call('POST', `${clusters}/disconnected`, {
      body,
      headers: { 'Origin': from, 'Sec-Fetch-Site': 'cross-site' },
    });

  it('may ask before and make changes, and reads the answers', async () => {
    const before = await fetch(service.url + clusters, {
      method: 'OPTIONS',
      headers: { 'Origin': origin, 'Access-Control-Request-Method': 'POST' },
    });
    expect(before.status).toBe(204);
    expect(before.headers.get('access-control-allow-origin')).toBe(origin);
    expect(before.headers.get('access-control-allow-headers')).toBe('Authorization,Content-Type');
    const { status, headers } = await ask(origin);
    expect([status, headers.get('access-control-allow-origin')]).toEqual([201, origin]);
    expect(headers.get('vary')).toContain('Origin');
  });

  it('reads refusals as well', async () => {
    const { status, headers } = await service.call('GET', `${clusters}/x`, {
      headers: { Origin: origin },
    });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([400, origin]);
  });

  it('is the only one: others are refused, and are allowed nothing', async () => {
    for (const other of ['https://console.example.com.evil.example', 'null', `${origin}:8443`]) {
      const { status, headers } = await ask(other);
      expect([status, headers.get('access-control-allow-origin')]).toEqual([403, null]);
    }
  });
});
