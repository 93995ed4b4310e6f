import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  agentConfig,
  agentHost,
  agentInstallConfig,
  BAREMETAL,
} from '../../support/agent-sites.ts';
import { agentLiveIgnition } from '../../support/agent-medium.ts';
import { makeLiveMedium } from '../../support/config-image.ts';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import { type ConfigIsoWorld, manifestOf } from '../../support/config-iso-world.ts';
import {
  AS_HOSTS,
  AS_INSTANCE,
  buildAgain,
  HOST_TABLE,
  readResources,
} from '../../support/exports.ts';
import { TEST_CERTIFICATE } from '../../support/installation-iso.ts';
import type { Tree } from '../../support/site-archives.ts';
import type { KeyRing } from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'xorriso'].map((tool) => requireTool(tool));

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

type Members = Readonly<Record<string, unknown>>;

const agentTree = (install: Members, agent: Members, more: Tree = {}): Tree => ({
  'sites/site1/install-config.yaml': stringify(install),
  'sites/site1/agent-config.yaml': stringify(agent),
  'hosts.csv': HOST_TABLE,
  ...more,
});

const CLUSTER = agentInstallConfig({ masters: 3, platform: BAREMETAL });
const MASTERS = [0, 1, 2].map((index) => agentHost(index, 'master'));
const withoutNetwork = (host: Members): Members => ({ ...host, networkConfig: undefined });

/** Every member that only the overrides of install-config carry. */
const OVERRIDES = {
  metadata: { name: 'site1', namespace: 'edge' },
  capabilities: {
    baselineCapabilitySet: 'v4.11',
    additionalEnabledCapabilities: ['Ingress'],
  },
  cpuPartitioningMode: 'AllNodes',
  featureSet: 'TechPreviewNoUpgrade',
  additionalTrustBundle: TEST_CERTIFICATE,
  additionalTrustBundlePolicy: 'Always',
  imageDigestSources: [{ source: 'quay.io/a', mirrors: ['mirror.example:5000/a'] }],
};

const SINGLE = agentTree(
  agentInstallConfig(
    {},
    {
      ...OVERRIDES,
      proxy: { httpsProxy: 'http://proxy.example:3128', noProxy: '.example' },
    },
  ),
  agentConfig([agentHost(0, 'master', { rootDeviceHints: { minSizeGigabytes: 120 } })], {
    additionalNTPSources: ['192.0.2.1'],
  }),
  {
    'sites/site1/openshift/a.yaml': `${manifestOf('A')}---\n# none\n---\n${manifestOf('B')}`,
    'sites/site1/openshift/b.yml': manifestOf('C'),
  },
);

const EXTERNAL = agentTree(
  agentInstallConfig(
    {
      masters: 3,
      platform: { external: { platformName: 'oci', cloudControllerManager: 'External' } },
    },
    {
      controlPlane: { name: 'master', architecture: 'arm64', replicas: 3 },
      compute: [{ name: 'worker', architecture: 'arm64', replicas: 0 }],
    },
  ),
  agentConfig(MASTERS),
);

describe.skipIf(!hasTools.every(Boolean))(
  'config-iso export --as clusterinstance of a cluster that agents install',
  () => {
    let folder: string;
    let medium: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'exports-'));
      medium = await makeLiveMedium(folder, agentLiveIgnition());
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    const CASES: readonly (readonly [string, Tree])[] = [
      ['three masters on bare metal', agentTree(CLUSTER, agentConfig(MASTERS))],
      ['a single node with manifests, and all that is an override', SINGLE],
      [
        'hosts without addresses, of which a person chose the rendezvous host',
        agentTree(
          CLUSTER,
          agentConfig(MASTERS.map(withoutNetwork), { rendezvousIP: '192.0.2.11' }),
        ),
      ],
      [
        'another rendezvous host than the first',
        agentTree(CLUSTER, agentConfig(MASTERS, { rendezvousIP: '192.0.2.12' })),
      ],
      ['an arm64 cluster of a platform that a vendor integrates', EXTERNAL],
    ];

    it.each(CASES)(
      'writes what gives the same image but for agent-config.yaml: %s',
      async (_, tree) => {
        world.write(tree);
        const { failed } = await world.build(keys, { sites: 'sites', out: 'out', medium });
        expect(failed).toEqual([]);
        expect(await world.run('config-iso', 'export', 'sites', ...AS_INSTANCE)).toMatchObject({
          exitCode: 0,
        });
        const once = await buildAgain({ world, keys }, { from: 'exported', to: 'once', medium });
        const pair = ['out/site1.iso', 'once/site1.iso'];
        const { stdout } = await world.run('config-iso', 'diff', ...pair, '-o', 'json');
        const { differences } = JSON.parse(stdout) as { differences: { path: string }[] };
        expect(differences.map(({ path }) => path)).toEqual([
          '/etc/assisted/manifests/agent-config.yaml',
        ]);
        const again = ['exported', ...AS_INSTANCE, '--out', 'twice'];
        expect(await world.run('config-iso', 'export', ...again)).toMatchObject({ exitCode: 0 });
        expect(await buildAgain({ world, keys }, { from: 'twice', to: 'again', medium })).toEqual(
          once,
        );
      },
    );
  },
);

