import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Command } from 'commander';
import fc from 'fast-check';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { registerImportImageset } from '../../../src/cli/init.ts';
import { importImageSet, renderImportedConfig } from '../../../src/config/imageset/import.ts';
import { checkConfig } from '../../../src/config/load.ts';
import { ConfigProblems } from '../../../src/base/errors.ts';
import { inputOf } from '../../support/config-input.ts';
import { runs } from '../../support/properties.ts';

const redaction = createRedaction();

const HEAD = 'apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\n';

const OVE = `${HEAD}mirror:
  platform:
    channels:
      - name: stable-4.20
        minVersion: 4.20.3
        maxVersion: 4.20.3
  operators:
    - catalog: registry.redhat.io/redhat/redhat-operator-index:v4.20
      packages:
        - name: kubevirt-hyperconverged
          channels:
            - name: stable
        - name: mtv-operator
          defaultChannel: release-v2.10
          channels:
            - name: release-v2.10
              minVersion: 2.10.0
        - name: numaresources-operator
          channels:
            - name: "4.20"
  additionalImages:
    - name: registry.redhat.io/rhel9/support-tools:latest
    - name: quay.io/team/app:1
      targetRepo: copies/app
      targetTag: one
  blockedImages:
    - name: .*unwanted.*
`;

const mirror = (text: string): string =>
  `${HEAD}mirror:\n${text.replaceAll(/^/gm, '  ').trimEnd()}\n`;

const render = (text: string): string =>
  renderImportedConfig(importImageSet(text, 'i.yaml').config, 'i.yaml');

const notesOf = (text: string): readonly string[] =>
  importImageSet(text, 'i.yaml').notes.map(
    ({ file, line, column, path, problem }) => `${file}:${line}:${column}: ${path}: ${problem}`,
  );

function hintsOf(text: string): readonly string[] {
  try {
    importImageSet(text, 'i.yaml');
    return [];
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    return error.problems.map(({ line, path, hint }) => `${line} ${path}: ${hint ?? 'no hint'}`);
  }
}

function problemsOf(text: string): readonly string[] {
  try {
    importImageSet(text, 'i.yaml');
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    return error.problems.map(
      ({ line, column, path, problem }) => `${line}:${column}: ${path}: ${problem}`,
    );
  }
  return [];
}

describe('an image set of one release with operators', () => {
  it('becomes a configuration without loss', () => {
    expect(notesOf(OVE)).toEqual([]);
    expect(render(OVE)).toBe(`# Made from i.yaml. Check it: sealift validate
apiVersion: v1beta1
kind: ApplianceConfig

ocpRelease:
  version: 4.20.3
  channel: stable

# Credentials to fetch with; they do not go on the media. The JSON text, file:PATH or env:NAME.
pullSecret: file:pull-secret.json

# Public keys for the user core, one a line, or file:PATH or env:NAME.
# sshKey: file:id_ed25519.pub

# Operators to carry, by catalog.
operators:
  - catalog: registry.redhat.io/redhat/redhat-operator-index:v4.20
    packages:
      - name: kubevirt-hyperconverged
        channels:
          - name: stable
      - name: mtv-operator
        defaultChannel: release-v2.10
        channels:
          - name: release-v2.10
            minVersion: 2.10.0
      - name: numaresources-operator
        channels:
          - name: "4.20"

# Images to carry besides the release.
additionalImages:
  - name: registry.redhat.io/rhel9/support-tools:latest
  - name: quay.io/team/app:1
    targetRepo: copies/app
    targetTag: one

# Images to leave out: regular expressions.
blockedImages:
  - name: .*unwanted.*
`);
  });

  it.each([
    ['with ranges', OVE],
    ['without a release', mirror('additionalImages: []')],
    ['with another target and every version', mirror(FULL())],
  ])('becomes a file that passes our own checks: %s', (_, text) => {
    const { problems } = checkConfig(inputOf(render(text), 'a.yaml'), { env: {} });
    expect(problems).toEqual([]);
  });
});

