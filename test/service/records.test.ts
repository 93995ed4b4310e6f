import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

it('describes itself by a valid OpenAPI document', async () => {
  expect(await new Validator().validate({ ...(await readOpenApiFile()) })).toMatchObject({
    valid: true,
  });
});

describe.each(['files', 'postgres'])('records in %s', (kind) => {
  let postgres: Postgres | undefined;
  let service: TestService;
  beforeAll(async () => {
    if (kind === 'postgres' && hasPostgres) postgres = await startPostgres();
    const database = postgres?.createDatabase();
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

  test('an InfraEnv is created, changed and removed, and never tells its pull secret', async () => {
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

  test('of changes made at the same time, each is there', async () => {
    const { body } = await createInfraEnv();
    const url = `${API}/v2/infra-envs/${String(body['id'])}`;
    const changes = [
      { ssh_authorized_key: SSH_KEY },
      { rendezvous_ip: '192.0.2.1' },
      { ntp_sources: 'ntp.example' },
      { kernel_arguments: [{ operation: 'append', value: 'quiet' }] },
    ];
    await Promise.all(changes.map((body) => service.call('PATCH', url, { body })));
    expect((await service.call('GET', url)).body).toMatchObject({
      ...Object.assign({}, ...changes.slice(0, 3)),
      kernel_arguments: '[{"operation":"append","value":"quiet"}]',
    });
  });

  test('the pull secret is nowhere in what is stored, and any text comes back as it was', async () => {
    const name = 'é "quoted" \u2028 \ud83d\ude00';
    const { body } = await createInfraEnv({ name });
    const { body: read } = await service.call('GET', `${API}/v2/infra-envs/${String(body['id'])}`);
    expect(read).toMatchObject({ name });
    const grep = ['-rlaE', 'canary|dXNlcjpjYW5h', service.data];
    expect(() => execFileSync('grep', grep)).toThrow(/status 1|Command failed/);
  });
});

describe.skipIf(!hasPostgres)('two replicas on one database', () => {
  it('serve the same records, also when PostgreSQL was killed', async () => {
    const postgres = await startPostgres();
    const database = postgres.createDatabase();
    const replicas = await Promise.all([startService({ database }), startService({ database })]);
    const [one, two] = replicas;
    const body = { name: 'edge', openshift_version: '4.20.3' };
    const created = await one.call('POST', `${API}/v2/clusters/disconnected`, { body });
    await postgres.crash();
    const path = `${API}/v2/clusters/${String(created.body['id'])}`;
    const read = await two.call('GET', path);
    expect(read.status === 200 ? read : await two.call('GET', path)).toMatchObject({ status: 200 });
    expect((await one.call('GET', '/ready')).body['reason']).toMatch(/^the store has no ISO/);
    await Promise.all(replicas.map((each) => each.close()));
    await postgres.stop();
  });
});

it('a second process does not get the same folder', async () => {
  const data = await mkdtemp(join(tmpdir(), 'sealift-held-'));
  const first = await startService({ data });
  await expect(startService({ data })).rejects.toMatchObject({ code: 'service.data-in-use' });
  await first.close();
  await (await startService({ data })).close();
  await rm(data, { recursive: true });
});
