import { stringify } from 'yaml';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { checkAnySite } from '../../../src/sites/check-any.ts';
import { convertResources } from '../../../src/sites/resources/convert.ts';
import type { SiteFlow } from '../../../src/sites/resources/shape.ts';
import { agentInstance, instanceNode } from '../../support/cluster-instances.ts';
import { oldCluster, oldNode, siteConfig, siteConfigTree } from '../../support/site-configs.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';
import type { Tree } from '../../support/site-archives.ts';

type Members = Readonly<Record<string, unknown>>;

const listFiles = (tree: Tree) =>
  Object.entries(tree).map(([path, text]) => ({
    path: path.slice('site/'.length),
    bytes: Buffer.from(text),
    shownAs: path,
  }));

function convert(tree: Tree, flow?: SiteFlow, root?: string) {
  const files = listFiles(tree);
  const input = { name: 'site', files, ...(root !== undefined && { root }) };
  const made = convertResources(input, flow);
  return {
    files: made.files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]),
    problems: (made.problems ?? []).map(({ path, problem }) => `${path}: ${problem}`),
    warnings: (made.warnings ?? []).map(({ path, problem }) => `${path}: ${problem}`),
    lines: (made.problems ?? []).map(({ line }) => line),
  };
}

/** Problems of the cluster, also those that its made files have. */
function checkOne(cluster: Members): readonly string[] {
  const files = listFiles(siteConfigTree('site', siteConfig([cluster])));
  const { problems } = checkAnySite(convertResources({ name: 'site', files }, undefined), {
    epoch: TEST_EPOCH,
    redaction: createRedaction(),
  });
  return problems.map(({ path, problem }) => `${path}: ${problem}`);
}

const convertOne = (cluster: Members, more: Members = {}, tree: Tree = {}) =>
  convert({ ...siteConfigTree('site', siteConfig([cluster], more)), ...tree });

const SAME: Members = {
  clusterImageSetNameRef: 'other',
  additionalNTPSources: ['192.0.2.1'],
  cpuPartitioningMode: 'AllNodes',
  platformType: 'BareMetal',
  installConfigOverrides: '{"capabilities":{"baselineCapabilitySet":"v4.21"}}',
  proxy: { httpProxy: 'http://192.0.2.9:3128' },
};

/** The members that siteconfig-converter adds, renames or leaves out, by hand. */
const CONVERSIONS: readonly (readonly [what: string, old: Members, instance: Members])[] = [
  ['three nodes', oldCluster('site1'), { clusterType: 'HighlyAvailable' }],
  [
    'addresses in both forms',
    oldCluster('site1', { apiVIPs: ['192.0.2.5'], ingressVIPs: ['192.0.2.6'] }),
    { clusterType: 'HighlyAvailable' },
  ],
  [
    'one node',
    oldCluster('site1', { apiVIP: '', ingressVIP: '', nodes: [oldNode(0)] }),
    { clusterType: 'SNO', apiVIPs: [], ingressVIPs: [], nodes: [instanceNode(0)] },
  ],
  [
    'empty texts, lists and networks, as absent ones',
    oldCluster('site1', {
      networkType: '',
      platformType: '',
      additionalNTPSources: [],
      proxy: { httpProxy: '', httpsProxy: '', noProxy: '' },
      nodes: [
        oldNode(0, { role: '', installerArgs: '' }),
        oldNode(1, { nodeNetwork: { config: {} } }),
        oldNode(2, { nodeLabels: { 'example.com/du': null } }),
      ],
    }),
    {
      nodes: [
        instanceNode(0, { role: undefined }),
        instanceNode(1, { nodeNetwork: undefined }),
        instanceNode(2, { nodeLabels: { 'example.com/du': '' } }),
      ],
    },
  ],
  ['members of the same name', oldCluster('site1', SAME), SAME],
];

const manifest = (name: string): string =>
  `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}\n`;