function FULL(): string {
  return `platform: {release: "quay.io/ocp/release:4.21.0-rc.1-aarch64"}
operators:
- catalog: quay.io/team/index:v1
  full: true
  targetCatalog: team/all
  targetTag: mine
  packages: [{name: a, minVersion: "1.0"}]
- catalog: quay.io/team/index:v1
`;
}

describe('the release', () => {
  const releaseOf = (platform: string) =>
    importImageSet(mirror(`platform: ${platform}`), 'i.yaml').config.ocpRelease;

  it.each([
    ['{channels: [{name: stable-4.20}]}', { version: '4.20', channel: 'stable' }],
    ['{channels: [{name: eus-4.18, maxVersion: v4.18.2}]}', { version: '4.18.2', channel: 'eus' }],
    [
      '{channels: [{name: fast-4.21}], architectures: [arm64]}',
      { version: '4.21', channel: 'fast', cpuArchitecture: 'aarch64' },
    ],
    [
      '{channels: [{name: fast-4.21}], platforms: [{os: linux, architecture: amd64}]}',
      { version: '4.21', channel: 'fast', cpuArchitecture: 'x86_64' },
    ],
    [
      '{release: "quay.io/o/r:4.21.0-rc.1-x86_64"}',
      { version: '4.21.0-rc.1', cpuArchitecture: 'x86_64', url: 'quay.io/o/r:4.21.0-rc.1-x86_64' },
    ],
  ])('is imported from %s', (platform, expected) => {
    expect(releaseOf(platform)).toEqual(expected);
    expect(notesOf(mirror(`platform: ${platform}`))).toEqual([]);
  });
});

