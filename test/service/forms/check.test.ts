import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FieldProblem } from '../../../src/service/openapi.ts';
import { createLiveWorld, type LiveWorld } from '../../support/live-iso.ts';
import {
  API,
  PULL_SECRET,
  SSH_KEY,
  startService,
  type TestService,
} from '../../support/service.ts';

const FORMS = `${API}/sealift/forms`;
const NETWORK = `interfaces:
  - name: nic1
    type: ethernet
    state: up
    ipv4:
      enabled: true
      address:
        - ip: 192.0.2.10
          prefix-length: 24
`;

describe('the check of a form', () => {
  let world: LiveWorld;
  let service: TestService;
  let version: string;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const built = await world.run('build', 'live-iso', '--output', 'store/appliance.iso');
    expect(built).toMatchObject({ exitCode: 0 });
    service = await startService({ stores: [join(world.directory, 'store')] });
    const { body } = await service.call('GET', `${API}/v2/openshift-versions`);
    version = Object.keys(body)[0] ?? '';
  });
  afterAll(async () => {
    await service.close();
    await world.close();
  });

  const check = async (infraEnv: object, more: object = {}): Promise<readonly FieldProblem[]> => {
    const { body } = await service.call('POST', `${FORMS}/check`, {
      body: {
        cluster: { name: 'edge', openshift_version: version },
        infra_env: { name: 'edge', pull_secret: PULL_SECRET, ...infraEnv },
        ...more,
      },
    });
    return body['problems'] as readonly FieldProblem[];
  };

  it('finds no fault with good values, and stores nothing', async () => {
    expect(await check({ ssh_authorized_key: SSH_KEY })).toEqual([]);
    for (const kind of ['clusters', 'infra-envs']) {
      expect((await service.call('GET', `${API}/v2/${kind}`)).text).toBe('[]');
    }
  });

  it('tells all problems at once, each with its field, line and column', async () => {
    const problems = await check({
      pull_secret: '{\n  "auths": {\n  },\n}',
      ssh_authorized_key: '-----BEGIN OPENSSH PRIVATE KEY-----',
      proxy: { http_proxy: 'proxy:3128', no_proxy: '' },
      additional_ntp_sources: 'a b',
      rendezvous_ip: 'here',
      kernel_arguments: [
        { operation: 'append', value: 'quiet' },
        { operation: 'append', value: 'a b' },
      ],
      static_network_config: [
        {
          network_yaml: NETWORK.replace('192.0.2.10', '192.0.2.300'),
          mac_interface_map: [{ mac_address: '52:54', logical_nic_name: 'nic1' }],
        },
        { network_yaml: 'a: [', mac_interface_map: [] },
      ],
    });
    expect(problems.map(({ field, line, column }) => [field, line, column])).toEqual([
      ['pull_secret', 4, 1],
      ['ssh_authorized_key', undefined, undefined],
      ['proxy.http_proxy', undefined, undefined],
      ['additional_ntp_sources', undefined, undefined],
      ['rendezvous_ip', undefined, undefined],
      ['kernel_arguments[1]', undefined, undefined],
      ['static_network_config[0].mac_interface_map[0].mac_address', undefined, undefined],
      ['static_network_config[1].mac_interface_map', undefined, undefined],
      ['static_network_config[0].network_yaml', 8, 15],
      ['static_network_config[1].network_yaml', 1, 5],
    ]);
    expect(problems[1]?.message).toContain('private key');
    expect(problems[8]?.path).toBe('interfaces[0].ipv4.address[0].ip');
  });

  it('refuses a rendezvous IP on a medium that has no agents', async () => {
    const values = { ssh_authorized_key: SSH_KEY, rendezvous_ip: '192.0.2.10' };
    expect(await check(values)).toEqual([
      {
        field: 'rendezvous_ip',
        message: expect.stringContaining('has no effect on this ISO') as string,
      },
    ]);
  });

  it('names the version that the store does not have, and a name that is too long', async () => {
    expect(await check({}, { cluster: { name: 'edge', openshift_version: '4.1.0' } })).toEqual([
      { field: 'openshift_version', message: 'the store has no ISO of 4.1.0 for x86_64' },
    ]);
    const named = await check(
      {},
      { cluster: { name: 'x'.repeat(55), openshift_version: version } },
    );
    expect(named).toMatchObject([{ field: 'name' }]);
  });

  it('checks a change of an InfraEnv, which keeps the rest of its values', async () => {
    const { body: cluster } = await service.call('POST', `${API}/v2/clusters/disconnected`, {
      body: { name: 'edge', openshift_version: version },
    });
    const { body: infraEnv } = await service.call('POST', `${API}/v2/infra-envs`, {
      body: { name: 'edge', pull_secret: PULL_SECRET, cluster_id: cluster['id'] },
    });
    const change = { infra_env_id: infraEnv['id'] };
    const verdict = await service.call('POST', `${FORMS}/check`, {
      body: { ...change, infra_env: { rendezvous_ip: '192.0.2.10' } },
    });
    expect(verdict.body['problems']).toMatchObject([{ field: 'rendezvous_ip' }]);
    const fine = await service.call('POST', `${FORMS}/check`, {
      body: { ...change, infra_env: { ssh_authorized_key: SSH_KEY } },
    });
    expect(fine.body).toEqual({ problems: [], warnings: [] });
  });
});

