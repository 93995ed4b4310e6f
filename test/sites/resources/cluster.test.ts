import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { renderClusterManifests } from '../../../src/openshift/agent/cluster-manifests.ts';
import { checkAnySite } from '../../../src/sites/check-any.ts';
import { convertResources } from '../../../src/sites/resources/convert.ts';
import { type AssistedResources, assistedResources } from '../../support/assisted-resources.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';

type Members = Readonly<Record<string, unknown>>;

const join = (resources: AssistedResources): string =>
  Object.values(resources)
    .map((each) => stringify(each))
    .join('---\n');

function check(resources: AssistedResources, more: Readonly<Record<string, string>> = {}) {
  const texts = { 'all.yaml': join(resources), ...more };
  const files = Object.entries(texts).map(([path, text]) => ({
    path,
    bytes: Buffer.from(text),
    shownAs: path,
  }));
  const input = convertResources({ name: 'site1', files }, undefined);
  const { site, problems, warnings } = checkAnySite(input, {
    epoch: TEST_EPOCH,
    redaction: createRedaction(),
  });
  const show = ({ file, line, path, problem }: (typeof problems)[number]): string =>
    `${file}:${line} ${path}: ${problem}`;
  return { site, errors: problems.map(show), warnings: warnings.map(show) };
}

/** The resources with other members of one of them; undefined removes one. */
function change(part: string, spec: Members, metadata: Members = {}): AssistedResources {
  const all = assistedResources();
  const own = all[part] as { readonly spec: Members; readonly metadata: Members };
  const changed = {
    ...own,
    metadata: { ...own.metadata, ...metadata },
    spec: Object.fromEntries(
      Object.entries({ ...own.spec, ...spec }).filter(([, value]) => value !== undefined),
    ),
  };
  return { ...all, [part]: changed };
}

const without = (part: string): AssistedResources =>
  Object.fromEntries(Object.entries(assistedResources()).filter(([name]) => name !== part));

const OVERRIDES = 'agent-install.openshift.io/install-config-overrides';

const fencing = {
  credentials: [0, 1].map((index) => ({
    hostName: `m${index}.example.com`,
    username: 'admin',
    password: 'p',
    address: `redfish+https://192.0.2.20${index}:8000/redfish/v1/Systems/1`,
  })),
};