describe('a cluster of a SiteConfig', () => {
  it.each(CONVERSIONS)('is the ClusterInstance of the converter: %s', (_what, old, instance) => {
    const text = stringify({
      ...agentInstance(instance),
      metadata: { name: 'site1', namespace: 'site1' },
    });
    const expected = convert({ ...siteConfigTree('site'), 'site/site-config.yaml': text });
    expect(expected.problems).toEqual([]);
    const made = convertOne(old);
    expect(made).toMatchObject({ files: expected.files, problems: [] });
  });

  it('has the manifests of ConfigMaps that it names', () => {
    const map = {
      kind: 'ConfigMap',
      metadata: { name: 'extra', namespace: 'site1' },
      data: { 'a.yaml': manifest('a') },
    };
    const cluster = oldCluster('site1', { manifestsConfigMapRefs: [{ name: 'extra' }] });
    const { files } = convert(siteConfigTree('site', siteConfig([cluster]), map));
    expect(files.at(-1)).toEqual(['openshift/a.yaml', manifest('a')]);
  });

  it('is for a seed if that is asked for', () => {
    const cluster = { ...oldCluster('site1'), nodes: [oldNode(0)] };
    const { files, problems, warnings } = convert(
      siteConfigTree('site', siteConfig([cluster])),
      'image-based',
    );
    expect(problems).toEqual([]);
    expect(files.map(([path]) => path)).toEqual(['install-config.yaml', 'image-based-config.yaml']);
    expect(warnings).toContain(
      "spec.clusters[0].apiVIP: apiVIPs has no place on a configuration ISO: it is the seed's",
    );
  });

  it('tells its problems where the SiteConfig has the values', () => {
    const clusters = [
      oldCluster('site1', { serviceNetwork: ['x'] }),
      oldCluster('site2', {
        manifestsConfigMapRefs: [{ name: 'none' }],
        nodes: [oldNode(0, { bmcAddress: undefined }), oldNode(1, { rol: 'x' })],
      }),
    ];
    const tree = siteConfigTree('site', siteConfig(clusters, { pullSecretRef: { name: 'other' } }));
    const { problems, lines, warnings } = convert(tree, undefined, 'site2');
    expect(problems).toEqual([
      'spec.clusters[1].nodes[0].bmcAddress: Required value',
      'spec.pullSecretRef: Secret "other" is not among the files of the site',
      'spec.clusters[1].manifestsConfigMapRefs[0]: ConfigMap "none" is not among the files of the site',
    ]);
    expect(lines[1]).toBe(9);
    expect(warnings).toEqual(['spec.clusters[1].nodes[1].rol: unknown field "rol"']);
  });

  it('keeps its place after a faulty cluster, and its own problems', () => {
    const bad = { ...oldCluster('site2', { additionalNTPSources: 'ntp.example.com' }) };
    const tree = siteConfigTree('site', siteConfig([null as never, oldCluster('site1'), bad]));
    expect(convert(tree, undefined, 'site1').problems).toEqual([]);
    expect(convert(tree, undefined, 'site2').problems).toEqual([
      'spec.clusters[2].additionalNTPSources: cannot unmarshal string into a field of type list',
    ]);
  });

  it('may be one of hundreds in a file', () => {
    const clusters = Array.from({ length: 200 }, (_, at) => oldCluster(`site${at}`));
    const { problems } = convert(
      siteConfigTree('site', siteConfig(clusters)),
      undefined,
      'site199',
    );
    expect(problems).toEqual([]);
  });

  it.each([
    ['a text', 'interfaces: []'],
    ['a list', []],
  ])('is refused with %s for a network', (_what, config) => {
    const nodes = [oldNode(0, { nodeNetwork: { config } }), oldNode(1), oldNode(2)];
    expect(convertOne(oldCluster('site1', { nodes })).problems).toEqual([]);
    expect(checkOne(oldCluster('site1', { nodes }))).toContain(
      'spec.clusters[0].nodes[0].nodeNetwork.config: cannot unmarshal it into an object',
    );
  });

  it('is refused with agent-config.yaml beside it, which is made of it', () => {
    const beside = { 'site/agent-config.yaml': 'rendezvousIP: 192.0.2.12\n' };
    expect(convertOne(oldCluster('site1'), {}, beside).problems).toEqual([
      ': agent-config.yaml is also made of the SiteConfig',
    ]);
  });

  it('is refused with another version, and without a cluster', () => {
    const other = { ...siteConfig([oldCluster('site1')]), apiVersion: 'ran.openshift.io/v2' };
    expect(convert(siteConfigTree('site', other)).problems).toEqual([
      'apiVersion: a SiteConfig has the version ran.openshift.io/v1',
    ]);
    expect(convert(siteConfigTree('site', siteConfig([]))).problems).toEqual([
      'spec.clusters: a SiteConfig has at least one cluster',
    ]);
  });

  it('warns of every member that a ClusterInstance does not have', () => {
    const cluster = oldCluster('site1', {
      apiVIPs: ['192.0.2.7'],
      mergeDefaultMachineConfigs: true,
      extraManifestOnly: true,
      siteConfigMap: { name: 'x' },
      crTemplates: { A: 'a' },
      diskEncryption: { tpm2: { pcrList: '1,7' } },
      nodes: [
        oldNode(0, { cpuset: '0-1', userData: { a: 1 }, diskPartition: [{ device: '/dev/sda' }] }),
        oldNode(1, { crTemplates: {}, cpuset: '' }),
        oldNode(2),
      ],
    });
    const { warnings, problems } = convertOne(cluster, {
      sshPrivateKeySecretRef: { name: 'key' },
      crAnnotations: { add: { A: { b: 'c' } } },
    });
    expect(problems).toEqual([]);
    expect(warnings.map((each) => each.replace(/:.*/, ''))).toEqual([
      'spec.clusters[0].diskEncryption',
      'spec.crAnnotations',
      'spec.sshPrivateKeySecretRef',
      'spec.clusters[0].crTemplates',
      'spec.clusters[0].mergeDefaultMachineConfigs',
      'spec.clusters[0].extraManifestOnly',
      'spec.clusters[0].siteConfigMap',
      'spec.clusters[0].apiVIP',
      'spec.clusters[0].nodes[0].diskPartition',
      'spec.clusters[0].nodes[0].userData',
      'spec.clusters[0].nodes[0].cpuset',
    ]);
    expect(warnings[7]).toBe(
      'spec.clusters[0].apiVIP: apiVIP must be the first of apiVIPs, which is 192.0.2.7',
    );
  });
});

