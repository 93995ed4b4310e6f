import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { checkSite } from '../../../src/config/sites/check-site.ts';
import { TEST_CERTIFICATE } from '../../support/installation-iso.ts';
import {
  checkImageBased,
  checkInstall,
  createSiteInput,
  TEST_EPOCH,
  tell,
  writeImageBasedConfig,
  writeInstallConfig,
} from '../../support/site-inputs.ts';

const check = (files: Readonly<Record<string, string | Uint8Array>>) =>
  checkSite(createSiteInput(files), { epoch: TEST_EPOCH });

describe('a site keeps', () => {
  it('what the user wrote, and no defaults', () => {
    const { site, problems, warnings } = checkInstall({ networking: '' });
    expect(problems).toEqual([]);
    expect(site?.install).toEqual({
      clusterName: 'alpha',
      baseDomain: 'edge.example.com',
      sshKey: '',
      pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}',
    });
    expect(tell(warnings)).toEqual([
      '1:1 networking.machineNetwork: no machineNetwork is written: the node cannot tell which of its addresses to use',
    ]);
  });

  it('everything that goes on the ISO', () => {
    const { site, problems } = checkInstall({
      networking: 'networking: {machineNetwork: [{cidr: 192.0.2.0/24}, {cidr: "2001:db8::/64"}]}',
      proxy: 'proxy: {httpProxy: "http://p:1", noProxy: "a.example"}',
      bundle: `additionalTrustBundle: ${JSON.stringify(TEST_CERTIFICATE)}`,
      policy: 'additionalTrustBundlePolicy: Always',
      sources:
        'imageDigestSources: [{source: quay.io/a, mirrors: [quay.io/b], sourcePolicy: NeverContactSource}, {source: quay.io/c}]',
    });
    expect(tell(problems)).toEqual([]);
    expect(site?.install).toMatchObject({
      machineNetworks: ['192.0.2.0/24', '2001:db8::/64'],
      proxy: { httpProxy: 'http://p:1', noProxy: 'a.example' },
      additionalTrustBundle: TEST_CERTIFICATE,
      additionalTrustBundlePolicy: 'Always',
      imageDigestSources: [
        { source: 'quay.io/a', mirrors: ['quay.io/b'], sourcePolicy: 'NeverContactSource' },
        { source: 'quay.io/c', mirrors: [] },
      ],
    });
  });

  it('an empty list of mirrored sources, which is not the same as none', () => {
    const { site } = checkInstall({ sources: 'imageDigestSources: []' });
    expect(site?.install.imageDigestSources).toEqual([]);
  });

  it('a machine network that is written in the old way', () => {
    const { site } = checkInstall({ networking: 'networking: {machineCIDR: 192.0.2.0/24}' });
    expect(site?.install.machineNetworks).toEqual(['192.0.2.0/24']);
  });

  it('names, labels and the network of the node', () => {
    const { site } = checkImageBased({
      ids: 'cluster_id: 3fd3a7a4-5d6c-4a5a-9f3e-0d3a3b6d9b11\ninfra_id: alpha-x2x4z',
      registry: 'releaseRegistry: registry.lab:5000',
      labels: 'nodeLabels: {example.com/row: 7, site: "yes", edge: }',
      network:
        'networkConfig: {interfaces: [{type: ethernet, name: eth0, ipv4: {enabled: yes, dhcp: on}}]}',
    });
    expect(site?.imageBased).toEqual({
      additionalNTPSources: ['ntp.example.com'],
      hostname: 'alpha-0',
      releaseRegistry: 'registry.lab:5000',
      clusterId: '3fd3a7a4-5d6c-4a5a-9f3e-0d3a3b6d9b11',
      infraId: 'alpha-x2x4z',
      nodeLabels: { 'example.com/row': '7', 'site': 'yes', 'edge': '' },
      networkConfig:
        'interfaces:\n- ipv4:\n    dhcp: true\n    enabled: true\n  name: eth0\n  type: ethernet\n',
    });
  });

  it('extra manifests in the order of their bytes, verbatim', () => {
    const { site, warnings } = check({
      'extra-manifests/b.yaml': 'kind: A\n',
      'extra-manifests/B.yml': 'kind: B\r\n',
      'extra-manifests/a.json': '{"kind":"C"}',
      'extra-manifests/notes.txt': 'nothing',
      'extra-manifests/more/c.yaml': 'kind: D\n',
    });
    expect(
      site?.extraManifests.map(({ name, bytes }) => [name, Buffer.from(bytes).toString()]),
    ).toEqual([
      ['B.yml', 'kind: B\r\n'],
      ['a.json', '{"kind":"C"}'],
      ['b.yaml', 'kind: A\n'],
    ]);
    expect(warnings.map(({ file, problem }) => `${file}: ${problem}`)).toEqual([
      'alpha/extra-manifests/notes.txt: is ignored: extra manifests are *.yaml, *.yml and *.json without folders',
      'alpha/extra-manifests/more/c.yaml: is ignored: extra manifests are *.yaml, *.yml and *.json without folders',
    ]);
  });
});

