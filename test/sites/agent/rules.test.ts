import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { checkAgentSite } from '../../../src/sites/agent/check.ts';
import {
  agentConfig,
  agentHost,
  agentInstallConfig,
  agentSite,
  BAREMETAL,
} from '../../support/agent-sites.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';

type Members = Readonly<Record<string, unknown>>;

function check(install: Members, agent: Members, files: Readonly<Record<string, string>> = {}) {
  const options = { epoch: TEST_EPOCH, redaction: createRedaction() };
  const { problems, warnings, facts } = checkAgentSite(agentSite(install, agent, files), options);
  const tell = (list: typeof problems): readonly string[] =>
    list.map(({ path, problem }) => `${path}: ${problem}`);
  return {
    problems: tell(problems),
    codes: problems.map(({ code }) => code),
    warnings: tell(warnings),
    facts: facts?.facts.map(({ kind, value }) => `${kind} ${value}`),
  };
}

const hosts = (...roles: readonly (string | undefined)[]): readonly Members[] =>
  roles.map((role, index) => agentHost(index, role));

const COMPACT = agentInstallConfig({ masters: 3, platform: BAREMETAL });
const MASTERS = hosts('master', 'master', 'master');

/** Topologies with their hosts, in the words of openshift-install and assisted-service. */
const REFUSED: readonly (readonly [string, Members, Members, string])[] = [
  [
    'one node with a worker',
    agentInstallConfig({ workers: 1 }),
    agentConfig(hosts('master')),
    'compute.replicas: Forbidden: Total number of compute replicas must be 0 when controlPlane.replicas is 1 for platform none or external. Found 1',
  ],
  [
    'one node on bare metal',
    agentInstallConfig({ platform: BAREMETAL }),
    agentConfig(hosts('master')),
    'platform: Invalid value: "baremetal": Only platform none and external supports 1 ControlPlane and 0 Compute nodes',
  ],
  [
    'two masters alone',
    agentInstallConfig({ masters: 2, platform: BAREMETAL }),
    agentConfig(hosts('master', 'master')),
    'controlPlane.replicas: Invalid value: "2": The cluster must have exactly 2 dedicated control plane nodes and at least 1 arbiter node or the control plane nodes must have fencing credentials',
  ],
  [
    'six masters',
    agentInstallConfig({ masters: 6, platform: BAREMETAL }),
    agentConfig(hosts('master')),
    'controlPlane.replicas: Unsupported value: "6": supported values: "1", "3", "4", "5", "2 (with arbiter)", "2 (with fencing)"',
  ],
  [
    'two masters with two arbiters',
    agentInstallConfig({ masters: 2, arbiters: 2, platform: BAREMETAL }),
    agentConfig(hosts('master', 'master', 'arbiter')),
    'arbiter.replicas: Invalid value: "2": TNA (Two Node with Arbiter) configuration requires exactly 1 arbiter replica',
  ],
  [
    'another platform',
    agentInstallConfig({ masters: 3, platform: { vsphere: {} } }),
    agentConfig(MASTERS),
    'platform.vsphere: Unsupported value: "vsphere": supported values: "baremetal", "none", "external"',
  ],
  [
    'a virtual address outside of the machine network',
    agentInstallConfig({
      masters: 3,
      platform: { baremetal: { apiVIPs: ['198.51.100.5'], ingressVIPs: ['192.0.2.6'] } },
    }),
    agentConfig(MASTERS),
    'platform.baremetal.apiVIPs[0]: Invalid value: "198.51.100.5": api-vip <198.51.100.5> does not belong to machine-network-cidr <192.0.2.0/24>',
  ],
  [
    'the broadcast address as a virtual address',
    agentInstallConfig({
      masters: 3,
      platform: { baremetal: { apiVIPs: ['192.0.2.5'], ingressVIPs: ['192.0.2.255'] } },
    }),
    agentConfig(MASTERS),
    'platform.baremetal.ingressVIPs[0]: Invalid value: "192.0.2.255": ingress-vip <192.0.2.255> is the broadcast address of machine-network-cidr <192.0.2.0/24>',
  ],
  [
    'one virtual address for both',
    agentInstallConfig({
      masters: 3,
      platform: { baremetal: { apiVIPs: ['192.0.2.5'], ingressVIPs: ['192.0.2.5'] } },
    }),
    agentConfig(MASTERS),
    'platform.baremetal.apiVIPs: Invalid value: "192.0.2.5": VIP for API must not be one of the Ingress VIPs',
  ],
  [
    'a virtual address that a host has',
    agentInstallConfig({
      masters: 3,
      platform: { baremetal: { apiVIPs: ['192.0.2.11'], ingressVIPs: ['192.0.2.6'] } },
    }),
    agentConfig(MASTERS),
    'hosts[1].networkConfig.interfaces[0].ipv4.address[0].ip: IP address 192.0.2.11 is also a virtual address of the cluster',
  ],
  [
    'addresses of interfaces that differ in case alone',
    COMPACT,
    agentConfig([
      agentHost(0, 'master', { interfaces: [{ name: 'eth0', macAddress: 'AA:00:00:00:00:01' }] }),
      agentHost(1, 'master', { interfaces: [{ name: 'eth0', macAddress: 'aa:00:00:00:00:01' }] }),
      agentHost(2, 'master'),
    ]),
    'hosts[1].interfaces[0].macAddress: Invalid value: "aa:00:00:00:00:01": duplicate MAC address found',
  ],
  [
    'more masters than replicas',
    COMPACT,
    agentConfig(hosts('master', 'master', 'master', 'master')),
    'hosts: the number of master hosts defined (4) exceeds the configured ControlPlane replicas (3)',
  ],
  [
    'more workers than replicas',
    COMPACT,
    agentConfig(hosts('master', 'master', 'master', undefined)),
    'hosts: the number of worker hosts defined (1) exceeds the configured Compute replicas (0)',
  ],
  [
    'a worker as the rendezvous host',
    agentInstallConfig({ masters: 3, workers: 1, platform: BAREMETAL }),
    agentConfig(hosts('worker', 'master', 'master', 'master')),
    "hosts[0].role: Forbidden: Host m0.example.com has role 'worker' and has the rendezvousIP assigned to it. The rendezvousIP must be assigned to a control plane host.",
  ],
  [
    'a rendezvous IP outside of the machine network',
    COMPACT,
    agentConfig(MASTERS, { rendezvousIP: '198.51.100.1' }),
    'rendezvousIP: Invalid value: "198.51.100.1": no machine network contains it: 192.0.2.0/24',
  ],
  [
    'a rendezvous IP that no host has',
    COMPACT,
    agentConfig(MASTERS, { rendezvousIP: '192.0.2.99' }),
    'rendezvousIP: Invalid value: "192.0.2.99": no host has it, and every host has static addresses',
  ],
  [
    'no rendezvous IP, and hosts with DHCP alone',
    agentInstallConfig(),
    agentConfig([agentHost(0, 'master', { networkConfig: undefined })], {
      rendezvousIP: undefined,
    }),
    'rendezvousIP: missing rendezvousIP, and no host that can install the cluster has a static address',
  ],
  [
    'the name of another host',
    COMPACT,
    agentConfig([
      agentHost(0),
      agentHost(1, 'master', { hostname: 'm0.example.com' }),
      agentHost(2),
    ]),
    'hosts[1].hostname: Hostname m0.example.com is not unique in cluster',
  ],
  [
    'a name that every host has',
    agentInstallConfig(),
    agentConfig([agentHost(0, 'master', { hostname: 'localhost' })]),
    'hosts[0].hostname: Invalid value: "localhost": is the name of every host; give the host another name',
  ],
  [
    'a host without an interface',
    agentInstallConfig(),
    agentConfig([agentHost(0, 'master', { interfaces: [], networkConfig: undefined })]),
    'hosts[0].interfaces: Required value: at least one interface must be defined for each node',
  ],
  [
    'the address of a group of interfaces',
    agentInstallConfig(),
    agentConfig([
      agentHost(0, 'master', { interfaces: [{ name: 'eth0', macAddress: '01:00:00:00:00:01' }] }),
    ]),
    'hosts[0].interfaces[0].macAddress: Invalid value: "01:00:00:00:00:01": expected unicast mac address, found multicast',
  ],
  [
    'a disk by its id',
    agentInstallConfig(),
    agentConfig([agentHost(0, 'master', { rootDeviceHints: { deviceName: '/dev/disk/by-id/a' } })]),
    'hosts[0].rootDeviceHints.deviceName: Invalid value: "/dev/disk/by-id/a": Device Name of root device hint must be path in /dev/ or /dev/disk/by-path/',
  ],
  [
    'a cluster network without room for the nodes',
    agentInstallConfig(
      { masters: 3, platform: BAREMETAL },
      {
        networking: {
          networkType: 'OVNKubernetes',
          clusterNetwork: [{ cidr: '10.128.0.0/22', hostPrefix: 23 }],
          machineNetwork: [{ cidr: '192.0.2.0/24' }],
          serviceNetwork: ['172.30.0.0/16'],
        },
      },
    ),
    agentConfig(MASTERS),
    'networking.clusterNetwork[0].hostPrefix: Invalid Cluster Network prefix: Cluster network CIDR prefix 22 does not contain enough addresses for 3 hosts each one with 23 prefix (2 addresses)',
  ],
  [
    'two machine networks of one family',
    agentInstallConfig(
      { masters: 3, platform: BAREMETAL },
      {
        networking: {
          networkType: 'OVNKubernetes',
          clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }],
          machineNetwork: [{ cidr: '192.0.2.0/24' }, { cidr: '198.51.100.0/24' }],
          serviceNetwork: ['172.30.0.0/16'],
        },
      },
    ),
    agentConfig(MASTERS),
    'networking.machineNetwork: Single-stack cluster cannot contain multiple Machine Networks',
  ],
  [
    'a host outside of the machine network',
    agentInstallConfig(
      {},
      {
        networking: {
          networkType: 'OVNKubernetes',
          clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }],
          machineNetwork: [{ cidr: '203.0.113.0/24' }],
          serviceNetwork: ['172.30.0.0/16'],
        },
      },
    ),
    agentConfig(hosts('master'), { rendezvousIP: '203.0.113.7' }),
    'hosts[0].networkConfig: Host does not belong to machine network CIDRs. Verify that the host belongs to every CIDR listed under machine networks: no address is in 203.0.113.0/24',
  ],
];

