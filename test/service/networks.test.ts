import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { parse } from '../../src/shape/parse-text.ts';
import {
  API,
  type Answer,
  PULL_SECRET,
  startService,
  type TestService,
} from '../support/service.ts';

const redaction = createRedaction();

const MAP = [{ mac_address: '52:54:00:00:00:01', logical_nic_name: 'eth0' }];
const eth = (index: number, more = ''): string =>
  `- name: eth${index}\n  type: ethernet\n  ipv4: {enabled: true, dhcp: true}\n${more}`;
const network = (more = ''): string => `interfaces:\n${eth(0)}${more}`;

/** The reason of a refusal without assisted-service's words before and after it. */
const reasonOf = ({ body }: Answer): string =>
  String(body['reason'])
    .replace(/^\d errors? occurred:\n\t\* (?:failed to validate network yaml for host \d, )?/, '')
    .trimEnd();

/** Text, what its reason says. */
const REFUSED: Readonly<Record<string, readonly [string, RegExp]>> = {
  'a password on a line that is not YAML': [
    '802.1x: password: hunter2secret\n',
    /\[0\]\.network_yaml is not YAML: line 1: the value contains a second colon; put the value in quotes$/,
  ],
  'a password behind a bracket': [
    'interfaces: []\npassword: ["hunter2secret" hunter2secret]\n',
    /is not YAML: line 2: a closing quote, bracket, comma or colon is missing$/,
  ],
  'an alias of a secret name': ['interfaces: *hunter2secret\n', /aliases|is not YAML/],
  'a value nested 400 deep': [
    network(`x: ${'['.repeat(400)}${']'.repeat(400)}\n`),
    /is not YAML: line 5: this is nested too deep$/,
  ],
  'a value nested 100 deep': [
    network(`x: ${'['.repeat(100)}${']'.repeat(100)}\n`),
    /x: unknown field "x"$/,
  ],
  'an alias within itself': [
    'interfaces: []\nx: &a [*a]\n',
    /is not YAML: line 2: a value is an alias to a node that contains it$/,
  ],
  'aliases that stand for a lot': [
    `a: &a [${'1,'.repeat(90)}]\nb: &b [${'*a,'.repeat(90)}]\n`,
    /is too large: line 1: the document expands to more than 5000 values/,
  ],
  'two thousand interfaces': [
    `interfaces:\n${Array.from({ length: 2000 }, (_, i) => `- {name: e${i}, type: x}\n`).join('')}`,
    /is not YAML: line \d+: there are too many values$/,
  ],
  'an interface of a type that needs nmstate': [
    'interfaces:\n- name: v0\n  type: vxlan\n',
    /cannot be used: line 3: interface "v0": type: is "vxlan", which needs nmstate; install nmstate, whose nmstatectl/,
  ],
  'an interface without a name': ['interfaces:\n- type: ethernet\n', /missing field 'name'/],
  'no interface': ['{}\n', /empty NetworkManager config/],
  'a member that needs nmstate': [
    network('  ethtool: {ring: {rx: 256}}\n'),
    /cannot be used: line 5: interface "eth0": ethtool: needs nmstate; install nmstate, whose/,
  ],
  'an address that is none': [
    network('  ipv6: {enabled: true, address: [{ip: foo, prefix-length: 64}]}\n'),
    /interface "eth0": ipv6.address\[0\].ip: "foo" is not an IP address$/,
  ],
  'name servers that are numbers': [
    network('dns-resolver: {config: {server: [8]}}\n'),
    /dns-resolver.config.server\[0\]: 8 is not the address of a name server$/,
  ],
  'a route to a number': [
    network('routes: {config: [{destination: 8, next-hop-interface: eth0}]}\n'),
    /routes.config\[0\].destination: 8 is not an IP network/,
  ],
};