describe('the folders of manifests of a SiteConfig', () => {
  const folders: Tree = {
    'site/extra-manifests/a.yaml': manifest('a'),
    'site/extra-manifests/b.yaml': manifest('b'),
    'site/openshift/b.yaml': manifest('other'),
  };
  const take = (extraManifests: Members, more: Members = {}) => {
    const cluster = oldCluster('site1', { extraManifests, ...more });
    const { files, problems } = convertOne(cluster, {}, folders);
    return { files: files.slice(2), problems };
  };
  const [a, b, other] = ['a', 'b', 'other'].map(manifest);

  it('are searched in their order: a later file takes the place of one with its name', () => {
    expect(take({ searchPaths: ['./extra-manifests/', 'openshift'] })).toEqual({
      files: [
        ['openshift/a.yaml', a],
        ['openshift/b.yaml', other],
      ],
      problems: [],
    });
    expect(take({ searchPaths: ['openshift', 'extra-manifests'] }).files).toContainEqual([
      'openshift/b.yaml',
      b,
    ]);
  });

  it('are the one of extraManifestPath without search paths, and openshift/ without both', () => {
    expect(take({}, { extraManifestPath: 'extra-manifests' }).files).toHaveLength(2);
    expect(take({}).files).toContainEqual(['openshift/b.yaml', other]);
  });

  it('are none if the list is empty', () => {
    expect(take({ searchPaths: [] }, { extraManifestPath: 'openshift' })).toEqual({
      files: [],
      problems: [],
    });
  });

  it('are refused with a file that a ConfigMap has as well', () => {
    const map = {
      kind: 'ConfigMap',
      metadata: { name: 'extra' },
      data: { 'a.yaml': manifest('x') },
    };
    const cluster = oldCluster('site1', {
      extraManifests: { searchPaths: ['extra-manifests'] },
      manifestsConfigMapRefs: [{ name: 'extra' }],
    });
    const tree = { ...siteConfigTree('site', siteConfig([cluster]), map), ...folders };
    expect(convert(tree).problems).toEqual([': openshift/a.yaml is also made of the SiteConfig']);
  });

  it('are refused if the site does not have them', () => {
    expect(take({ searchPaths: ['/usr/manifests', 'sno-extra-manifest/'] }).problems).toEqual([
      'spec.clusters[0].extraManifests.searchPaths[0]: no manifests are read from "/usr/manifests"',
      'spec.clusters[0].extraManifests.searchPaths[1]: no manifests are read from "sno-extra-manifest/"',
    ]);
  });

  it('are filtered', () => {
    const searchPaths = ['extra-manifests'];
    const filter = (members: Members) => take({ searchPaths, filter: members });
    expect(filter({ exclude: ['a.yaml'] }).files).toEqual([['openshift/b.yaml', b]]);
    expect(filter({ inclusionDefault: 'Exclude', include: ['a.yaml'] }).files).toEqual([
      ['openshift/a.yaml', a],
    ]);
    expect(filter({ inclusionDefault: 'exclude' }).files).toEqual([]);
    const at = 'spec.clusters[0].extraManifests.filter.';
    expect(filter({ include: ['a.yaml'] }).problems).toEqual([
      `${at}include: inclusionDefault is include: only the list exclude has an effect`,
    ]);
    expect(filter({ exclude: ['c.yaml'] }).problems).toEqual([
      `${at}exclude[0]: no manifest of the site is named "c.yaml"`,
    ]);
    expect(filter({ inclusionDefault: 'none' }).problems).toEqual([
      `${at}inclusionDefault: is include or exclude, not "none"`,
    ]);
  });
});