describe('a setting without a counterpart', () => {
  it('is noted with its place if it belongs to the release', () => {
    const text = `archiveSize: 4
${mirror(`platform:
  graph: true
  kubeVirtContainer: true
  architectures: [amd64, s390x]
  channels:
  - name: stable-4.20
    minVersion: 4.20.1
    maxVersion: 4.20.9
    shortestPath: true
  - name: stable-4.21
    type: okd
`)}`;
    expect(notesOf(text)).toEqual([
      'i.yaml:7:24: mirror.platform.kubeVirtContainer: the disk image of KubeVirt is not carried on the media',
      'i.yaml:8:28: mirror.platform.architectures[1]: media have one architecture: "s390x" is left out',
      'i.yaml:11:19: mirror.platform.channels[0].minVersion: media carry one release: version 4.20.9 is used, no earlier one',
      'i.yaml:13:21: mirror.platform.channels[0].shortestPath: media carry one release, not an upgrade path',
      'i.yaml:14:7: mirror.platform.channels[1]: media carry one release: only the first channel is used',
      'i.yaml:6:12: mirror.platform.graph: the update graph is not carried on the media',
      'i.yaml:1:14: archiveSize: sealift makes one ISO, not archives of a given size',
    ]);
  });

  it('is noted for payloads without a version and for foreign channels', () => {
    const digest = `quay.io/o/r@sha256:${'a'.repeat(64)}`;
    expect(
      notesOf(mirror(`platform: {release: "${digest}", channels: [{name: stable-4.20}]}`)),
    ).toEqual([
      'i.yaml:4:23: mirror.platform.release: the reference does not say which version it is',
      expect.stringContaining('"release" replaces the channels'),
    ]);
    expect(
      notesOf(mirror('platform: {channels: [{name: "4-scos-stable", type: okd, maxVersion: x}]}')),
    ).toEqual([
      expect.stringContaining('"4-scos-stable" is not an OpenShift release channel'),
      expect.stringContaining('media are made from OpenShift releases, not from "okd"'),
      expect.stringContaining('"x" is not a valid release version'),
    ]);
    expect(notesOf(mirror('operators: []'))).toEqual([
      'i.yaml:4:3: mirror.platform: names no release, but media carry one',
    ]);
  });

  it('is noted with its place if it belongs to operators or images, the greatest harm first', () => {
    const text = mirror(`platform: {channels: [{name: stable-4.20}]}
operators:
- catalog: redhat-operator-index:v4.20
- catalog: quay.io/team/index:v1
  full: true
  skipDependencies: true
  targetCatalogSourceTemplate: cs.yaml
  platforms: [{os: linux, architecture: arm64}]
  packages: [{name: a, channels: [{name: b, maxVersion: "2"}]}]
additionalImages:
- name: quay.io/team/app
- name: ubi9/ubi:latest
- name: quay.io/team/app:1
  platforms: [{os: linux, architecture: arm64}]
- name: quay.io/team/app:1
helm:
  repositories: [{name: a, url: "https://charts.example.com"}]
  local: [{name: b, path: /b.tgz}]
samples: [{name: ruby}]
blockedImages: [{name: x}, {name: x}]
`);
    expect(notesOf(text).map((note) => note.replace(/^i.yaml:(\d+):\d+: mirror\./, '$1 '))).toEqual(
      [
        '6 operators[0].catalog: left out: "redhat-operator-index:v4.20" names no registry: write it in full, as in registry.example.com/team/app',
        '14 additionalImages[0].name: left out: "quay.io/team/app" has no tag and no digest',
        '15 additionalImages[1].name: left out: "ubi9/ubi:latest" names no registry: write it in full, as in registry.example.com/team/app',
        '10 operators[1].targetCatalogSourceTemplate: templates of CatalogSources are not used',
        '11 operators[1].platforms[0]: left out: linux/arm64; images are carried for x86_64',
        '12 operators[1].packages[0].channels[0].maxVersion: left out: "full" of the catalog keeps every version',
        '17 additionalImages[2].platforms[0]: left out: linux/arm64; images are carried for x86_64',
        '20 helm.repositories: Helm charts are not carried',
        '21 helm.local: Helm charts are not carried',
        '22 samples: samples are not carried',
        '18 additionalImages[3].name: left out: "quay.io/team/app:1" already appears at mirror.additionalImages[2].name',
        '9 operators[1].skipDependencies: oc-mirror v2 ignores it',
        '23 blockedImages[1].name: left out: "x" already appears at mirror.blockedImages[0].name',
      ],
    );
    expect(checkConfig(inputOf(render(text), 'a.yaml'), { env: {} }).problems).toEqual([]);
  });
});

it('references that begin with docker:// are imported without it', () => {
  const { config, notes } = importImageSet(
    mirror(`platform: {release: "docker://quay.io/ocp/release:4.21.0-x86_64"}
operators: [{catalog: "docker://quay.io/team/index:v1"}]
additionalImages:
- name: docker://registry.redhat.io/ubi9/ubi-minimal:latest
  targetRepo: ubi-repo
  targetTag: ubi-v9
- name: registry.access.redhat.com/ubi8/nginx-120:latest
`),
    'i.yaml',
  );
  expect(notes).toEqual([]);
  expect(config).toMatchObject({
    ocpRelease: { url: 'quay.io/ocp/release:4.21.0-x86_64', version: '4.21.0' },
    operators: [{ catalog: 'quay.io/team/index:v1' }],
    additionalImages: [
      {
        name: 'registry.redhat.io/ubi9/ubi-minimal:latest',
        targetRepo: 'ubi-repo',
        targetTag: 'ubi-v9',
      },
      { name: 'registry.access.redhat.com/ubi8/nginx-120:latest' },
    ],
  });
});

it('an image named with and without docker:// is one image', () => {
  const twice = (more: string) =>
    importImageSet(
      mirror(`platform: {channels: [{name: stable-4.20}]}
additionalImages: [{name: "quay.io/a/b:1"}, {name: "docker://quay.io/a/b:1"${more}}]
`),
      'i.yaml',
    );
  const problem = 'left out: "quay.io/a/b:1" already appears at mirror.additionalImages[0].name';
  expect(twice('').notes).toMatchObject([{ problem, severity: 'note' }]);
  const { config, notes } = twice(', targetTag: two');
  expect(notes).toMatchObject([{ problem }]);
  expect(notes[0]?.severity).toBe('warning');
  expect(config.additionalImages).toEqual([{ name: 'quay.io/a/b:1' }]);
});