describe('config-iso export --as clusterinstance', () => {
  const told = async (tree: Tree): Promise<string> => {
    world.write(tree);
    const { stderr } = await world.run('config-iso', 'export', 'sites', ...AS_INSTANCE);
    return stderr;
  };

  it.each<[string, Tree, RegExp]>([
    [
      'a network type that the API does not have',
      agentTree(
        {
          ...CLUSTER,
          networking: { ...(CLUSTER['networking'] as Members), networkType: 'Calico' },
        },
        agentConfig(MASTERS),
      ),
      /install-config.yaml:\d+:\d+: networking.networkType: a ClusterInstance has the network types OVNKubernetes and OpenShiftSDN, not Calico/,
    ],
    [
      'an architecture that the API does not have',
      agentTree(
        agentInstallConfig(
          {},
          {
            controlPlane: { name: 'master', architecture: 's390x', replicas: 1 },
            compute: [{ name: 'worker', architecture: 's390x', replicas: 0 }],
          },
        ),
        agentConfig(MASTERS.slice(0, 1)),
      ),
      /controlPlane.architecture: a ClusterInstance has hosts of x86_64 and aarch64, not of s390x/,
    ],
    [
      'a host without a name',
      agentTree(
        CLUSTER,
        agentConfig(MASTERS.map((host, index) => (index === 1 ? { ...host, hostname: '' } : host))),
      ),
      /agent-config.yaml:\d+:\d+: hosts\[1\]: a node of a ClusterInstance has a name/,
    ],
    [
      'hosts that nobody names',
      agentTree(CLUSTER, agentConfig(MASTERS.slice(0, 2))),
      /controlPlane: the cluster has 3 hosts as master, and 2 of them are named/,
    ],
  ])('refuses %s, at its place', async (_, tree, expected) => {
    expect(await told(tree)).toMatch(expected);
  });

  it('warns of roles that it chooses, and of controllers that the cluster does not learn', async () => {
    const hosts = [0, 1, 2].map((index) =>
      agentHost(index, undefined, {
        BMC: { address: `redfish://192.0.2.9${index}`, username: 'root', password: 'pass-word' },
      }),
    );
    const text = await told(agentTree(CLUSTER, agentConfig(hosts)));
    expect(text).toContain('hosts[2]: warning: the host has no role: it is written as master');
    expect(text).toContain('hosts[0]: warning: the controller of the host is known to the hub');
    expect(text).not.toContain('pass-word');
  });
});

describe('config-iso export --as bmh of a cluster that agents install', () => {
  it('writes hosts that the InfraEnv takes, and networks of their MAC addresses', async () => {
    world.write(
      agentTree(
        {
          ...CLUSTER,
          imageDigestSources: [{ source: 'quay.io/a', mirrors: ['mirror.example/a'] }],
          cpuPartitioningMode: 'AllNodes',
        },
        agentConfig(MASTERS),
        { 'sites/site1/openshift/a.yaml': manifestOf('A') },
      ),
    );
    const { exitCode } = await world.run('config-iso', 'export', 'sites', ...AS_HOSTS);
    expect(exitCode).toBe(0);
    const [install, deployment, infraEnv, ...networks] = readResources(
      world,
      'exported/site1/cluster.yaml',
    );
    expect(install?.spec).toMatchObject({
      imageSetRef: { name: 'img4.21.3' },
      manifestsConfigMapRefs: [{ name: 'extra-manifests' }],
      provisionRequirements: { controlPlaneAgents: 3 },
    });
    const { annotations } = install?.metadata ?? {};
    const [overrides] = Object.values(annotations as Record<string, string>);
    expect(JSON.parse(overrides ?? '')).toEqual({
      cpuPartitioningMode: 'AllNodes',
      imageDigestSources: [{ source: 'quay.io/a', mirrors: ['mirror.example/a'] }],
    });
    expect(deployment?.spec).toMatchObject({ platform: { agentBareMetal: { agentSelector: {} } } });
    const label = { 'infraenvs.agent-install.openshift.io': 'site1' };
    expect(infraEnv?.spec).toMatchObject({
      clusterRef: { name: 'site1', namespace: 'site1' },
      nmStateConfigLabelSelector: { matchLabels: label },
    });
    const hosts = readResources(world, 'exported/site1/hosts.yaml');
    expect([hosts.length, networks.length]).toEqual([3, 3]);
    hosts.forEach((host, index) => {
      const macAddress = `52:54:00:00:00:0${index + 1}`;
      expect(host).toMatchObject({
        metadata: { name: `m${index}.example.com`, namespace: 'site1', labels: label },
        spec: { bootMACAddress: macAddress, online: true },
      });
      expect(networks[index]).toMatchObject({
        metadata: { labels: label, namespace: 'site1' },
        spec: { interfaces: [{ name: 'eth0', macAddress }] },
      });
    });
  });
});
