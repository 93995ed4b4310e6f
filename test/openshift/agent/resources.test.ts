import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { TEST_SSH_KEY } from '../../support/installation-iso.ts';
import { ConfigProblems } from '../../../src/base/errors.ts';
import { readHosts } from '../../../src/openshift/agent/bare-metal.ts';
import { parseResources, type Resource } from '../../../src/openshift/agent/resources.ts';
import {
  readResourceValues,
  type ValuesOfResources,
} from '../../../src/openshift/agent/read-resources.ts';

const read = (...documents: readonly unknown[]): ValuesOfResources => readText(format(documents));
const readText = (text: string, hasPullSecret = false): ValuesOfResources =>
  readResourceValues(parseResources(text, 'a.yaml'), { hasPullSecret });
const format = (documents: readonly unknown[]): string =>
  documents.map((document) => stringify(document, { version: '1.1' })).join('---\n');

const infraEnv = (spec: object = {}, metadata: object = {}): object => ({
  apiVersion: 'agent-install.openshift.io/v1beta1',
  kind: 'InfraEnv',
  metadata: { name: 'site', ...metadata },
  spec,
});
const network = (name: string, labels: object, metadata: object = {}): object => ({
  kind: 'NMStateConfig',
  metadata: { name, labels, ...metadata },
  spec: {
    config: { interfaces: [{ name }] },
    interfaces: [{ name, macAddress: '52:54:00:00:00:01' }],
  },
});
const secret = (members: object, metadata: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'pull', ...metadata },
  ...members,
});
const map = (name: string, data: object): object => ({
  kind: 'ConfigMap',
  metadata: { name },
  data,
});
const install = (spec: object): object => ({
  kind: 'AgentClusterInstall',
  metadata: { name: 'cluster' },
  spec,
});
const imageSet = (name: string, spec: object): object => ({
  kind: 'ClusterImageSet',
  metadata: { name },
  spec,
});

const REF = { pullSecretRef: { name: 'pull' } };
const PULL = '{"auths":{"r.io":{"auth":"dTpw"}}}';
const OTHER = '{"auths":{"r.io":{"auth":"dTpx"}}}';
const LINES = Buffer.from(PULL).toString('base64').replaceAll(/.{20}/g, '$&\n');
const DATA = { data: { '.dockerconfigjson': Buffer.from(PULL).toString('base64') } };
const HOSTS = [network('a', { site: 'x', rack: '1' }), network('b', { site: 'y' })];

/** What a selector takes of HOSTS, as `kubectl get --selector` would. */
const select = (selector: object): readonly string[] =>
  (read(infraEnv({ nmStateConfigLabelSelector: selector }), ...HOSTS).values.hosts ?? []).flatMap(
    ({ interfaces }) => interfaces.map(({ name }) => name),
  );