it('an image set of v1alpha2 is read as oc-mirror v2 reads it, with a note', () => {
  const text = mirror('platform: {channels: [{name: stable-4.20}]}');
  const { notes } = importImageSet(text.replace('v2alpha1', 'v1alpha2'), 'i.yaml');
  expect(notes).toMatchObject([{ path: 'apiVersion', severity: 'note' }]);
});

it.each([
  ['amd64', 'amd64', []],
  ['arm64', 'arm64', []],
  ['arm64', 'amd64', ['linux/amd64']],
])('platforms are compared with those of the release: %s, %s', (release, image, left) => {
  const { notes } = importImageSet(
    mirror(`platform:
  platforms: [{os: linux, architecture: ${release}}]
  channels: [{name: stable-4.20}]
additionalImages:
- {name: "quay.io/a/b:1", platforms: [{os: linux, architecture: ${image}}]}
`),
    'i.yaml',
  );
  expect(notes.map(({ problem }) => /left out: ([^;]*)/.exec(problem)?.[1])).toEqual(left);
});

it('an image set of v1alpha2 is refused for keys that v2alpha1 does not have', () => {
  const text = `apiVersion: mirror.openshift.io/v1alpha2
kind: ImageSetConfiguration
storageConfig:
  local: {path: /tmp/x}
mirror:
  operators:
  - catalog: quay.io/team/index:v1
    targetName: mine
    originalRef: quay.io/team/original:v1
    packages: [{name: a, minBundle: a.v1, channels: [{name: b, minBundle: a.v1}]}]
`;
  const hints = hintsOf(text);
  expect(hints).toEqual([
    '3 storageConfig: remove it: sealift keeps its state in the work directory',
    '8 mirror.operators[0].targetName: write the path of the copy to "targetCatalog"',
    '9 mirror.operators[0].originalRef: remove it',
    '10 mirror.operators[0].packages[0].minBundle: write the version of that bundle to "minVersion"',
    '10 mirror.operators[0].packages[0].channels[0].minBundle: write the version of that bundle to "minVersion"',
  ]);
});

describe('an image set that oc-mirror refuses is refused with the line', () => {
  it.each([
    ['mirror: {}\n', ['1:1: apiVersion: is required', '1:1: kind: is required']],
    [HEAD, ['1:1: mirror: is required']],
    [
      'apiVersion: mirror.openshift.io/v1beta1\nkind: DeleteImageSetConfiguration\ndelete: {}\n',
      [
        '1:1: mirror: is required',
        '1:13: apiVersion: must be "mirror.openshift.io/v2alpha1", but is "mirror.openshift.io/v1beta1"',
        '2:7: kind: must be "ImageSetConfiguration", but is "DeleteImageSetConfiguration"',
        '3:1: delete: no such key',
      ],
    ],
    [
      mirror('operators: {}\nplatform: {grph: true, graph: 3}'),
      [
        '4:14: mirror.operators: must be a list, but is a mapping',
        '5:14: mirror.platform.grph: no such key',
        '5:33: mirror.platform.graph: must be true or false, but is "3"',
      ],
    ],
    [
      mirror('operators:\n- catalog: quay.io/a/b:1\n- catalog: quay.io/a/b:1\n- full: true'),
      [
        '6:14: mirror.operators[1].catalog: "quay.io/a/b:1" already appears at operators[0]',
        '7:5: mirror.operators[2].catalog: is required',
      ],
    ],
    [
      mirror(`operators:
- catalog: quay.io/a/b:1
  packages:
  - {name: p, minVersion: new}
  - {name: p, channels: [{name: c}, {name: c}]}
  - {name: q, minVersion: "1", channels: [{name: c, maxVersion: v2.0}]}`),
      [
        '7:29: mirror.operators[0].packages[0].minVersion: "new" is not a valid version',
        '8:14: mirror.operators[0].packages[1].name: "p" already appears at operators[0].packages[0].name',
        '8:46: mirror.operators[0].packages[1].channels[1].name: "c" already appears at operators[0].packages[1].channels[0].name',
        '9:7: mirror.operators[0].packages[2]: has versions for itself and for its channels; give them in one place only',
      ],
    ],
    [
      mirror(`platform:
  architectures: [amd64, x86_64]
  platforms: [{os: linux, architecture: amd64}]
  channels: [{name: stable-4.20}, {name: stable-4.20}]
blockedImages: [{name: "("}]`),
      [
        '5:28: mirror.platform.architectures[1]: must be one of amd64, arm64, ppc64le, s390x, multi, but is "x86_64"',
        '6:16: mirror.platform.platforms: "platforms" and "architectures" are mutually exclusive',
        '7:44: mirror.platform.channels[1].name: "stable-4.20" already appears at mirror.platform.channels[0].name',
        '8:26: mirror.blockedImages[0].name: "(" is not a Go regular expression: missing closing ) at character 1',
      ],
    ],
    ['mirror: "', ['1:10: : not valid YAML: a closing quote, bracket, comma or colon is missing']],
    ['- a\n', ['1:1: : must be a mapping']],
  ])('%j', (text, expected) => {
    expect(problemsOf(text)).toEqual(expected);
  });
});

