import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { checkSite } from '../../src/sites/check.ts';
import { TEST_CERTIFICATE } from '../support/installation-iso.ts';
import {
  checkImageBased,
  checkInstall,
  createSiteInput,
  eth0,
  network,
  TEST_EPOCH,
  tell,
  writeImageBasedConfig,
  writeInstallConfig,
} from '../support/site-inputs.ts';

const redaction = createRedaction();

/** One that a node can apply, of three lines. */
const MANIFEST = 'apiVersion: v1\nkind: A\nmetadata: {name: a}\n';

const check = (files: Readonly<Record<string, string | Uint8Array>>) =>
  checkSite(createSiteInput(files), { epoch: TEST_EPOCH, redaction });

describe('a checked site keeps', () => {
  it('the values that the user wrote, and no defaults', () => {
    const { site, problems, warnings } = checkInstall({ networking: '' });
    expect(problems).toEqual([]);
    expect(site?.install).toEqual({
      clusterName: 'alpha',
      baseDomain: 'edge.example.com',
      sshKey: '',
      pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}',
    });
    expect(tell(warnings)).toEqual([
      '1:1 networking.machineNetwork: no machineNetwork is given: the node cannot tell which of its addresses to use, and stops if its seed is 4.20 or later',
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

  it('an empty list of mirrored sources, which differs from no list', () => {
    const { site } = checkInstall({ sources: 'imageDigestSources: []' });
    expect(site?.install.imageDigestSources).toEqual([]);
  });

  it('a machine network that is given by its deprecated key', () => {
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
      'extra-manifests/b.yaml': MANIFEST,
      'extra-manifests/B.yml': MANIFEST.replaceAll('\n', '\r\n'),
      'extra-manifests/a.json': '{"apiVersion":"v1","kind":"C","metadata":{"name":"c"}}',
      'extra-manifests/notes.txt': 'nothing',
      'extra-manifests/more/c.yaml': 'kind: D\n',
    });
    expect(
      site?.extraManifests.map(({ name, bytes }) => [name, Buffer.from(bytes).toString()]),
    ).toEqual([
      ['B.yml', MANIFEST.replaceAll('\n', '\r\n')],
      ['a.json', '{"apiVersion":"v1","kind":"C","metadata":{"name":"c"}}'],
      ['b.yaml', MANIFEST],
    ]);
    expect(warnings.map(({ file, problem }) => `${file}: ${problem}`)).toEqual([
      'alpha/extra-manifests/notes.txt: is ignored: manifests are *.yaml, *.yml and *.json in extra-manifests, without folders',
      'alpha/extra-manifests/more/c.yaml: is ignored: manifests are *.yaml, *.yml and *.json in extra-manifests, without folders',
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

  it('are both required, and a near miss gets a hint', () => {
    const bytes = Buffer.from(writeInstallConfig());
    const renamed = {
      bytes,
      path: 'install_config.yml',
      shownAs: 'a.zip/alpha/install_config.yml',
    };
    const { site, facts, problems } = checkSite(
      { name: 'alpha', files: [renamed] },
      { epoch: TEST_EPOCH, redaction },
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

  it('are checked together, with all problems at once', () => {
    const { problems } = check({
      'install-config.yaml': writeInstallConfig({ platform: '', pullSecret: '', apiVersion: '' }),
      'image-based-config.yaml': writeImageBasedConfig({ x: 'x: 1', hostname: 'hostname: _' }),
    });
    expect(problems.map(({ file, path }) => `${file} ${path}`)).toEqual([
      'alpha/install-config.yaml apiVersion',
      'alpha/install-config.yaml pullSecret',
      'alpha/install-config.yaml platform',
      'alpha/image-based-config.yaml hostname',
      'alpha/image-based-config.yaml x',
    ]);
  });

  it.each([
    ['a tab', 'hostname: a\n\tx: 1\n', 2],
    ['a quote that is never closed', 'hostname: "a\n', 2],
    ['two documents', 'hostname: a\n---\nhostname: b\n', 2],
    ['an alias of nothing', 'hostname: *a\n', 1],
    ['bytes that are not UTF-8', Uint8Array.of(0xff, 0xfe, 0x00), 1],
    ['a tag of a language', 'hostname: !!python/object:os.system a\n', 1],
  ])('are refused as a whole with %s', (_, text, line) => {
    const { site, problems } = check({ 'image-based-config.yaml': text });
    expect(site).toBeUndefined();
    expect(problems[0]?.problem).toMatch(/^not valid YAML: /);
    expect(problems[0]?.line).toBe(line);
  });
});

describe('a site gets a warning for', () => {
  it.each<readonly [string, Readonly<Record<string, string>>, string]>([
    [
      'a policy that does more than it says',
      { p: 'additionalTrustBundlePolicy: Always' },
      '9:30 AdditionalTrustBundlePolicy: Always is called ignored by openshift-install, but the cluster will trust the bundle everywhere',
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
      'a pool for edge zones',
      { compute: 'compute: [{name: edge, replicas: 0}]' },
      '5:18 compute[0].name: openshift-install 4.22 refuses the pool edge, which has no effect on the node',
    ],
    [
      'a stream of the operating system',
      { f: 'osImageStream: rhel-9' },
      '9:16 osImageStream: openshift-install 4.22 refuses osImageStream, which has no effect on the node',
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
      'an invalid hostname',
      { hostname: 'hostname: localhost' },
      '1:11 hostname: "localhost" does not count as a hostname: the node keeps its own, and newer nodes stop',
    ],
    [
      'a hostname in capitals',
      { hostname: 'hostname: Alpha-0' },
      '1:11 hostname: the node will be called "alpha-0"',
    ],
    [
      'no time servers',
      { additionalNTPSources: '' },
      '1:1 additionalNTPSources: no NTP source is given, so the node asks only the public pool',
    ],
    [
      'a cluster id that is not a valid UUID',
      { c: 'cluster_id: alpha' },
      '3:13 cluster_id: not a valid UUID',
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

  it('certificates that are expired, about to expire, or not valid yet', () => {
    const { validFrom, validTo } = new X509Certificate(TEST_CERTIFICATE);
    const bundle = `additionalTrustBundle: ${JSON.stringify(TEST_CERTIFICATE)}`;
    const at = (epoch: number): readonly string[] =>
      checkSite(createSiteInput({ 'install-config.yaml': writeInstallConfig({ bundle }) }), {
        epoch,
        redaction,
      }).warnings.map(({ problem }) => problem.replace(/ \(.*?\)/, '').replace(/\d{4}-.*/, ''));
    const end = Date.parse(validTo) / 1000;
    const start = Date.parse(validFrom) / 1000;
    expect(at(end + 1)).toEqual(['certificate 1 expired at ']);
    expect(at(end - 60)).toEqual(['certificate 1 expires soon, at ']);
    expect(at(start - 60)).toEqual([
      expect.stringMatching(/^certificate 1 (?:is not valid before|expires soon)/),
    ]);
  });

  it('a VLAN or a bond over an interface that is not defined', () => {
    const { site, warnings } = checkImageBased(
      network([
        ...eth0('- {name: eth1, type: ethernet, state: absent}'),
        '- {name: v1, type: vlan, vlan: {base-iface: eth0, id: 1}}',
        '- {name: v2, type: vlan, vlan: {base-iface: eno2, id: 2}}',
        '- {name: b1, type: bond, link-aggregation: {mode: active-backup, port: [eth1, eno3]}}',
        '- {name: v4, type: vlan, state: down, vlan: {base-iface: eno4, id: 4}}',
      ]),
    );
    expect(site).toBeDefined();
    expect(tell(warnings).filter((each) => each.includes('which is not defined'))).toEqual([
      '10:47 networkConfig.interfaces[3].vlan.base-iface: interface "v2": vlan v2 needs "eno2", which is not defined',
      '11:81 networkConfig.interfaces[4].link-aggregation.port[1]: interface "b1": bond b1 needs "eno3", which is not defined',
    ]);
  });

  it('a domain that ends in a dot', () => {
    const { site, warnings } = checkInstall({ baseDomain: 'baseDomain: edge.example.com.' });
    expect(site?.install.baseDomain).toBe('edge.example.com.');
    expect(tell(warnings)).toEqual([
      '3:13 baseDomain: "edge.example.com." ends in a dot, and so will the names that the node makes from it',
    ]);
  });

  it('manifests with names that some readers truncate', () => {
    const { site, warnings } = check({
      'extra-manifests/a-name-that-has-31-characters.yaml': MANIFEST,
      'extra-manifests/empty.yaml': '',
    });
    expect(site).toBeDefined();
    expect(warnings.map(({ file, line, problem }) => [file, line, problem])).toEqual([
      [
        'alpha/extra-manifests/a-name-that-has-31-characters.yaml',
        1,
        'the name has 34 characters, more than 30',
      ],
    ]);
  });
});

describe('a manifest that the node cannot apply is a problem by line and document:', () => {
  it.each<readonly [string, string, readonly string[]]>([
    [
      'a comment before the first separator',
      `# Made by hand\n---\n${MANIFEST}`,
      ['1:1 document 1 has only comments'],
    ],
    [
      'a comment behind the last separator',
      `${MANIFEST}---\n# the end\n`,
      ['5:1 document 2 has only comments'],
    ],
    ['blank lines behind the last separator', `${MANIFEST}---\n\n`, ['5:1 document 2 is empty']],
    [
      'no kind, no apiVersion and no name',
      `${MANIFEST}---\ndata: {}\n`,
      ['5:1 document 2 has no apiVersion and no kind and no metadata.name'],
    ],
    [
      'a name that is generated',
      'apiVersion: v1\nkind: A\nmetadata: {generateName: a-}\n',
      ['1:1 document 1 has no metadata.name'],
    ],
    [
      'a list without items',
      'apiVersion: v1\nkind: List\nmetadata: {name: a}\n',
      ['1:1 document 1 is a List without items'],
    ],
    [
      'items that are not a list',
      'kind: List\nitems:\n  a: 1\n',
      ['3:3 document 1 has "items" that are not a list'],
    ],
    [
      'an item of a typed list without its kind',
      'apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- 3\n',
      [
        '4:3 document 1 has an item 1 without apiVersion and kind',
        '5:3 document 1 has an item 2 that is not an object',
      ],
    ],
    [
      'a ConfigMap with a number, and a Secret in a list that is not base64',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  port: 8080\n  ok: "1"\n---\n' +
        'items:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}, data: {key: hunter2}}\n',
      [
        '5:9 document 1 cannot be stored: data.port is a number, not a text: write it in quotes',
        '9:67 document 2 cannot be stored: data.key is not base64',
      ],
    ],
    ['a list in place of an object', '- a\n', ['1:1 document 1 is not an object']],
    [
      'text that is not YAML',
      `${MANIFEST}---\nkind: [\n`,
      ['6:1 document 2 cannot be read: the indentation does not fit the lines above'],
    ],
    [
      'something on the line of a separator',
      `${MANIFEST}--- !A\n${MANIFEST}`,
      ['4:1 document 2 begins with more than "---" on its line'],
    ],
  ])('%s', (_, text, expected) => {
    const { site, problems } = check({ 'extra-manifests/a.yaml': text });
    expect(site).toBeUndefined();
    expect(
      problems.map(({ file, line, column, problem }) => `${file} ${line}:${column} ${problem}`),
    ).toEqual(
      expected.map((each) =>
        each.replace(/^\S+ /, 'alpha/extra-manifests/a.yaml $&the node cannot apply it: '),
      ),
    );
  });

  it('a kustomization, which the node does not render', () => {
    const { problems } = check({ 'extra-manifests/kustomization.yaml': 'resources: [a.yaml]\n' });
    expect(problems).toEqual([
      expect.objectContaining({
        file: 'alpha/extra-manifests/kustomization.yaml',
        problem: 'the node cannot apply a kustomization',
        hint: 'put the manifests that it renders here instead',
      }),
    ]);
  });

  it.each([
    ['documents with separators around them', `---\n${MANIFEST}---\n---\n${MANIFEST}---\n`],
    ['a separator with a comment', `${MANIFEST}--- # the next\n${MANIFEST}`],
    ['an empty list', 'kind: List\nitems: []\n'],
    ['a list of whole objects', `items:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n`],
    ['members that are merged in', `x: &x {apiVersion: v1, kind: A}\n<<: *x\nmetadata: {name: a}`],
    ['JSON with tabs', '{\n\t"apiVersion": "v1", "kind": "A",\n\t"metadata": {"name": "a"}\n}\n'],
    ['no text at all', '\n'],
  ])('but not %s', (_, text) => {
    expect(check({ 'extra-manifests/a.yaml': text }).problems).toEqual([]);
  });
});

describe('a site whose node would never finish is refused for', () => {
  const alone = { networking: '' };
  const proxy = { proxy: 'proxy: {httpProxy: "http://proxy.example:3128"}' };
  const wanted = 'networking.machineNetwork: Required value';

  it('a missing machine network with a proxy', () => {
    const { problems, warnings } = checkInstall({ ...alone, ...proxy });
    expect(tell(problems)).toEqual([
      `1:1 ${wanted}: with a proxy the node stops without machineNetwork`,
    ]);
    expect(tell(warnings).join()).not.toContain('machineNetwork');
  });

  it.each([
    ['4.20', false],
    ['4.20.0-rc.1', false],
    ['5.0.3', false],
    ['4.19.30', true],
    [undefined, true],
  ])('a missing machine network if the seed is %s: passes %s', (seedVersion, passes) => {
    const input = createSiteInput({ 'install-config.yaml': writeInstallConfig(alone) });
    const { problems, warnings } = checkSite(input, {
      epoch: TEST_EPOCH,
      redaction,
      ...(seedVersion !== undefined && { seedVersion }),
    });
    expect(tell(problems)).toEqual(
      passes
        ? []
        : [`1:1 ${wanted}: nodes of a seed ${seedVersion ?? ''} stop without machineNetwork`],
    );
    expect(tell(warnings).join().includes('machineNetwork')).toBe(passes);
  });

  it.each([
    ['4.19.30', '192.0.2.0/24'],
    ['4.20.0-rc.1', undefined],
    [undefined, undefined],
  ])('a second machine network if the seed is %s: only %s is read', (seedVersion, single) => {
    const networking =
      'networking: {machineNetwork: [{cidr: 192.0.2.0/24}, {cidr: 198.51.100.0/24}]}';
    const input = createSiteInput({ 'install-config.yaml': writeInstallConfig({ networking }) });
    const options = {
      epoch: TEST_EPOCH,
      redaction,
      ...(seedVersion !== undefined && { seedVersion }),
    };
    const { site, warnings } = checkSite(input, options);
    expect(site?.install.machineNetworks).toEqual(['192.0.2.0/24', '198.51.100.0/24']);
    expect(site?.install.machineNetwork).toBe(single);
    expect(tell(warnings).join().includes('only the first machine network')).toBe(
      single !== undefined,
    );
  });

  it('a hostname that the services of the node wait to see replaced', () => {
    const { problems } = checkImageBased({ hostname: 'hostname: localhost.localdomain' });
    expect(tell(problems)).toEqual([
      '1:11 hostname: Invalid value: "localhost.localdomain": the node waits forever for another hostname',
    ]);
  });
});