describe('the files of a site', () => {
  it('may be JSON', () => {
    const { site, problems } = check({
      'install-config.yaml': JSON.stringify({
        apiVersion: 'v1',
        metadata: { name: 'beta', creationTimestamp: null },
        baseDomain: 'edge.example.com',
        controlPlane: { name: 'master', replicas: 1 },
        compute: [{ name: 'worker', replicas: 0 }],
        networking: { networkType: 'OVNKubernetes', machineNetwork: [{ cidr: '192.0.2.0/24' }] },
        platform: { none: {} },
        pullSecret: '{"auths":{"quay.io":{"auth":"eA=="}}}',
      }),
      'image-based-config.yaml': JSON.stringify({ hostname: 'beta-0' }, undefined, '\t'),
    });
    expect(tell(problems)).toEqual([]);
    expect(site?.install.clusterName).toBe('beta');
  });

  it('may use anchors, aliases and merge keys', () => {
    const { site, problems } = check({
      'image-based-config.yaml': [
        'hostname: alpha-0',
        'networkConfig:',
        '  interfaces:',
        '  - &nic {name: eth0, type: ethernet, mtu: 9000}',
        '  - {<<: *nic, name: eth1}',
        '  - {<<: [{state: up}, *nic], name: eth2, ipv4: {enabled: true, dhcp: true}}',
        '',
      ].join('\n'),
    });
    expect(tell(problems)).toEqual([]);
    expect(site?.imageBased.networkConfig?.match(/mtu: 9000/g)).toHaveLength(3);
    expect(site?.imageBased.networkConfig).toContain('state: up');
  });

  it('are both needed, and a near miss gets a hint', () => {
    const bytes = Buffer.from(writeInstallConfig());
    const renamed = {
      bytes,
      path: 'install_config.yml',
      shownAs: 'a.zip/alpha/install_config.yml',
    };
    const { site, facts, problems } = checkSite(
      { name: 'alpha', files: [renamed] },
      { epoch: TEST_EPOCH },
    );
    expect(site).toBeUndefined();
    expect(facts).toBeUndefined();
    expect(problems.map(({ file, line, problem, hint }) => [file, line, problem, hint])).toEqual([
      [
        ...['a.zip/alpha/install_config.yml', 1, 'install-config.yaml is missing'],
        'rename install_config.yml to install-config.yaml',
      ],
      ['a.zip/alpha/image-based-config.yaml', 1, 'image-based-config.yaml is missing', undefined],
    ]);
  });

  it('are judged together, all problems at once', () => {
    const { problems } = check({
      'install-config.yaml': writeInstallConfig({ platform: '', pullSecret: '', apiVersion: '' }),
      'image-based-config.yaml': writeImageBasedConfig({ x: 'x: 1', hostname: 'hostname: _' }),
    });
    expect(problems.map(({ file, path }) => `${file} ${path}`)).toEqual([
      'alpha/install-config.yaml apiVersion',
      'alpha/install-config.yaml platform',
      'alpha/install-config.yaml pullSecret',
      'alpha/image-based-config.yaml hostname',
      'alpha/image-based-config.yaml x',
    ]);
  });

  it.each([
    ['a tab', 'hostname: a\n\tx: 1\n', 2],
    ['a quote that is never closed', 'hostname: "a\n', 2],
    ['two documents', 'hostname: a\n---\nhostname: b\n', 2],
    ['an alias of nothing', 'hostname: *a\n', 1],
    ['bytes that are no UTF-8', Uint8Array.of(0xff, 0xfe, 0x00), 1],
    ['a tag of a language', 'hostname: !!python/object:os.system a\n', 1],
  ])('are refused as a whole with %s', (_, text, line) => {
    const { site, problems } = check({ 'image-based-config.yaml': text });
    expect(site).toBeUndefined();
    expect(problems[0]?.problem).toMatch(/^error converting YAML to JSON: /);
    expect(problems[0]?.line).toBe(line);
  });
});