/** What oc-mirror's own end-to-end tests ask of catalogs on disk, by the number of the test. */
const ON_DISK: readonly (readonly [number: string, operators: string])[] = [
  [
    '72942',
    `- catalog: oci:///tmp/case72942/redhat-operator-index
  targetTag: "v15"
  targetCatalog: "catalog"
  packages: [{name: aws-load-balancer-operator}]
- catalog: registry.redhat.io/redhat/redhat-operator-index:v4.15
  packages: [{name: local-storage-operator}]`,
  ],
  [
    '72948',
    `- catalog: oci:///tmp/case72947/redhat-operator-index
  packages:
  - {name: ocs-operator, channels: [{name: stable-4.15, maxVersion: 4.15.0-rhodf}]}
  - {name: devworkspace-operator, minVersion: "0.31.1"}
  - name: quay-operator
    defaultChannel: stable-3.12
    channels: [{name: stable-3.12, minVersion: "3.12.3", maxVersion: "3.12.4"}]
  - {name: multicluster-engine, defaultChannel: stable-2.6, channels: [{name: stable-2.6}]}`,
  ],
  [
    '72949',
    `- catalog: registry.redhat.io/redhat/redhat-marketplace-index:v4.15
  targetCatalog: 72949/redhat-marketplace-index
  targetTag: "v15"
  packages: [{name: aerospike-kubernetes-operator-rhmp}]
- {catalog: "oci:///tmp/case72949/ibm-catalog", targetTag: "v15", targetCatalog: "72949/catalog"}`,
  ],
  [
    '72971',
    `- {catalog: "oci:///tmp/case72971/redhat-operator-index", packages: [{name: dns-operator}]}
- catalog: registry.redhat.io/redhat/redhat-marketplace-index:v4.19
  packages: [{name: aerospike-kubernetes-operator-rhmp}]
- catalog: registry.redhat.io/redhat/certified-operator-index:v4.19
  packages: [{name: nginx-ingress-operator}]`,
  ],
  [
    '72972',
    `- catalog: oci:///tmp/case72972/redhat-operator-index
  packages: [{name: aws-load-balancer-operator}]
- catalog: registry.redhat.io/redhat/redhat-operator-index:v4.15
  packages: [{name: devworkspace-operator}]`,
  ],
  [
    '72982',
    `- catalog: oci:///tmp/case72982/redhat-operator-index
  packages: [{name: aws-load-balancer-operator}]`,
  ],
  ['73124', '- catalog: oci:///tmp/case73124/ibm-catalog'],
  [
    '73377',
    `- {catalog: "oci:///tmp/case73377/ibm-catalog", targetTag: v73377, targetCatalog: case73377/catalog}
- catalog: registry.redhat.io/redhat/redhat-operator-index:v4.15
  packages: [{name: advanced-cluster-management}]`,
  ],
  [
    '73452',
    `- catalog: oci:///tmp/case73452/redhat-operator-index
  targetCatalog: "ocicatalog73452"
  targetTag: "v14"
  packages: [{name: cluster-kube-descheduler-operator}]`,
  ],
  [
    '75422',
    `- catalog: oci:///tmp/case75422/ibm-catalog
- catalog: registry.redhat.io/redhat/redhat-operator-index:v4.19
  packages: [{name: windows-machine-config-operator}]
- catalog: registry.redhat.io/redhat/certified-operator-index:v4.20
  packages: [{name: nvidia-network-operator}]`,
  ],
  [
    '79217',
    `- catalog: oci:///tmp/case79217/redhat-operator-index
  targetCatalog: "ocicatalog73452"
  targetTag: "v16"
  packages: [{name: cluster-kube-descheduler-operator}]`,
  ],
];

