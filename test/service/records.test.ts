import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withoutUndefined } from '../../src/base/lists.ts';
import { Secret } from '../../src/base/secret.ts';
import { hasPostgres, startPostgres, type Postgres } from '../support/postgres.ts';
import {
  API,
  PULL_SECRET,
  readOpenApiFile,
  SSH_KEY,
  startService,
  type TestService,
} from '../support/service.ts';
import { execFileSync } from 'node:child_process';

it('the service describes itself with a valid OpenAPI document', async () => {
  expect(await new Validator().validate({ ...(await readOpenApiFile()) })).toMatchObject({
    valid: true,
  });
});

describe.each(['files', 'postgres'])('records in %s', (kind) => {
  let postgres: Postgres | undefined;
  let service: TestService;
  let database: string | undefined;
  beforeAll(async () => {
    if (kind === 'postgres' && hasPostgres) postgres = await startPostgres();
    database = postgres?.createDatabase();
    service = await startService(database === undefined ? {} : { database });
  });
  afterAll(async () => {
    await service.close();
    await postgres?.stop();
  });
  const test = it.skipIf(kind === 'postgres' && !hasPostgres);

  const createCluster = async (): Promise<string> => {
    const body = { name: 'edge', openshift_version: '4.20.3' };
    const { body: cluster } = await service.call('POST', `${API}/v2/clusters/disconnected`, {
      body,
    });
    return String(cluster['id']);
  };
  const createInfraEnv = async (more: object = {}) => {
    const body = { name: 'edge', pull_secret: PULL_SECRET, ...more };
    return service.call('POST', `${API}/v2/infra-envs`, { body });
  };

  test('a cluster is created, found, listed and removed', async () => {
    const id = await createCluster();
    const { status, body } = await service.call('GET', `${API}/v2/clusters/${id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      kind: 'DisconnectedCluster',
      status: 'unmonitored',
      status_info: 'Cluster created for offline installation',
      href: `/api/assisted-install/v2/clusters/${id}`,
      openshift_version: '4.20.3',
    });
    const list = await service.call('GET', `${API}/v2/clusters`);
    expect(list.text).toContain(id);
    expect((await service.call('DELETE', `${API}/v2/clusters/${id}`)).status).toBe(204);
    expect((await service.call('GET', `${API}/v2/clusters/${id}`)).status).toBe(404);
    expect((await service.call('DELETE', `${API}/v2/clusters/${id}`)).status).toBe(404);
  });

  test('an InfraEnv is created, changed and removed, and never shows its pull secret', async () => {
    const cluster_id = await createCluster();
    const created = await createInfraEnv({
      cluster_id,
      cpu_architecture: 'arm64',
      ssh_authorized_key: SSH_KEY,
      rendezvous_ip: '192.0.2.7',
      image_type: 'disconnected-iso',
    });
    expect(created.status).toBe(201);
    const { id } = created.body;
    const url = `${API}/v2/infra-envs/${String(id)}`;
    expect(created.body).toMatchObject({
      kind: 'InfraEnv',
      pull_secret_set: true,
      cluster_id,
      cpu_architecture: 'aarch64',
      openshift_version: '4.20.3',
    });
    const first = await service.call('GET', `${url}/downloads/image-url`);
    const changed = await service.call('PATCH', url, { body: { rendezvous_ip: '' } });
    expect(changed.body).not.toHaveProperty('rendezvous_ip');
    expect(changed.body).toMatchObject({ ssh_authorized_key: SSH_KEY });
    const second = await service.call('GET', `${url}/downloads/image-url`);
    expect(second.body['url']).not.toBe(first.body['url']);
    const query = `${API}/v2/infra-envs?cluster_id=`;
    expect((await service.call('GET', query + cluster_id)).text).toContain(String(id));
    expect((await service.call('GET', `${query}${await createCluster()}`)).text).toBe('[]');
    for (const { text } of [created, changed, first, second]) {
      expect(text).not.toMatch(/canary|dXNlcjpj|sealed/);
    }
    expect((await service.call('DELETE', url)).status).toBe(204);
    expect((await service.call('GET', url)).status).toBe(404);
  });

  test('changes made at the same time all take effect', async () => {
    const { body } = await createInfraEnv();
    const url = `${API}/v2/infra-envs/${String(body['id'])}`;
    const changes = [
      { ssh_authorized_key: SSH_KEY },
      { rendezvous_ip: '192.0.2.1' },
      { ntp_sources: 'ntp.example' },
      { kernel_arguments: [{ operation: 'append', value: 'quiet' }] },
    ];
    const answers = await Promise.all(changes.map((body) => service.call('PATCH', url, { body })));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect((await service.call('GET', url)).body).toMatchObject({
      ...Object.assign({}, ...changes.slice(0, 3)),
      kernel_arguments: '[{"operation":"append","value":"quiet"}]',
    });
  });

  test('the stored bytes contain no secret, and all values are read back unchanged', async () => {
    const name = 'é "quoted" \u2028 \ud83d\ude00';
    const given = {
      proxy: { http_proxy: 'http://user:canary-proxy@proxy.example:3128' },
      ignition_config_override: '{"ignition":{"version":"3.2.0"},"canary":"override"}',
      ssh_authorized_key: `${SSH_KEY}-canary`,
    };
    const yaml = 'interfaces:\n- name: eth0\n  description: canary\n';
    const { body, text } = await createInfraEnv({
      name,
      ...given,
      kernel_arguments: [{ operation: 'append', value: 'canary=1' }],
      static_network_config: [
        {
          network_yaml: yaml,
          mac_interface_map: [{ mac_address: '52:54:00:00:00:01', logical_nic_name: 'eth0' }],
        },
      ],
    });
    expect(text).toContain('canary-proxy');
    const { body: read } = await service.call('GET', `${API}/v2/infra-envs/${String(body['id'])}`);
    expect(read).toMatchObject({ name, ...given });
    expect(read['static_network_config']).toContain('canary');
    const stored = database
      ? execFileSync('pg_dump', [database], { encoding: 'utf8' })
      : execFileSync('cat', listFiles(service.data), { encoding: 'utf8' });
    expect(stored).toContain(String(body['id']));
    expect(stored).not.toMatch(/canary|dXNlcjpjYW5h|proxy\.example|interfaces/);
  });

  test('another key is refused at the start, and the right one is accepted again', async () => {
    const data = await mkdtemp(join(tmpdir(), 'sealift-key-'));
    const settings = withoutUndefined({ data, database });
    await (await startService(settings)).close();
    const other = { ...settings, key: new Secret('f'.repeat(64)) };
    await expect(startService(other)).rejects.toMatchObject({ code: 'service.key-wrong' });
    const again = await startService(settings);
    expect((await again.call('GET', `${API}/v2/infra-envs`)).status).toBe(200);
    await again.close();
    await rm(data, { recursive: true });
  });
});

describe('a folder of records of the first format that another program wrote to', () => {
  const ID = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';
  const record = { id: ID, tenant: 'anonymous', revision: 1, body: {} };
  it.each<[string, (path: string) => unknown]>([
    ['a pipe', (path) => execFileSync('mkfifo', [path])],
    ['a link', (path) => symlink('/etc/hostname', path)],
    ['a folder', (path) => mkdir(path)],
    ['no JSON', (path) => writeFile(path, '{')],
    [
      'a record without a body',
      (path) => writeFile(path, JSON.stringify({ ...record, body: undefined })),
    ],
    [
      'a record of another id',
      (path) => writeFile(path, JSON.stringify({ ...record, id: ID.replace('6', '7') })),
    ],
    ['a record without its members', (path) => writeFile(path, JSON.stringify(record))],
  ])('is served without %s, which a warning names', async (_, write) => {
    const data = await mkdtemp(join(tmpdir(), 'sealift-tampered-'));
    const folder = join(data, 'records', 'infra-envs');
    await mkdir(folder, { recursive: true });
    await write(join(folder, `${ID}.json`));
    const service = await startService({ data });
    expect(service.warnings.join()).toContain(ID);
    expect((await service.call('GET', `${API}/v2/infra-envs`)).text).toBe('[]');
    expect((await service.call('GET', `${API}/v2/infra-envs/${ID}`)).status).toBe(404);
    await service.close();
    await rm(data, { recursive: true });
  });
});

const listFiles = (folder: string): string[] =>
  execFileSync('find', [folder, '-type', 'f'], { encoding: 'utf8' }).trim().split('\n');

describe.skipIf(!hasPostgres)('two replicas on one database', () => {
  it('serve the same records, even after PostgreSQL was killed', async () => {
    const postgres = await startPostgres();
    const database = postgres.createDatabase();
    const replicas = await Promise.all([startService({ database }), startService({ database })]);
    const [one, two] = replicas;
    const body = { name: 'edge', openshift_version: '4.20.3' };
    const created = await one.call('POST', `${API}/v2/clusters/disconnected`, { body });
    const path = `${API}/v2/clusters/${String(created.body['id'])}`;
    await postgres.crash(async () => {
      for (const [method, target] of [
        ['GET', path],
        ['DELETE', path],
        ['POST', `${API}/v2/clusters/disconnected`],
      ] as const) {
        const away = await one.call(method, target, method === 'POST' ? { body } : {});
        expect(away).toMatchObject({
          status: 503,
          body: { reason: 'the database cannot be read now' },
        });
        expect(away.headers.get('retry-after')).toBe('5');
      }
    });
    const read = await two.call('GET', path);
    expect(read.status === 200 ? read : await two.call('GET', path)).toMatchObject({ status: 200 });
    expect((await one.call('GET', '/ready')).body['reason']).toMatch(/^the store has no ISO/);
    await Promise.all(replicas.map((each) => each.close()));
    await postgres.stop();
  });
});

it('a second process cannot use the same folder', async () => {
  const data = await mkdtemp(join(tmpdir(), 'sealift-held-'));
  const first = await startService({ data });
  await expect(startService({ data })).rejects.toMatchObject({ code: 'service.data-in-use' });
  await first.close();
  await (await startService({ data })).close();
  await rm(data, { recursive: true });
});