describe('a form', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
  const ask = async (name: string, body: object): Promise<unknown> =>
    JSON.parse((await service.call('POST', `${FORMS}/${name}`, { body })).text);

  it('gets the value of a network, or the place of its fault', async () => {
    expect(await ask('networks', { networks: ['mtu: 0x10\n', 'a:\n  - [', ''] })).toEqual([
      { value: { mtu: 16 } },
      { line: 2, column: 6, message: expect.stringMatching(/^is not YAML: /) as string },
      { value: {} },
    ]);
  });

  it.each([
    ['\t', 'tabs'],
    [';', 'semicolons'],
    [',', 'commas'],
  ])('gets the hosts of a table with %j between its cells', async (separator) => {
    const table = [
      ['Name', 'MAC Address', 'IP Address', 'Subnet Mask', 'Default Gateway'],
      ['esx1', '00:50:56:00:00:01', '192.0.2.11', '255.255.255.0', '192.0.2.1'],
    ];
    const text = table.map((row) => row.join(separator)).join('\r\n');
    expect(await ask('host-table', { text })).toEqual({
      hosts: [
        {
          row: 2,
          values: {
            name: 'esx1',
            mac: '00:50:56:00:00:01',
            address: '192.0.2.11',
            prefix: '255.255.255.0',
            gateway: '192.0.2.1',
          },
        },
      ],
      columns: {
        name: 'Name',
        mac: 'MAC Address',
        address: 'IP Address',
        prefix: 'Subnet Mask',
        gateway: 'Default Gateway',
      },
      problems: [],
    });
  });

  it('gets the names of ports that a table has', async () => {
    const text = 'MAC\tInterface\tMAC 2\tPort-2\n1\teno1\t2\teno2\n';
    const { hosts } = (await ask('host-table', { text })) as { readonly hosts: unknown };
    const values = { mac: '1', port: 'eno1', mac2: '2', port2: 'eno2' };
    expect(hosts).toEqual([{ row: 2, values }]);
  });

  it.each([
    ['', { row: 1 }, 'has no header row'],
    ['mac\tgatway', { row: 1, column: 'gatway' }, 'did you mean "gateway"?'],
    ['name\tip\nx\t1', { row: 1 }, 'there is no column "mac"'],
    ['mac\tip\tIP address', { row: 1 }, 'appears twice'],
    ['mac\tip\n1\t2\n\n3', { row: 4 }, 'has 1 cells, but the header names 2'],
  ])('is told what is wrong with the table %j', async (text, place, message) => {
    expect(await ask('host-table', { text })).toMatchObject({
      problems: [{ ...place, message: expect.stringContaining(message) as string }],
    });
  });
});