describe('a catalog on disk', () => {
  const RELEASE = 'platform: {channels: [{name: stable-4.20}]}\n';

  it.each(ON_DISK)(
    'is imported under the name that test %s of oc-mirror expects',
    (_, operators) => {
      const text = mirror(`${RELEASE}operators:\n${operators}`);
      const { config, notes } = importImageSet(text, 'i.yaml');
      expect(notes).toEqual([]);
      expect(config.operators).toEqual(parse(operators));
    },
  );

  it('is looked up relative to the configuration if its path is relative', () => {
    const text = mirror(`${RELEASE}operators: [{catalog: "oci://catalogs/index"}]`);
    const { config, notes } = importImageSet(text, 'i.yaml');
    expect(config.operators).toEqual([{ catalog: 'oci:catalogs/index' }]);
    expect(notes).toMatchObject([{ path: 'mirror.operators[0].catalog', severity: 'note' }]);
  });
});

describe('any image set', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealift-layout-'));
  const layout = join(folder, 'index');
  mkdirSync(layout);
  writeFileSync(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  afterAll(() => rm(folder, { recursive: true }));
  const mostly = (good: readonly string[], bad: readonly string[]) =>
    fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom(...good) },
      { weight: 1, arbitrary: fc.constantFrom(...bad) },
    );
  const word = mostly(['a', 'b', 'stable', '4.20', 'c d'], ['', ' ', '__proto__', 'yes', '*a']);
  const version = mostly(['1.0', '4.20', 'v2.1.0', '3'], ['', 'new']);
  const target = mostly(['a', 'b', 'one'], ['', 'A b', '/']);
  const image = mostly(
    ['quay.io/a/b:1', 'quay.io/a/c:1', 'quay.io/a/b', 'b', `oci://${layout}`],
    ['', 'a:b:c'],
  );
  const option = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
  const list = <T>(arbitrary: fc.Arbitrary<T>) => option(fc.array(arbitrary, { maxLength: 3 }));
  const range = { minVersion: option(version), maxVersion: option(version) };
  const channels = list(fc.record({ name: word, ...range }));
  const packages = list(
    fc.record({ name: word, defaultChannel: option(word), ...range, channels }),
  );
  const targets = { targetTag: option(target), targetCatalog: option(target) };
  const operators = list(
    fc.record({ catalog: image, full: option(fc.boolean()), ...targets, packages }),
  );
  const additionalImages = list(
    fc.record({ name: image, targetRepo: option(target), targetTag: option(target) }),
  );
  const blockedImages = list(fc.record({ name: mostly(['a', 'a.*', 'b'], ['', '(']) }));
  const platform = option(
    fc.record({
      release: option(fc.constantFrom('quay.io/a/b:4.20.1-x86_64', 'quay.io/a/b:1', 'b')),
      channels: list(fc.record({ name: fc.constantFrom('stable-4.20', 'eus-4.18', 'x') })),
    }),
  );
  const content = fc.record({ platform, operators, additionalImages, blockedImages });

  it('is refused with places, or becomes a configuration that passes our own checks', () => {
    let accepted = 0;
    fc.assert(
      fc.property(content, (mirror) => {
        const text = HEAD + stringify({ mirror });
        if (problemsOf(text).length > 0) return;
        accepted++;
        const { problems } = checkConfig(inputOf(render(text), 'a.yaml'), { env: {} });
        expect(problems).toEqual([]);
      }),
      { numRuns: runs(200) },
    );
    expect(accepted).toBeGreaterThan(20);
  });
});