describe('custom resources', () => {
  it('have SSH keys as they are written, without carriage returns', () => {
    const [a, b] = [TEST_SSH_KEY, `${TEST_SSH_KEY}.org`];
    const text = `kind: InfraEnv\nspec:\n  sshAuthorizedKey: |\n    ${a}\n    ${b}\n`;
    const keys = `${a}\n${b}\n`;
    expect(readText(text).values.sshKeys).toEqual([keys]);
    expect(
      read(infraEnv({ sshAuthorizedKey: keys.replaceAll('\n', '\r\n') })).values.sshKeys,
    ).toEqual([keys]);
  });

  it.each<[object, readonly string[]]>([
    [{ matchLabels: { site: 'x' } }, ['a']],
    [{ matchExpressions: [{ key: 'site', operator: 'In', values: ['x', 'y'] }] }, ['a', 'b']],
    [{ matchExpressions: [{ key: 'site', operator: 'NotIn', values: ['x'] }] }, ['b']],
    [{ matchExpressions: [{ key: 'rack', operator: 'NotIn', values: ['2'] }] }, ['a', 'b']],
    [{ matchExpressions: [{ key: 'rack', operator: 'Exists' }] }, ['a']],
    [{ matchExpressions: [{ key: 'rack', operator: 'DoesNotExist' }] }, ['b']],
    [
      {
        matchLabels: { rack: '1' },
        matchExpressions: [{ key: 'site', operator: 'In', values: ['x', 'y'] }],
      },
      ['a'],
    ],
    [{}, []],
  ])('select networks with %j', (selector, names) => {
    expect(select(selector)).toEqual(names);
  });

  it('bring a warning for networks that are not selected and for missing ones', () => {
    const selector = { nmStateConfigLabelSelector: { matchLabels: { site: 'x' } } };
    expect(read(infraEnv(selector), ...HOSTS).warnings).toEqual([
      'NMStateConfig "b" of a.yaml is not selected by the InfraEnv and is ignored',
    ]);
    expect(read(infraEnv(selector)).warnings).toEqual([
      expect.stringContaining('the resources have none'),
    ]);
    expect(read(...HOSTS).values.hosts).toHaveLength(2);
  });

  it.each<[string, object, string]>([
    ['data', DATA, PULL],
    ['data on several lines', { data: { '.dockerconfigjson': LINES } }, PULL],
    ['stringData', { stringData: { '.dockerconfigjson': PULL } }, PULL],
    ['stringData before data', { ...DATA, stringData: { '.dockerconfigjson': OTHER } }, OTHER],
  ])('have the pull secret in %s of the Secret', (_, members, expected) => {
    expect(read(secret(members), infraEnv(REF)).values.pullSecret).toBe(expected);
  });

  it('may lack the Secret if a pull secret is given otherwise', () => {
    const { values } = readText(format([infraEnv(REF)]), true);
    expect(values.pullSecret).toBeUndefined();
  });

  it('have the manifests that an AgentClusterInstall names, or all', () => {
    const maps = [map('one', { 'a.yaml': 'kind: A\n' }), map('two', { 'b.yaml': 'kind: B\n' })];
    const namesOf = ({ values }: ValuesOfResources): readonly string[] =>
      (values.manifests ?? []).map(({ name }) => name);
    expect(namesOf(read(...maps))).toEqual(['a-0.yaml', 'b-0.yaml']);
    const refs = { manifestsConfigMapRefs: [{ name: 'two' }] };
    expect(namesOf(read(...maps, install(refs)))).toEqual(['b-0.yaml']);
    const old = { manifestsConfigMapRef: { name: 'one' } };
    expect(namesOf(read(...maps, install(old)))).toEqual(['a-0.yaml']);
  });

  it('have the release of the image set that an AgentClusterInstall names', () => {
    const sets = [
      imageSet('old', { releaseImage: 'q.io/r:1' }),
      imageSet('new', { releaseImage: 'q.io/r:2' }),
    ];
    const refs = { imageSetRef: { name: 'new' } };
    expect(read(...sets, install(refs)).values.releaseImage).toBe('q.io/r:2');
  });

  it('have a release that is a reference, or are refused with its line', () => {
    const refused = () => read(imageSet('new', { releaseImage: 'ocp-release:4.22' }));
    expect(refused).toThrow(
      /^a\.yaml:\d+: spec\.releaseImage of the ClusterImageSet names no registry/,
    );
  });

  it('of other kinds and other groups are named in a warning and ignored', () => {
    const other = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd' } };
    const foreign = { apiVersion: 'example.com/v1', kind: 'Secret', metadata: { name: 's' } };
    expect(read(other, foreign)).toEqual({
      values: {},
      warnings: [
        'Deployment "d" of a.yaml has no place on the medium and is ignored',
        'Secret of example.com/v1 "s" of a.yaml has no place on the medium and is ignored',
      ],
    });
  });
});

const SELECTOR = { matchLabels: { site: 'z' } };
const expressions = (matchExpressions: unknown): object =>
  infraEnv({ nmStateConfigLabelSelector: { matchExpressions } });

