import { readFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkConfigImage } from '../../../src/media/config-image.ts';
import {
  agentConfig,
  agentHost,
  agentInstallConfig,
  BAREMETAL,
} from '../../support/agent-sites.ts';
import { assistedResources } from '../../support/assisted-resources.ts';
import { agentLiveIgnition } from '../../support/agent-medium.ts';
import {
  agentInstance,
  imageBasedInstance,
  INSTANCE_NETWORKS,
  instanceNode,
  instanceTree,
  OF_SEED,
} from '../../support/cluster-instances.ts';
import { makeLiveMedium, RELEASE_IMAGE } from '../../support/config-image.ts';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import type { ConfigIsoWorld } from '../../support/config-iso-world.ts';
import type { Tree } from '../../support/site-archives.ts';
import type { KeyRing } from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'xorriso'].map((tool) => requireTool(tool));

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

const inSites = (tree: Tree): Tree =>
  Object.fromEntries(Object.entries(tree).map(([path, text]) => [`sites/${path}`, text]));

const errorsOf = async (tree: Tree, ...args: readonly string[]): Promise<string> => {
  world.write(inSites(tree));
  const { stderr } = await world.run('config-iso', 'validate', 'sites', ...args);
  return stderr;
};

describe('a ClusterInstance of a seed', () => {
  it('gives the same ISO, byte by byte, as the files that it stands in place of', async () => {
    const { networkConfig } = agentHost(0);
    world.write(
      inSites({
        'site1/install-config.yaml': stringify({
          apiVersion: 'v1',
          baseDomain: 'example.com',
          metadata: { name: 'site1' },
          controlPlane: { name: 'master', replicas: 1 },
          compute: [{ name: 'worker', replicas: 0 }],
          networking: {
            networkType: 'OVNKubernetes',
            machineNetwork: INSTANCE_NETWORKS.machineNetwork,
          },
          platform: { none: {} },
          pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}',
        }),
        'site1/image-based-config.yaml': stringify({
          hostname: 'm0.example.com',
          additionalNTPSources: ['192.0.2.1'],
          networkConfig,
        }),
        'site1/extra-manifests/a.yaml': 'apiVersion: v1\nkind: A\nmetadata: {name: a}\n',
      }),
    );
    const first = await world.build(keys, { sites: 'sites', out: 'out' });
    await cp(world.at('out'), world.at('other'), { recursive: true });
    await rm(world.at('sites'), { recursive: true });
    const map = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'extra', namespace: 'fleet' },
      data: { 'a.yaml': 'apiVersion: v1\nkind: A\nmetadata: {name: a}\n' },
    };
    const instance = imageBasedInstance({ extraManifestsRefs: [{ name: 'extra' }] });
    world.write(inSites(instanceTree('site1', [instance, map])));
    const second = await world.build(keys, { sites: 'sites', out: 'other' });
    expect(second.failed).toEqual([]);
    expect(second.sites[0]?.sha256).toBe(first.sites[0]?.sha256);
    expect(readFileSync(world.at('other/site1.iso'))).toEqual(
      readFileSync(world.at('out/site1.iso')),
    );
  });

  it('is refused with two nodes, and warned of what belongs to the seed', async () => {
    const instance = imageBasedInstance({
      nodes: [instanceNode(0, OF_SEED), instanceNode(1, OF_SEED)],
      clusterNetwork: INSTANCE_NETWORKS.clusterNetwork,
    });
    const told = await errorsOf(instanceTree('site1', [instance]));
    expect(told).toMatch(
      /sites\/site1\/clusterinstance.yaml:\d+:\d+: spec.nodes: a site from a seed has exactly one node, and this one has 2/,
    );
    expect(told).toContain('clusterNetwork has no place on a configuration ISO');
  });
});