describe('sealift import imageset', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-import-'));
    await writeFile(join(directory, 'i.yaml'), `archiveSize: 4\n${OVE}`);
  });
  afterEach(() => rm(directory, { recursive: true }));

  async function run(...args: readonly string[]) {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const signal = new AbortController().signal;
    const fixed = { env: {}, redaction, isTTY: false, now: () => 0 };
    const host = { ...fixed, stdout, stderr, cwd: directory, signal };
    const program = new Command('sealift').exitOverride();
    registerImportImageset(program, host);
    await program.parseAsync(['import', 'imageset', ...args], { from: 'user' });
    const read = (stream: PassThrough) => (stream.read() as Buffer | null)?.toString() ?? '';
    return { stdout: read(stdout), stderr: read(stderr) };
  }

  it('prints the configuration on stdout and notes on stderr', async () => {
    const { stdout, stderr } = await run('i.yaml');
    expect(stdout).toContain('# Made from i.yaml. Check it: sealift validate\n');
    expect(checkConfig(inputOf(stdout, 'a.yaml'), { env: {} }).problems).toEqual([]);
    expect(stderr).toBe(
      'i.yaml:1:14: archiveSize: note: sealift makes one ISO, not archives of a given size\n' +
        '  1 | archiveSize: 4\n    |              ^\n',
    );
  });

  it('ends with 9 when settings are lost, after writing the rest', async () => {
    await writeFile(
      join(directory, 'g.yaml'),
      OVE.replace('channels:', 'graph: true\n    channels:'),
    );
    const losses = run('g.yaml', '--output', 'g-out.yaml');
    await expect(losses).rejects.toMatchObject({
      code: 'import.losses',
      exitCode: 9,
      message: 'g.yaml is imported without 1 setting',
    });
    expect(await readFile(join(directory, 'g-out.yaml'), 'utf8')).toContain('version: 4.20.3');
    const { stdout, stderr } = await run('g.yaml', '--allow-losses');
    expect(stdout).toContain('version: 4.20.3');
    expect(stderr).toBe(
      'g.yaml:5:12: mirror.platform.graph: lost: the update graph is not carried on the media\n' +
        '  5 |     graph: true\n    |            ^\n',
    );
  });

  it('prints configuration and notes as data with -o json', async () => {
    const { stdout, stderr } = await run('i.yaml', '-o', 'json');
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toMatchObject({
      config: { ocpRelease: { version: '4.20.3', channel: 'stable' } },
      notes: [{ file: 'i.yaml', line: 1, column: 14, path: 'archiveSize', isLoss: false }],
    });
  });

  it('writes a file that only its owner can read with --output, and never overwrites one', async () => {
    const { stdout } = await run('i.yaml', '--output', 'a.yaml');
    expect(stdout).toMatch(/^wrote a\.yaml\n/);
    const path = join(directory, 'a.yaml');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readFile(path, 'utf8')).toContain('version: 4.20.3');
    await writeFile(path, 'mine');
    await expect(run('i.yaml', '--output', 'a.yaml')).rejects.toMatchObject({
      code: 'output.exists',
    });
    expect(await readFile(path, 'utf8')).toBe('mine');
  });
});