describe('custom resources are refused', () => {
  it.each<[string, readonly unknown[], RegExp]>([
    ['with two InfraEnvs', [infraEnv(), infraEnv({}, { name: 'b' })], /2 resources of kind Inf/],
    ['without the Secret', [infraEnv(REF)], /Secret "pull", which pullSecretRef .* not among/],
    [
      'with the Secret of another namespace',
      [infraEnv(REF, { namespace: 'a' }), secret(DATA, { namespace: 'b' })],
      /Secret "pull".* not among/,
    ],
    [
      'with a Secret of something else',
      [infraEnv(REF), secret({ data: { a: 'Yg==' } })],
      /lacks .docker/,
    ],
    [
      'with labels that select nothing',
      [infraEnv({ nmStateConfigLabelSelector: SELECTOR }), ...HOSTS],
      /selects none of NMStateConfig "a".*"site":"z".*"site":"x"/,
    ],
    [
      'with networks of another namespace',
      [
        infraEnv(
          { nmStateConfigLabelSelector: { matchLabels: { site: 'x' } } },
          { namespace: 'a' },
        ),
        network('n', { site: 'x' }, { namespace: 'b' }),
      ],
      /selects none/,
    ],
    ['with an operator that is not known', [expressions([{ key: 'a', operator: 'Is' }])], /"Is"/],
    [
      'with an operator that every object of JavaScript has',
      [expressions([{ key: 'a', operator: 'constructor' }])],
      /"constructor"/,
    ],
    [
      'with an operator without values',
      [expressions([{ key: 'a', operator: 'In' }])],
      /has no values for In/,
    ],
    [
      'with both lists of time servers',
      [infraEnv({ ntpSources: ['a'], additionalNTPSources: ['b'] })],
      /both spec.ntpSources/,
    ],
    [
      'with an operation on kernel arguments that is not known',
      [infraEnv({ kernelArguments: [{ operation: 'replace', value: 'a' }] })],
      /"replace"/,
    ],
    [
      'without a ConfigMap',
      [install({ manifestsConfigMapRefs: [{ name: 'gone' }] })],
      /ConfigMap "gone", which manifestsConfigMapRefs .* not among/,
    ],
    [
      'without the ClusterImageSet',
      [install({ imageSetRef: { name: 'b' } }), imageSet('a', { releaseImage: 'q' })],
      /ClusterImageSet "b", which imageSetRef/,
    ],
    ['with a ClusterImageSet of no release', [imageSet('a', {})], /lacks spec.releaseImage/],
    [
      'with two ClusterImageSets',
      [imageSet('a', { releaseImage: 'q' }), imageSet('b', { releaseImage: 'r' })],
      /2 resources of kind ClusterImageSet/,
    ],
    ['with a network without addresses', [{ ...network('a', {}), spec: {} }], /lacks spec.config/],
  ])('%s', (_, documents, message) => {
    expect(() => read(...documents)).toThrow(
      expect.objectContaining({
        code: 'customize.resource',
        message: expect.stringMatching(message) as unknown,
      }),
    );
  });

  it.each<[string, string]>([
    ['a bomb of aliases', bomb()],
    ['deep nesting', `kind: InfraEnv\na: ${'['.repeat(20_000)}`],
    ['half a document', 'kind: InfraEnv\nspec: {a: ['],
    ['a list', '- kind: InfraEnv\n'],
    ['no kind', 'spec: {}\n'],
    ['a key twice', 'kind: InfraEnv\nkind: Secret\n'],
  ])('as %s', (_, text) => {
    expect(() => readText(text)).toThrow(expect.objectContaining({ code: 'manifest.malformed' }));
  });
});

/** Problems of a text as `file:line path: problem; hint`. */
function problemsOf(text: string): readonly string[] {
  try {
    readText(text);
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    return error.problems.map(
      ({ file, line, path, problem, hint = '' }) => `${file}:${line} ${path}: ${problem}; ${hint}`,
    );
  }
  return [];
}

const spec = (...lines: readonly string[]): string =>
  [
    'kind: InfraEnv',
    'metadata: { name: site }',
    'spec:',
    ...lines.map((line) => `  ${line}`),
    '',
  ].join('\n');