describe('networks of hosts', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
  const create = (networks: readonly object[]) =>
    service.call('POST', `${API}/v2/infra-envs`, {
      body: { name: 'edge', pull_secret: PULL_SECRET, static_network_config: networks },
    });

  it.each(Object.entries(REFUSED))(
    'with %s are refused with field and reason, without quoting the text',
    async (_, [network_yaml, reason]) => {
      const created = await create([{ network_yaml, mac_interface_map: MAP }]);
      expect(created.status).toBe(400);
      expect(reasonOf(created)).toMatch(/^static_network_config\[0\]\.network_yaml /);
      expect(reasonOf(created)).toMatch(reason);
      expect(created.text).not.toContain('hunter2');
      expect(service.answered.filter(({ error }) => error !== undefined)).toEqual([]);
    },
  );

  it('are refused in a change as at creation, and the earlier networks stay', async () => {
    const good = { network_yaml: network(), mac_interface_map: MAP };
    const { body } = await create([good]);
    const path = `${API}/v2/infra-envs/${String(body['id'])}`;
    const other = [{ ...MAP[0], mac_address: '52:54:00:00:00:aa' }];
    const bad = { network_yaml: '- [', mac_interface_map: other };
    const changed = await service.call('PATCH', path, {
      body: { static_network_config: [good, bad] },
    });
    expect(reasonOf(changed)).toMatch(/^static_network_config\[1\]\.network_yaml is not YAML/);
    const read = await service.call('GET', path);
    expect(read.body['static_network_config']).toBe(body['static_network_config']);
  });

  it.each([
    ['mac_address', { logical_nic_name: 'eth0' }],
    ['logical_nic_name', { mac_address: '52:54:00:00:00:01' }],
  ])('are refused if an entry of the map of a later host has no %s', async (member, entry) => {
    const good = {
      network_yaml: network(),
      mac_interface_map: [{ ...MAP[0], mac_address: '52:54:00:00:00:02' }],
    };
    const refused = await create([good, { network_yaml: network(), mac_interface_map: [entry] }]);
    expect([refused.status, reasonOf(refused)]).toEqual([
      400,
      expect.stringContaining(
        `static_network_config.1.mac_interface_map.0.${member} in body is required`,
      ),
    ]);
  });

  it('are refused if the text is empty, or the map names another interface', async () => {
    const empty = await create([{ network_yaml: '', mac_interface_map: MAP }]);
    expect([empty.status, reasonOf(empty)]).toEqual([
      400,
      'static_network_config[0].network_yaml is empty',
    ]);
    const mac_interface_map = [{ ...MAP[0], logical_nic_name: 'eth7' }];
    const other = await create([{ network_yaml: network(), mac_interface_map }]);
    expect(reasonOf(other)).toMatch(
      /interface "eth0": name: the MAC map has no entry for this interface; add its MAC address/,
    );
  });

  it('are accepted with warnings in the head of the answer, at creation and in a change', async () => {
    const more = '  ipv6: {enabled: true, address: [{ip: "2001:db8::1", prefix-length: 64}]}\n';
    const yaml = `interfaces:\n- name: eth0\n${more}`;
    const created = await create([{ network_yaml: yaml, mac_interface_map: MAP }]);
    const field = 'static_network_config[0].network_yaml';
    expect([created.status, created.headers.get('warning')]).toEqual([
      201,
      `299 - "${field}: routes.config: there is no default route for IPv6", ` +
        `299 - "${field}: dns-resolver.config.server: no name server is configured"`,
    ]);
    const network_yaml = `${yaml}- {name: "eth0.7", type: vlan, vlan: {base-iface: eth9, id: 7}}\n`;
    const changed = await service.call(
      'PATCH',
      `${API}/v2/infra-envs/${String(created.body['id'])}`,
      {
        body: { static_network_config: [{ network_yaml, mac_interface_map: MAP }] },
      },
    );
    expect(changed.headers.get('warning')).toContain(String.raw`needs \"eth9\", which is not`);
  });

  it('choose the rendezvous host that the answer names, if no address of it is given', async () => {
    const more = '  ipv6: {enabled: true, address: [{ip: "2001:db8::10", prefix-length: 64}]}\n';
    const hosts = [{ network_yaml: `interfaces:\n${eth(0, more)}`, mac_interface_map: MAP }];
    expect((await create(hosts)).body).toMatchObject({ rendezvous_ip: '2001:db8::10' });
    const none = await create([{ network_yaml: network(), mac_interface_map: MAP }]);
    expect(none.body['rendezvous_ip']).toBeUndefined();
    expect(none.headers.get('warning')).toMatch(/^299 - "no host has a static address, /);
    expect((await create(hosts)).headers.get('warning')).toBeNull();
    expect((await create([])).headers.get('warning')).toBeNull();
  });

  it('are refused if two hosts have the same address', async () => {
    const host = (mac_address: string): object => {
      return { network_yaml: network(), mac_interface_map: [{ ...MAP[0], mac_address }] };
    };
    const refused = await create([host('52:54:00:00:00:AB'), host('52:54:00:00:00:ab')]);
    expect([refused.status, reasonOf(refused)]).toEqual([
      400,
      'MAC 52:54:00:00:00:ab belongs to two hosts',
    ]);
  });

  it('are refused if two hosts have the same address on the way to their gateway, else warned of', async () => {
    const host = (at: number, gateway: string): object => ({
      network_yaml:
        'interfaces:\n- name: eth0\n  type: ethernet\n  ipv4:\n    enabled: true\n' +
        '    address: [{ip: 192.0.2.5, prefix-length: 24}]\n' +
        `routes: {config: [{destination: 0.0.0.0/0, next-hop-address: ${gateway}, next-hop-interface: eth0}]}\n`,
      mac_interface_map: [{ ...MAP[0], mac_address: `52:54:00:00:00:0${at}` }],
    });
    const refused = await create([host(1, '192.0.2.1'), host(2, '192.0.2.1')]);
    expect([refused.status, reasonOf(refused)]).toEqual([
      400,
      'static_network_config[1].network_yaml cannot be used: line 6: interface "eth0": ' +
        'ipv4.address[0].ip: 192.0.2.5 is also the address of "eth0" of another host ' +
        '(static_network_config[0].network_yaml: line 6)',
    ]);
    const apart = await create([host(1, '198.51.100.1'), host(2, '198.51.100.1')]);
    expect([apart.status, apart.headers.get('warning')]).toEqual([
      201,
      expect.stringContaining('192.0.2.5 is also the address of'),
    ]);
  });

  it.each([['52:54:00:00:00:AB'], ['52-54-00-00-00-ab'], ['5254.0000.00ab'], ['5254000000AB']])(
    'have one form of the MAC address %s',
    async (mac_address) => {
      const created = await create([
        { network_yaml: network(), mac_interface_map: [{ ...MAP[0], mac_address }] },
      ]);
      expect(created.status).toBe(201);
      const networks = JSON.parse(String(created.body['static_network_config'])) as object[];
      expect(networks).toMatchObject([
        { mac_interface_map: [{ mac_address: '52:54:00:00:00:ab' }] },
      ]);
    },
  );

  it.each([['52:54:00:00:00'], ['52:54-00:00:00:ab'], ['52:54:00:00:00:ag']])(
    'are refused with %s in place of a MAC address',
    async (mac_address) => {
      const refused = await create([
        { network_yaml: network(), mac_interface_map: [{ ...MAP[0], mac_address }] },
      ]);
      expect([refused.status, reasonOf(refused)]).toEqual([
        400,
        "static_network_config.0.mac_interface_map.0.mac_address in body should match '^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$'",
      ]);
    },
  );

  it('are refused if all hosts together have too many values, and accepted for 500 plain hosts', async () => {
    const hosts = (count: number, yaml: string): object[] =>
      Array.from({ length: count }, (_, i) => {
        const hex = i.toString(16).padStart(4, '0');
        const mac_address = `52:54:00:00:${hex.slice(0, 2)}:${hex.slice(2)}`;
        return { network_yaml: yaml, mac_interface_map: [{ ...MAP[0], mac_address }] };
      });
    const others = Array.from({ length: 399 }, (_, i) => eth(i + 1).replace('eth', 'enp'));
    const many = `interfaces:\n${eth(0)}${others.join('')}`;
    const refused = await create(hosts(12, many));
    expect([refused.status, reasonOf(refused)]).toEqual([
      400,
      'static_network_config has more than 25000 values',
    ]);
    const { status, body } = await create(hosts(500, network()));
    expect(status).toBe(201);
    const path = `${API}/v2/infra-envs/${String(body['id'])}/downloads/files?file_name=static-network-config`;
    const [one, two] = [await service.call('GET', path), await service.call('GET', path)];
    expect(one.text).toContain('host499/eth0.nmconnection');
    expect(two.headers.get('etag')).toBe(one.headers.get('etag'));
  });
});