describe.skipIf(!hasTools.every(Boolean))('a ClusterInstance that agents install', () => {
  let folder: string;
  let medium: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'instances-'));
    medium = await makeLiveMedium(folder, agentLiveIgnition());
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** Builds the site, whose image the medium takes. */
  async function expectTaken(): Promise<void> {
    const made = await world.build(keys, { sites: 'sites', out: 'out', medium });
    expect(made.failed).toEqual([]);
    const image = { path: world.at('out/site1.iso'), shownAs: 'site1.iso' };
    expect(await checkConfigImage(image, { path: medium, shownAs: 'medium' })).toMatchObject({
      fits: true,
      cautions: [],
      cluster: { nodes: { masters: 3, arbiters: 0, workers: 0 }, rendezvousIp: '192.0.2.10' },
    });
  }

  it('gives an image that the medium takes, with the manifests of the files in its place', async () => {
    world.write(inSites(instanceTree('site1', [agentInstance()])));
    await expectTaken();
    await rm(world.at('sites'), { recursive: true });
    const install = agentInstallConfig({ masters: 3, platform: BAREMETAL });
    const hosts = [0, 1, 2].map((index) => agentHost(index, 'master'));
    world.write(
      inSites({
        'site1/install-config.yaml': stringify(install),
        'site1/agent-config.yaml': stringify(agentConfig(hosts)),
      }),
    );
    await world.build(keys, { sites: 'sites', out: 'written', medium });
    const { stdout } = await world.run('config-iso', 'diff', 'out/site1.iso', 'written/site1.iso');
    const names = stdout.match(/\/etc\/assisted\/manifests\/[\w-]+\.yaml/g) ?? [];
    expect([...new Set(names)]).toEqual(['/etc/assisted/manifests/agent-config.yaml']);
  });

  it('is an image of cluster-manifests as well, which the medium takes', async () => {
    const manifests = Object.entries(assistedResources('site1')).map(([name, each]) => [
      `site1/cluster-manifests/${name}.yaml`,
      stringify(each),
    ]);
    world.write(inSites(Object.fromEntries(manifests) as Tree));
    await expectTaken();
  });

  const imageSet = (releaseImage: string, name = 'openshift-4.21.3') => ({
    apiVersion: 'hive.openshift.io/v1',
    kind: 'ClusterImageSet',
    metadata: { name },
    spec: { releaseImage },
  });
  const other = `quay.io/openshift-release-dev/ocp-release@sha256:${'b'.repeat(64)}`;

  it('is refused if its ClusterImageSet is another release than that of the medium', async () => {
    world.write(inSites(instanceTree('site1', [agentInstance(), imageSet(other)])));
    const { failed } = await world.build(keys, { sites: 'sites', out: 'out', medium });
    expect(failed).toMatchObject([
      { name: 'site1', findings: [{ code: 'config-image.other-release', found: other }] },
    ]);
    const resources = { ...assistedResources('site1'), set: imageSet(other, 'img') };
    await rm(world.at('sites'), { recursive: true });
    world.write(
      inSites({
        'site1/all.yaml': Object.values(resources)
          .map((each) => stringify(each))
          .join('---\n'),
      }),
    );
    const assisted = await world.build(keys, { sites: 'sites', out: 'out', medium });
    expect(assisted.failed).toMatchObject([{ findings: [{ code: 'config-image.other-release' }] }]);
  });

  it('may name the release of the medium by any registry, and a tag is a warning', async () => {
    const mirrored = RELEASE_IMAGE.replace('quay.io', 'registry.example.com:5000');
    world.write(
      inSites(instanceTree('site1', [agentInstance(), imageSet(mirrored), imageSet(other, 'x')])),
    );
    await expectTaken();
    world.write(
      inSites(instanceTree('site1', [agentInstance(), imageSet('quay.io/ours/release:latest')])),
    );
    await expectTaken();
    const { stderr } = await world.run(
      ...(['config-iso', 'build', 'sites', '--out', 'out', '--medium', medium] as const),
    );
    expect(stderr).toContain(
      'warning: the ClusterImageSet names quay.io/ours/release:latest, which cannot be compared with',
    );
  });

  it('takes overrides of install-config, deep, but for what siteconfig writes over them', async () => {
    const overrides = JSON.stringify({
      networking: { networkType: 'Calico', serviceNetwork: ['172.29.0.0/16'] },
    });
    world.write(
      inSites(instanceTree('site1', [agentInstance({ installConfigOverrides: overrides })])),
    );
    const { failed } = await world.build(keys, { sites: 'sites', out: 'out', medium });
    expect(failed).toEqual([]);
    await cp(world.at('out'), world.at('other'), { recursive: true });
    const serviceNetwork = [{ cidr: '172.29.0.0/16' }];
    world.write(inSites(instanceTree('site1', [agentInstance({ serviceNetwork })])));
    const other = await world.build(keys, { sites: 'sites', out: 'other', medium });
    expect(other.failed).toEqual([]);
    expect(readFileSync(world.at('other/site1.iso'))).toEqual(
      readFileSync(world.at('out/site1.iso')),
    );
  });

  it('has no effect of a network type in overrides: it is a warning', async () => {
    const installConfigOverrides = '{"networking":{"networkType":"Calico"}}';
    const tree = instanceTree('site1', [agentInstance({ installConfigOverrides })]);
    expect(await errorsOf(tree)).toMatch(
      /spec.installConfigOverrides: warning: networkType of the overrides has no effect/,
    );
  });
});