describe('a custom resource is read strictly', () => {
  it.each<[string, string, string]>([
    [
      'a misspelt member',
      spec('sshAuthorizedKeys: "ssh-ed25519 AAAA a"'),
      'a.yaml:4 spec.sshAuthorizedKeys: unknown field "sshAuthorizedKeys"; did you mean "sshAuthorizedKey"?',
    ],
    [
      'a proxy that is a text',
      spec('proxy: http://a'),
      'a.yaml:4 spec.proxy: cannot unmarshal string into a field of type object; ',
    ],
    [
      'keys that are a list',
      spec('sshAuthorizedKey: [a]'),
      'a.yaml:4 spec.sshAuthorizedKey: cannot unmarshal array into a field of type string; ',
    ],
    [
      'a word that an enumeration lacks',
      spec('kernelArguments:', '- operation: add', '  value: quiet'),
      'a.yaml:5 spec.kernelArguments[0].operation: must be one of "append", "replace", "delete", but is "add"; ',
    ],
    [
      'a number without quotes',
      spec('osImageVersion: 4.20'),
      'a.yaml:4 spec.osImageVersion: is read as 4.2 and not as a text; write it in quotes',
    ],
    [
      'a label that is true without quotes',
      'kind: NMStateConfig\nmetadata:\n  name: a\n  labels:\n    site: y\nspec: { config: {}, interfaces: [] }\n',
      'a.yaml:5 metadata.labels.site: is read as true and not as a text; write it in quotes',
    ],
    [
      'a manifest that is an object, in the second document',
      'kind: InfraEnv\n---\nkind: ConfigMap\ndata:\n  a.yaml:\n    kind: A\n',
      'a.yaml:6 data.a.yaml: cannot unmarshal object into a field of type string; ',
    ],
    [
      'a member of a host',
      'kind: BareMetalHost\nspec:\n  bootMacAddres: 52:54:00:00:00:01\n',
      'a.yaml:3 spec.bootMacAddres: unknown field "bootMacAddres"; did you mean "bootMACAddress"?',
    ],
    [
      'data of a Secret that is not base64',
      'kind: Secret\ndata:\n  .dockerconfigjson: "{}"\n',
      'a.yaml:3 data..dockerconfigjson: is not base64; encode it, or use stringData',
    ],
    [
      'an item of a List',
      'apiVersion: v1\nkind: List\nitems:\n- kind: InfraEnv\n  spec: { prox: {} }\n',
      'a.yaml (item 0 of a List):1 spec.prox: unknown field "prox"; did you mean "proxy"?',
    ],
  ])('and refused for %s', (_, text, problem) => {
    expect(problemsOf(text)).toEqual([problem]);
  });

  it('with all of its problems at once', () => {
    expect(problemsOf(spec('proxy: 5', 'ntpSource: [a]', 'agentLabels: [a]'))).toHaveLength(3);
  });

  it.each(['e12', 'e7', '12:30', '1-2', '0x', 'yEs', '2021-01-01', '"1"', "'y'"])(
    'and takes the text %s as it is written',
    (written) => {
      const { values } = readText(spec('agentLabels:', `  site: ${written}`));
      expect(values.infraEnv?.spec?.['agentLabels']).toEqual({
        site: written.replaceAll(/['"]/g, ''),
      });
    },
  );

  it('and takes members by any case, as Go does', () => {
    const { values } = readText(spec(`SSHAuthorizedKey: ${TEST_SSH_KEY}`));
    expect(values.sshKeys).toEqual([TEST_SSH_KEY]);
  });

  it('and has the name of its architecture that RPM has', () => {
    const { values } = readText(spec('cpuArchitecture: arm64'));
    expect(values.infraEnv?.spec).toEqual({ cpuArchitecture: 'aarch64' });
  });

  it('and taken out of a List', () => {
    const items = [infraEnv({ sshAuthorizedKey: TEST_SSH_KEY }), ...HOSTS];
    const { values } = read({ apiVersion: 'v1', kind: 'List', items });
    expect(values.sshKeys).toEqual([TEST_SSH_KEY]);
  });

  it('and members without effect on a medium are named', () => {
    const { warnings: others } = read(install({ sshPublicKey: 'a', manifestsConfigMapRefs: [] }));
    expect(others).toEqual([
      'spec.sshPublicKey of the AgentClusterInstall has no effect on the medium',
    ]);
    const { warnings } = readText(spec('agentLabels: { a: b }', 'imageType: full-iso'));
    expect(warnings).toEqual([
      'spec.agentLabels, spec.imageType of the InfraEnv have no effect on the medium',
    ]);
  });
});

describe('time servers of an InfraEnv', () => {
  it('are added to those of the medium, or replace them', () => {
    expect(readText(spec('additionalNTPSources: [a.example]')).values).toMatchObject({
      ntpSources: ['a.example'],
    });
    const { values, warnings } = readText(spec('ntpSources: [a.example]'));
    expect(values.exclusiveNtpSources).toEqual(['a.example']);
    expect(values.ntpSources).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(/^spec.ntpSources .* exclusive time servers/)]);
  });
});

const host = (
  annotations: object,
  more: object = { bootMACAddress: '52:54:00:00:00:01' },
): object => ({
  apiVersion: 'metal3.io/v1alpha1',
  kind: 'BareMetalHost',
  metadata: { name: 'h', annotations },
  spec: { online: true, ...more },
});
const OF_HOST = 'bmac.agent-install.openshift.io/';
const overridden = (text: string): object => ({
  ...install({}),
  metadata: {
    name: 'cluster',
    annotations: { 'agent-install.openshift.io/install-config-overrides': text },
  },
});