describe('a site is warned of', () => {
  it.each<readonly [string, Readonly<Record<string, string>>, string]>([
    [
      'a policy that does more than it says',
      { p: 'additionalTrustBundlePolicy: Always' },
      '9:30 AdditionalTrustBundlePolicy: Always is said to be ignored, but the cluster will trust the bundle everywhere',
    ],
    [
      'hyperthreading that stays on',
      { controlPlane: 'controlPlane: {name: master, replicas: 1, hyperthreading: Disabled}' },
      '4:59 controlPlane.hyperthreading: hyperthreading Disabled is ignored',
    ],
    [
      'a platform of a machine pool',
      { compute: 'compute: [{name: worker, replicas: 0, platform: {aws: {}}}]' },
      '5:49 compute[0].platform: platform is ignored',
    ],
    [
      'FIPS, which the seed decides',
      { f: 'fips: true' },
      '9:7 fips: is ignored: the seed image has decided it',
    ],
    [
      'partitioning of CPUs',
      { f: 'cpuPartitioningMode: AllNodes' },
      '9:22 cpuPartitioningMode: is ignored: the seed image has decided it',
    ],
    [
      'capabilities',
      { f: 'capabilities: {}' },
      '9:15 capabilities: is ignored: the seed image has decided it',
    ],
    [
      'mirrors that do not reach the node',
      { f: 'imageContentSources: [{source: quay.io/a}]' },
      '9:22 imageContentSources: does not reach the node',
    ],
    [
      'a mirror without credentials',
      { s: 'imageDigestSources: [{source: quay.io/a, mirrors: ["r.lab:5000/a"]}]' },
      `9:52 imageDigestSources[0].mirrors[0]: the pull secret has no entry for the mirror's registry "r.lab:5000"`,
    ],
  ])('%s', (_, sections, expected) => {
    const { site, problems, warnings } = checkInstall(sections);
    expect(tell(problems)).toEqual([]);
    expect(site).toBeDefined();
    expect(tell(warnings)).toEqual([expected]);
  });

  it.each<readonly [string, Readonly<Record<string, string>>, string]>([
    ['no hostname', { hostname: '' }, '1:1 hostname: no hostname is given: the node keeps its own'],
    [
      'a hostname that is none',
      { hostname: 'hostname: localhost' },
      '1:11 hostname: "localhost" counts as no hostname: the node keeps its own',
    ],
    [
      'a hostname in capitals',
      { hostname: 'hostname: Alpha-0' },
      '1:11 hostname: the node will be called "alpha-0"',
    ],
    [
      'no time servers',
      { additionalNTPSources: '' },
      '1:1 additionalNTPSources: no NTP source is given; the public pool alone is asked',
    ],
    [
      'a cluster id that is no UUID',
      { c: 'cluster_id: alpha' },
      '3:13 cluster_id: this is no UUID',
    ],
    [
      'a label that Kubernetes will refuse',
      { l: 'nodeLabels: {"a b": c}' },
      '3:13 nodeLabels: Kubernetes will refuse the label with key "a b"',
    ],
    [
      'a value that Kubernetes will refuse',
      { l: 'nodeLabels: {a: b/c}' },
      '3:13 nodeLabels: Kubernetes will refuse the label with value "b/c"',
    ],
  ])('%s', (_, sections, expected) => {
    const { site, problems, warnings } = checkImageBased(sections);
    expect(tell(problems)).toEqual([]);
    expect(site).toBeDefined();
    expect(tell(warnings)).toEqual([expected]);
  });

  it('certificates that are overdue, soon overdue, or not valid yet', () => {
    const { validFrom, validTo } = new X509Certificate(TEST_CERTIFICATE);
    const bundle = `additionalTrustBundle: ${JSON.stringify(TEST_CERTIFICATE)}`;
    const at = (epoch: number): readonly string[] =>
      checkSite(createSiteInput({ 'install-config.yaml': writeInstallConfig({ bundle }) }), {
        epoch,
      }).warnings.map(({ problem }) => problem.replace(/ \(.*?\)/, '').replace(/\d{4}-.*/, ''));
    const end = Date.parse(validTo) / 1000;
    const start = Date.parse(validFrom) / 1000;
    expect(at(end + 1)).toEqual(['certificate 1 expired at ']);
    expect(at(end - 60)).toEqual(['certificate 1 expires soon, at ']);
    expect(at(start - 60)).toEqual([
      expect.stringMatching(/^certificate 1 (?:is not valid before|expires soon)/),
    ]);
  });

  it('manifests that the node will not read', () => {
    const { site, warnings } = check({
      'extra-manifests/a-name-that-has-31-characters.yaml': 'kind: A\n---\nkind: B\n',
      'extra-manifests/broken.yaml': 'kind: A\nkind\n: [\n',
      'extra-manifests/empty.yaml': '',
    });
    expect(site).toBeDefined();
    expect(warnings.map(({ file, line, problem }) => [file, line, problem])).toEqual([
      [
        'alpha/extra-manifests/a-name-that-has-31-characters.yaml',
        1,
        'the name has 34 characters, more than 30',
      ],
      [
        'alpha/extra-manifests/broken.yaml',
        expect.any(Number),
        expect.stringMatching(/^the node cannot read it: /),
      ],
    ]);
  });
});