describe('a network that only nmstate translates', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-nmstatectl-'));
    const profile = '[connection]\\nid=br0-br\\n\\n[ovs-bridge]\\n';
    const script = [
      '#!/bin/sh',
      '[ "$1" = gc ] || exit 0',
      'grep -q ovs-bridge "$2" || { echo "Error: no such type" >&2; exit 1; }',
      `printf 'NetworkManager:\\n- - br0-br.nmconnection\\n  - "%s"\\n' '${profile}'`,
      '',
    ];
    await writeFile(join(directory, 'nmstatectl'), script.join('\n'), { mode: 0o755 });
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('has the profiles of an installed nmstatectl, which judges every network', async () => {
    const { signal } = new AbortController();
    const env = { PATH: `${directory}:/usr/bin:/bin` };
    const service = await startService({
      host: { env, redaction, cwd: directory, signal, emit: () => undefined },
    });
    try {
      const create = (network_yaml: string) =>
        service.call('POST', `${API}/v2/infra-envs`, {
          body: {
            name: 'edge',
            pull_secret: PULL_SECRET,
            static_network_config: [{ network_yaml, mac_interface_map: MAP }],
          },
        });
      const { status, body } = await create('interfaces: [{name: br0, type: ovs-bridge}]');
      expect(status).toBe(201);
      const path = `${API}/v2/infra-envs/${String(body['id'])}/downloads/files?file_name=static-network-config`;
      expect((await service.call('GET', path)).text).toContain('id=br0-br\n');
      const refused = await create(network());
      expect(reasonOf(refused)).toMatch(/error: no such type$/);
    } finally {
      await service.close();
    }
  });
});

it('an error of YAML quotes no line of the text', () => {
  expect(() => parse('802.1x: password: hunter2secret\n')).toThrow(/^(?!.*hunter2)/s);
});