describe('the resources of a cluster', () => {
  it('are a site, with the hosts of NMStateConfigs and BareMetalHosts joined by their addresses', () => {
    const { site, errors, warnings } = check(assistedResources());
    expect(errors).toEqual([]);
    expect(warnings).toEqual([]);
    if (site?.kind !== 'agent') throw new Error('no site');
    expect(site.cluster).toMatchObject({
      name: 'site1',
      namespace: 'fleet',
      baseDomain: 'example.com',
      architecture: 'amd64',
      rendezvousIp: '192.0.2.10',
      replicas: { master: 3, arbiter: 0, worker: 0 },
      platform: { kind: 'baremetal', apiVIPs: ['192.0.2.5'] },
    });
    expect(site.cluster.hosts).toMatchObject(
      [0, 1, 2].map((index) => ({
        hostname: `m${index}.example.com`,
        role: 'master',
        rootDeviceHints: { deviceName: '/dev/sda' },
        interfaces: [{ name: 'eth0', macAddress: `52:54:00:00:00:0${index + 1}` }],
      })),
    );
  });

  it('take rendezvousIP, names and roles from agent-config.yaml beside them', () => {
    const agent = stringify({
      apiVersion: 'v1beta1',
      rendezvousIP: '192.0.2.11',
      hosts: [{ hostname: 'other', interfaces: [{ name: 'e', macAddress: '52:54:00:00:00:01' }] }],
    });
    const { site, errors } = check(assistedResources(), { 'agent-config.yaml': agent });
    expect(errors).toEqual([]);
    if (site?.kind !== 'agent') throw new Error('no site');
    expect(site.cluster.rendezvousIp).toBe('192.0.2.11');
    expect(site.cluster.hosts.map(({ hostname, role }) => [hostname, role])).toEqual([
      ['other', 'master'],
      ['m1.example.com', 'master'],
      ['m2.example.com', 'master'],
    ]);
  });

  it('take members of install-config from overrides, and tell their faults there', () => {
    const overrides = JSON.stringify({ networking: { serviceNetwork: ['x'] } });
    const annotations = { [OVERRIDES]: overrides };
    const { errors } = check(change('install', {}, { annotations }));
    expect(errors).toEqual([
      expect.stringMatching(/^all\.yaml:7 metadata\.annotations\..*Invalid value: "x"/),
    ]);
  });

  it('are two nodes that fence each other, with credentials in the overrides', () => {
    const all = change(
      'install',
      { provisionRequirements: { controlPlaneAgents: 2 } },
      { annotations: { [OVERRIDES]: JSON.stringify({ controlPlane: { fencing } }) } },
    );
    const two = Object.entries(all).filter(([name]) => !name.endsWith('2'));
    const { site, errors } = check(Object.fromEntries(two));
    expect(errors).toEqual([]);
    expect(site?.kind === 'agent' && site.cluster.fencing).toMatchObject(fencing.credentials);
  });

  it('give the manifests of ConfigMaps to the cluster', () => {
    const map = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'extra' },
      data: { 'a.yaml': 'apiVersion: v1\nkind: A\nmetadata: {name: a}\n' },
    };
    const resources = change('install', { manifestsConfigMapRefs: [{ name: 'extra' }] });
    const { site, errors } = check({ ...resources, map });
    expect(errors).toEqual([]);
    if (site?.kind !== 'agent') throw new Error('no site');
    expect(site.cluster.manifests.map(({ name }) => name)).toEqual(['a-0.yaml']);
  });

  it('keep members of the AgentClusterInstall that install-config does not have', () => {
    const members = {
      diskEncryption: { enableOn: 'all', mode: 'tpmv2' },
      mastersSchedulable: true,
      compute: [{ name: 'worker', hyperthreading: 'Disabled' }],
    };
    const { site, errors } = check(change('install', members));
    expect(errors).toEqual([]);
    if (site?.kind !== 'agent') throw new Error('no site');
    const [install] = renderClusterManifests(site.cluster, { imageSet: 'img', infraEnv: {} });
    expect(parse(install?.text ?? '')).toMatchObject({ spec: members });
  });

  it.each([
    [
      'with encryption by Tang, but no server',
      change('install', { diskEncryption: { enableOn: 'all', mode: 'tang' } }),
      /spec.diskEncryption: Setting Tang mode but tang_servers isn't set/,
    ],
    ['without a ClusterDeployment', without('deployment'), /spec.clusterDeploymentRef: ClusterDep/],
    ['without an InfraEnv', without('infraEnv'), /no InfraEnv .* has the clusterRef "site1"/],
    ['without an AgentClusterInstall', without('install'), /but no AgentClusterInstall/],
    ['without the pull secret', without('pull'), /spec.pullSecretRef: Secret "pull" is not among/],
    [
      'with an unknown member',
      change('install', { bogus: 1 }),
      /all\.yaml:\d+ spec\.bogus: unknown field "bogus"/,
    ],
    [
      'with a kind of another group',
      { ...assistedResources(), install: { ...assistedResources()['install'], apiVersion: 'v1' } },
      /apiVersion: a resource of the kind AgentClusterInstall has the group extensions.hive/,
    ],
    [
      'without a number of nodes',
      change('install', { provisionRequirements: {} }),
      /spec.provisionRequirements.controlPlaneAgents: Required value/,
    ],
    [
      'with an address that is not the first of its list',
      change('install', { apiVIP: '192.0.2.7' }),
      /spec.apiVIP: apiVIP must be the same as the first element of apiVIPs/,
    ],
    [
      'with virtual addresses without a balancer',
      change('install', { platformType: 'None' }),
      /spec.apiVIPs: API VIPs cannot be set with User Managed Networking/,
    ],
    [
      'with a virtual address outside of its network',
      change('install', { apiVIPs: ['198.51.100.5'] }),
      /all\.yaml:\d+ spec\.apiVIPs\[0\]: Invalid value: "198\.51\.100\.5"/,
    ],
    [
      'with networking of another platform',
      change('install', {
        apiVIPs: undefined,
        ingressVIPs: undefined,
        platformType: 'None',
        networking: {
          machineNetwork: [{ cidr: '192.0.2.0/24' }],
          userManagedNetworking: false,
        },
      }),
      /Forbidden: None platform requires user-managed networking/,
    ],
    [
      'with a platform that is not composed here',
      change('install', { platformType: 'VSphere' }),
      /spec.platformType: Unsupported value: "vsphere"/,
    ],
    [
      'with another proxy of the hosts',
      change('infraEnv', { proxy: { httpProxy: 'http://192.0.2.1:3128' } }),
      /spec.proxy: differs from that of the AgentClusterInstall/,
    ],
    [
      'with exclusive time servers',
      change('infraEnv', { ntpSources: ['192.0.2.1'] }),
      /spec.ntpSources: exclusive time servers have no place/,
    ],
    [
      'with a network that no InfraEnv selects',
      change('network2', {}, { labels: { site: 'other' } }),
      /infraEnv and site1-n2 NMState Config labels do not match. Expected: map\[site:site1\] Found: map\[site:other\]/,
    ],
    [
      'with a network without labels',
      change('network2', {}, { labels: {} }),
      /Required value: site1-n2 does not have any label set/,
    ],
    [
      'with two networks of one host',
      change('network2', { interfaces: [{ name: 'eth0', macAddress: '52:54:00:00:00:02' }] }),
      /spec.interfaces: has addresses of NMStateConfig "site1-n1", too/,
    ],
    [
      'with two hosts of one address',
      change('host2', { bootMACAddress: '52:54:00:00:00:02' }),
      /spec.bootMACAddress: is the address of BareMetalHost "m1.example.com", too/,
    ],
    [
      'with overrides that are not JSON',
      change('install', {}, { annotations: { [OVERRIDES]: '{' } }),
      /install-config-overrides: is not JSON/,
    ],
    [
      'with a role that no host has',
      change('host1', {}, { annotations: { 'bmac.agent-install.openshift.io/role': 'boss' } }),
      /metadata.annotations.bmac.agent-install.openshift.io\/role: Unsupported value: "boss"/,
    ],
  ] as const)('are refused %s, at their own place', (_, resources, expected) => {
    const { errors, site } = check(resources);
    expect(site).toBeUndefined();
    expect(errors.join('\n')).toMatch(expected);
    expect(errors.join('\n')).not.toContain('dXNlcjpwYXNz');
  });

  it('are refused beside an agent-config.yaml with another network of a host', () => {
    const hosts = [
      {
        interfaces: [{ name: 'eth0', macAddress: '52:54:00:00:00:01' }],
        networkConfig: { interfaces: [] },
      },
    ];
    const agent = stringify({ apiVersion: 'v1beta1', hosts });
    const { errors } = check(assistedResources(), { 'agent-config.yaml': agent });
    expect(errors.join('\n')).toMatch(/spec.config: is not the network of the host with this/);
  });

  it.each([
    ['holdInstallation', change('install', { holdInstallation: true })],
    ['ignitionConfigOverride', change('infraEnv', { ignitionConfigOverride: '{}' })],
    [
      'kernelArguments',
      change('infraEnv', { kernelArguments: [{ operation: 'append', value: 'a' }] }),
    ],
    ['osImageVersion', change('infraEnv', { osImageVersion: '4.20' })],
    ['manageDNS', change('deployment', { manageDNS: true })],
    ['bmc', change('host0', { bmc: { address: 'redfish+https://192.0.2.9:8000' } })],
    [
      'installer-args',
      change(
        'host0',
        {},
        { annotations: { 'bmac.agent-install.openshift.io/installer-args': '[]' } },
      ),
    ],
    ['sshAuthorizedKey', change('infraEnv', { sshAuthorizedKey: 'ssh-ed25519 AAAA other' })],
  ])('warn of %s, which has no place', (member, resources) => {
    expect(check(resources).warnings.join('\n')).toContain(member);
  });
});