describe('a ClusterInstance', () => {
  it.each([
    [
      'without its Secret',
      { 'site1/a.yaml': stringify(agentInstance()) },
      /spec.pullSecretRef: Secret "pull" is not among the files of the site/,
    ],
    [
      'with a sealed Secret',
      {
        'site1/a.yaml': stringify(agentInstance()),
        'site1/b.yaml': 'kind: SealedSecret\nmetadata: {name: pull}\n',
      },
      /SealedSecret "pull" of sites\/site1\/b.yaml is not readable here: only a cluster opens it/,
    ],
    [
      'with overrides that are not JSON',
      instanceTree('site1', [agentInstance({ installConfigOverrides: '{' })]),
      /invalid JSON field\(s\): installConfigOverrides is not a valid JSON-formatted string/,
    ],
    [
      'with templates of a team',
      instanceTree('site1', [agentInstance({ templateRefs: [{ name: 'ours' }] })]),
      /ours: names of templates tell the flow by ai- or ibi-, and these do not/,
    ],
    [
      'twice in a folder',
      instanceTree('site1', [agentInstance(), agentInstance()]),
      /name "site1" of the ClusterInstance is the name of another site, too/,
    ],
    [
      'with a manifest that leaves its folder',
      instanceTree('site1', [
        agentInstance({ extraManifestsRefs: [{ name: 'extra' }] }),
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'extra' },
          data: { '../../a.yaml': 'x' },
        },
      ]),
      /key "..\/..\/a.yaml" is not the name of a file/,
    ],
    [
      'with a host name that no host can have',
      instanceTree('site1', [
        agentInstance({
          nodes: [instanceNode(0, { hostName: 'A_B' }), instanceNode(1), instanceNode(2)],
        }),
      ]),
      /clusterinstance.yaml:\d+:\d+: spec.nodes\[0\].hostName: Invalid value: "A_B"/,
    ],
    [
      'with overrides that are a list',
      instanceTree('site1', [agentInstance({ installConfigOverrides: '[]' })]),
      /clusterinstance.yaml:\d+:\d+: spec.installConfigOverrides: is not a JSON object/,
    ],
    [
      'with an override of Ignition that is not JSON, though it has no place',
      instanceTree('site1', [agentInstance({ ignitionConfigOverride: '{' })]),
      /cluster-level ignitionConfigOverride is not a valid JSON-formatted string/,
    ],
    [
      'with arguments of a node that are not JSON',
      instanceTree('site1', [
        agentInstance({
          nodes: [instanceNode(0, { installerArgs: '[' }), instanceNode(1), instanceNode(2)],
        }),
      ]),
      /spec.nodes\[0\].installerArgs: invalid JSON field\(s\): installerArgs \[Node: Hostname=m0.example.com\] is not/,
    ],
    [
      'with a node without templates',
      instanceTree('site1', [
        agentInstance({
          nodes: [instanceNode(0), instanceNode(1), instanceNode(2, { templateRefs: [] })],
        }),
      ]),
      /missing node-level template reference for node "m2.example.com"/,
    ],
    [
      'of a hosted control plane',
      instanceTree('site1', [agentInstance({ clusterType: 'HostedControlPlane' })]),
      /spec.clusterType: a hosted control plane has no nodes that a medium could install/,
    ],
    [
      'of another type than its nodes have',
      instanceTree('site1', [agentInstance({ clusterType: 'SNO' })]),
      /control-plane agent validation failed: single node OpenShift cluster-type must have exactly 1/,
    ],
    [
      'with a type of arbiters, but none',
      instanceTree('site1', [agentInstance({ clusterType: 'HighlyAvailableArbiter' })]),
      /must have at least 1 arbiter agent and 2 control-plane agents/,
    ],
    [
      'of a type that the API does not know',
      instanceTree('site1', [agentInstance({ clusterType: 'Sno' })]),
      /spec.clusterType: Unsupported value: "Sno": supported values: "SNO"/,
    ],
    [
      'of another version',
      instanceTree('site1', [{ ...agentInstance(), apiVersion: 'x.example.com/v1' }]),
      /apiVersion: a ClusterInstance has the version siteconfig.open-cluster-management.io\/v1alpha1/,
    ],
    [
      'of a seed with a worker',
      instanceTree('site1', [
        imageBasedInstance({ nodes: [instanceNode(0, { ...OF_SEED, role: 'worker' })] }),
      ]),
      /spec.nodes\[0\].role: the node of a site from a seed is a master, not a worker/,
    ],
    [
      'of a seed with a type of many nodes',
      instanceTree('site1', [imageBasedInstance({ clusterType: 'HighlyAvailable' })]),
      /spec.clusterType: a site from a seed is of the type SNO/,
    ],
    [
      'without the name of a release',
      instanceTree('site1', [agentInstance({ clusterImageSetNameRef: undefined })]),
      /spec.clusterImageSetNameRef: Required value/,
    ],
    [
      'with a node without a controller',
      instanceTree('site1', [
        agentInstance({
          nodes: [instanceNode(0, { bmcAddress: undefined }), instanceNode(1), instanceNode(2)],
        }),
      ]),
      /spec.nodes\[0\].bmcAddress: Required value/,
    ],
    [
      'with a node without a login of its controller',
      instanceTree('site1', [
        agentInstance({
          nodes: [instanceNode(0, { bmcCredentialsName: {} }), instanceNode(1), instanceNode(2)],
        }),
      ]),
      /spec.nodes\[0\].bmcCredentialsName: Required value/,
    ],
    [
      'with templates of both flows',
      instanceTree('site1', [
        agentInstance({ nodes: [instanceNode(0, OF_SEED), instanceNode(1), instanceNode(2)] }),
      ]),
      /spec.nodes\[0\].templateRefs\[0\]: ibi-node-templates-v1 is for the flow image-based, but ai-/,
    ],
    [
      'for several architectures',
      instanceTree('site1', [agentInstance({ cpuArchitecture: 'multi' })]),
      /spec.cpuArchitecture: multi: a medium has one architecture/,
    ],
    [
      'with a node of another architecture',
      instanceTree('site1', [
        agentInstance({
          nodes: [
            instanceNode(0, { cpuArchitecture: 'aarch64' }),
            instanceNode(1),
            instanceNode(2),
          ],
        }),
      ]),
      /spec.nodes\[0\].cpuArchitecture: aarch64: the cluster is for x86_64/,
    ],
  ] as const)('is refused %s, at its own place', async (_, tree, expected) => {
    const told = await errorsOf(tree);
    expect(told).toMatch(expected);
    expect(told).not.toContain('dXNlcjpwYXNz');
  });

  it('has the flow that a person says, for templates of a team', async () => {
    const tree = instanceTree('site1', [agentInstance({ templateRefs: [{ name: 'ours' }] })]);
    expect(await errorsOf(tree, '--flow', 'agent')).not.toContain('templates');
    expect(
      await errorsOf(instanceTree('site1', [agentInstance()]), '--flow', 'image-based'),
    ).toContain('is for the flow agent, but --flow is image-based');
  });

  it('tells a fault of overrides once, and at the overrides', async () => {
    const installConfigOverrides = '{"networking":{"clusterNetwork":[{"cidr":"x"}]}}';
    const told = await errorsOf(instanceTree('site1', [agentInstance({ installConfigOverrides })]));
    expect(told.match(/: spec\.\w+: Invalid value: "x"/g)).toEqual([
      ': spec.installConfigOverrides: Invalid value: "x"',
    ]);
  });

  it.each([agentInstance({ proxy: {} }), imageBasedInstance({ proxy: {} })])(
    'may have an empty proxy, which is none: %#',
    async (instance) => {
      expect(await errorsOf(instanceTree('site1', [instance]))).not.toContain('proxy');
    },
  );

  it('tells what has no place, by name', async () => {
    const instance = agentInstance({
      diskEncryption: { type: 'tpmv2' },
      nodes: [
        instanceNode(0, { installerArgs: '["-n"]', nodeLabels: { a: 'b' } }),
        instanceNode(1),
        instanceNode(2),
      ],
    });
    const told = await errorsOf(instanceTree('site1', [instance]));
    for (const member of ['diskEncryption', 'installerArgs', 'nodeLabels']) {
      expect(told).toContain(`${member} has no place on a configuration image`);
    }
  });

  it('is read in time among 10,000 documents of a file, and told at its own line', async () => {
    const maps = Array.from(
      { length: 10_000 },
      (_, index) => `kind: ConfigMap\nmetadata: {name: c${index}}\ndata: {a: b}\n---\n`,
    ).join('');
    const { 'site1/clusterinstance.yaml': text, ...others } = instanceTree('site1', [
      agentInstance({ clusterType: 'Sno' }),
    ]);
    const told = await errorsOf({
      ...others,
      'site1/clusterinstance.yaml': `${maps}${String(text)}`,
    });
    const line = 40_001 + String(text).split('\n').indexOf('  clusterType: Sno');
    expect(told).toContain(`clusterinstance.yaml:${line}:16: spec.clusterType: Unsupported value`);
  });
});