describe('annotations of hosts and clusters', () => {
  it('give a host its name', () => {
    const { values, warnings } = read(host({ [`${OF_HOST}hostname`]: 'a.example' }));
    expect(values.hostnames).toEqual([{ macAddress: '52:54:00:00:00:01', name: 'a.example' }]);
    expect(warnings).toEqual([]);
  });

  it.each<[string, object]>([
    [`${OF_HOST}installer-args of BareMetalHost`, host({ [`${OF_HOST}installer-args`]: '["-n"]' })],
    [
      `${OF_HOST}ignition-config-overrides of BareMetalHost`,
      host({ [`${OF_HOST}ignition-config-overrides`]: '{"ignition":{"version":"3.1.0"}}' }),
    ],
    [`${OF_HOST}hostname of BareMetalHost`, host({ [`${OF_HOST}hostname`]: 'a' }, {})],
    [
      'agent-install.openshift.io/other of AgentClusterInstall',
      { ...install({}), metadata: { annotations: { 'agent-install.openshift.io/other': '' } } },
    ],
  ])('are named without a place on the medium: %s', (name, resource) => {
    expect(read(resource).warnings[0]).toMatch(`annotation ${name}`);
    expect(read(resource).warnings[0]).toMatch('has no place on the medium');
  });

  it('give overrides of install-config, and a guess for members that it lacks', () => {
    expect(read(overridden('{"fips":true}'))).toEqual({
      values: { installOverrides: '{"fips":true}' },
      warnings: [],
    });
    expect(read(overridden('{"Fips":true,"networkin":{}}')).warnings).toEqual([
      expect.stringMatching(
        / has "networkin" \(did you mean "?networking"?\?\): assisted-service refuses/,
      ),
    ]);
  });

  it('are read once for each of 10,000 hosts', () => {
    let reads = 0;
    const hosts = Array.from({ length: 10_000 }, (_, at): Resource => {
      const annotations = { [`${OF_HOST}hostname`]: `h${at}` };
      return {
        get name() {
          reads += 1;
          return `h${at}`;
        },
        kind: 'BareMetalHost',
        namespace: undefined,
        labels: {},
        spec: { bootMACAddress: '52:54:00:00:00:01' },
        value: { metadata: { annotations } },
        file: 'a.yaml',
        placeOf: () => 'a.yaml:1',
      };
    });
    const { hostnames, warnings } = readHosts(hosts);
    expect([hostnames.length, warnings.length]).toEqual([10_000, 0]);
    expect(reads).toBeLessThan(50_000);
  });

  it('are named with the reason where a medium cannot give them to one host', () => {
    const args = '["--append-karg","console=ttyS0","-n","--save-partlabel","data*"]';
    expect(read(host({ [`${OF_HOST}installer-args`]: args })).warnings[0]).toMatch(
      /is ignored: only a hub gives it to a host; a MachineConfig among the manifests/,
    );
  });

  it.each<[string, object]>([
    ['has the flag "--append-kargs"', host({ [`${OF_HOST}installer-args`]: '["--append-kargs"]' })],
    ['has characters in "a b"', host({ [`${OF_HOST}installer-args`]: '["--image-url","a b"]' })],
    ['has more than 64 levels', overridden('{"a":'.repeat(20_000) + '1' + '}'.repeat(20_000))],
    ['is not a JSON list of strings', host({ [`${OF_HOST}installer-args`]: '[1]' })],
    ['is not JSON', host({ [`${OF_HOST}installer-args`]: '-n' })],
    ['is not an Ignition config', host({ [`${OF_HOST}ignition-config-overrides`]: '{}' })],
    ['is not a JSON object', overridden('[]')],
    ['has "networking" twice', overridden('{"networking":{},"networking":{"a":1}}')],
    ['is not the name of a host', host({ [`${OF_HOST}hostname`]: '../a' })],
    ['is not XX:XX', host({ [`${OF_HOST}hostname`]: 'a' }, { bootMACAddress: '../../root' })],
  ])('are refused if their text %s', (message, resource) => {
    expect(() => read(resource)).toThrow(message);
  });
});

/** Ten to the ninth texts in a few lines. */
function bomb(): string {
  const lines = Array.from({ length: 9 }, (_, at) => {
    const inner = at === 0 ? '"x"' : `*a${at - 1}`;
    return `a${at}: &a${at} [${Array.from({ length: 10 }, () => inner).join(', ')}]`;
  });
  return ['kind: InfraEnv', ...lines, ''].join('\n');
}