describe('a site that agents install', () => {
  it.each(REFUSED)('is refused with %s', (...[, install, agent, expected]) => {
    expect(check(install, agent).problems).toContain(expected);
  });

  it.each([
    ['a single node', agentInstallConfig(), hosts('master')],
    ['a compact cluster', COMPACT, MASTERS],
    [
      'a cluster with workers',
      agentInstallConfig({ masters: 3, workers: 2, platform: BAREMETAL }),
      hosts('master', 'master', 'master', 'worker', undefined),
    ],
    [
      'two nodes with an arbiter',
      agentInstallConfig({ masters: 2, arbiters: 1, platform: BAREMETAL }),
      hosts('master', 'master', 'arbiter'),
    ],
  ])('is taken: %s', (_, install, list) => {
    expect(check(install, agentConfig(list))).toMatchObject({ problems: [], warnings: [] });
  });

  it('tells rules of assisted-service by their ids', () => {
    const install = agentInstallConfig({
      masters: 3,
      platform: { baremetal: { apiVIPs: ['198.51.100.5'], ingressVIPs: ['192.0.2.6'] } },
    });
    const twin = agentHost(1, 'master', { hostname: 'm0.example.com' });
    const { codes } = check(install, agentConfig([agentHost(0, 'master'), twin, agentHost(2)]));
    expect(codes).toEqual(['validation.hostname-unique', 'validation.api-vips-valid'].toSorted());
  });

  it('warns of hosts that have to come by DHCP', () => {
    expect(check(COMPACT, agentConfig(hosts('master', 'master'))).warnings).toEqual([
      'hosts: not enough master hosts defined (2) to support all the configured ControlPlane replicas (3)',
    ]);
    const workers = agentInstallConfig({ masters: 3, workers: 2, platform: BAREMETAL });
    const listed = hosts('master', 'master', 'master');
    expect(check(workers, agentConfig(listed)).warnings).toEqual([
      'hosts: no worker hosts are defined: 2 must come by DHCP',
    ]);
    expect(check(workers, agentConfig([])).warnings).toEqual([]);
  });

  it('has virtual addresses and interfaces among the facts that no other site may share', () => {
    expect(check(COMPACT, agentConfig(hosts('master'))).facts).toEqual([
      'cluster site1.example.com',
      'address 192.0.2.5',
      'address 192.0.2.6',
      'hostname m0.example.com',
      'mac 52:54:00:00:00:01',
      'mac 52:54:00:00:00:01',
      'address 192.0.2.10',
    ]);
  });

  it('has each document of openshift/ as a manifest of its own, with its text as it is', () => {
    const text =
      '# a\napiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n---\n# b\napiVersion: v1\nkind: B\nmetadata: {name: b}\n';
    const input = agentSite(agentInstallConfig(), agentConfig(hosts('master')), {
      'openshift/99-x.yaml': text,
    });
    const { site } = checkAgentSite(input, { epoch: TEST_EPOCH, redaction: createRedaction() });
    expect(
      site?.cluster.manifests.map(({ name, bytes }) => [name, Buffer.from(bytes).toString('utf8')]),
    ).toEqual([
      ['99-x-0.yaml', '# a\napiVersion: v1\nkind: A\nmetadata: {name: a}\n'],
      ['99-x-1.yaml', '# b\napiVersion: v1\nkind: B\nmetadata: {name: b}\n'],
    ]);
  });

  it('is refused with a manifest that the cluster cannot apply', () => {
    const bad = { 'openshift/a.yaml': 'kind: A\n', 'extra-manifests/b.yaml': 'x' };
    const { problems, warnings } = check(agentInstallConfig(), agentConfig(hosts('master')), bad);
    expect(problems.join()).toMatch(
      /the cluster cannot apply it: document 1 has no apiVersion and no metadata.name/,
    );
    expect(warnings.join()).toMatch(/is ignored: manifests are \*.yaml and \*.yml in openshift/);
  });
});
