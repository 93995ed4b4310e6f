import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import {
  formatDefaultSourceName,
  formatManifest,
  planCustomResources,
  planExtraManifests,
} from '../../../src/openshift/node/manifests.ts';
import { formatNodeRegistriesConf } from '../../../src/openshift/node/mirror-sets.ts';

const plan = (text: string, useDefaultSourceNames = false, name = 'a.yaml') =>
  planExtraManifests([{ name, text }], { useDefaultSourceNames });

describe('planExtraManifests', () => {
  it('puts each document in its own file, and omits empty ones', () => {
    const text = '---\nkind: A\n---\n---\n# nothing\n---\n  kind: B\n  x: y';
    expect(plan(text, false, '99-x.yml')).toEqual([
      { name: '99-x-0.yml', text: 'kind: A\n' },
      { name: '99-x-1.yml', text: '  kind: B\n  x: y\n' },
    ]);
  });

  it('keeps values as they are written: Kubernetes reads YAML 1.1', () => {
    const text =
      'kind: A\nmode: 0644\nyes: on\nversion: "4.20"\nat: 2026-01-02T10:00:00Z\nports: [8080:80]\nempty:\nlong: >-\n  a\n  b\n';
    expect(plan(text)[0]?.text).toBe(text);
  });

  it.each([
    ['data:\n  port: 8080\n', 'a.yaml:7: data.port of the ConfigMap is a number, not a text'],
    ['data:\n  on: yes\n', 'a.yaml:7: data.on of the ConfigMap is a boolean, not a text'],
    ['data: {a: {b: c}}\n', 'a.yaml:6: data.a of the ConfigMap is not a text: write it as a block'],
    ['binaryData: {a: "a b="}\n', 'a.yaml:6: binaryData.a of the ConfigMap is not base64'],
    ['data: {a: b}\nbinaryData: {a: aGk=}\n', 'binaryData.a of the ConfigMap is in data, too'],
    ['data: {a/b: c}\n', 'data.a/b of the ConfigMap has a key of other characters than'],
    ['data: [a]\n', 'a.yaml:6: data of the ConfigMap is not a mapping'],
  ])('refuses what the API of the cluster would refuse: %j', (members, problem) => {
    const text = `kind: A\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n${members}`;
    expect(() => plan(text)).toThrow(problem);
    expect(() => planCustomResources([{ name: 'a.yaml', text }])).toThrow(problem);
  });

  it('refuses a Secret without its value, and takes stringData over data and empty values', () => {
    const secret = (members: string) => plan(`apiVersion: v1\nkind: Secret\n${members}\n`);
    expect(() => secret('data: {key: hunter2}')).toThrow(
      /^manifest a\.yaml:3: data\.key of the Secret is not base64$/,
    );
    expect(secret('data: {key: aGk=, empty: }\nstringData: {key: hunter2}')).toHaveLength(1);
    expect(plan('apiVersion: example.com/v1\nkind: Secret\ndata: {key: 5}\n')).toHaveLength(1);
  });

  it('refuses a List, which no cluster applies', () => {
    expect(() => plan('apiVersion: v1\nkind: List\nitems: []\n')).toThrow(
      'manifest a.yaml:1: a List is not applied by any cluster',
    );
  });

  it('leaves out ClusterCatalogs, but not objects that only mention them', () => {
    const text = 'kind: ClusterCatalog\n---\nkind: ConfigMap\ndata: {note: ClusterCatalog}\n';
    expect(plan(text).map(({ name }) => name)).toEqual(['a-1.yaml']);
  });

  it('renames CatalogSources when asked, and keeps the rest of them', () => {
    const text =
      'kind: CatalogSource\nmetadata:\n  name: cs-certified-operator-index-v4-19\n' +
      'spec:\n  grpcPodConfig:\n    memoryTarget: 30Mi\n';
    expect(plan(text)[0]?.text).toBe(text);
    expect(plan(text, true)[0]?.text).toBe(
      text.replace('cs-certified-operator-index-v4-19', 'certified-operators'),
    );
  });

  it.each([
    ['cs-redhat-operator-index-v4-19', 'redhat-operators'],
    ['cs-community-operator-index-latest', 'community-operators'],
    ['cs-acme-foo-operator-index-v1', 'foo-operators'],
    ['cs-redhat-marketplace-index-v4-14', 'cs-redhat-marketplace-index-v4-14'],
    ['cs-my-operator-catalog-v1', 'cs-my-operator-catalog-v1'],
  ])('renames %s to %s', (name, expected) => {
    expect(formatDefaultSourceName(name)).toBe(expected);
  });

  it('refuses two versions of a catalog that would get one name', () => {
    const source = (version: string): string =>
      `kind: CatalogSource\nmetadata: {name: cs-redhat-operator-index-${version}, namespace: m}\n`;
    expect(() => plan(`${source('v4-19')}---\n${source('v4-20')}`, true)).toThrow(
      'manifest "CatalogSource m/redhat-operators" appears more than once',
    );
  });

  it('refuses files of the same name', () => {
    const source = { name: 'a.yaml', text: 'kind: A\n' };
    expect(() => planExtraManifests([source, source], { useDefaultSourceNames: false })).toThrow(
      'manifest "a-0.yaml" appears more than once',
    );
  });

  it.each([
    ['kind: [', 'document 0 of manifest a.yaml is not YAML'],
    ['- kind: A', 'document 0 of manifest a.yaml is not an object'],
    ['kind: A\n---\nmetadata: {}', 'document 1 of manifest a.yaml has no kind'],
    ['kind: 3', 'document 0 of manifest a.yaml has no kind'],
  ])('refuses %j', (text, message) => {
    expect(() => plan(text)).toThrow(message);
  });

  it('never quotes a manifest that it cannot read', () => {
    const text = 'kind: Secret\nstringData: {password: geheim: x}\n';
    expect(() => plan(text)).toThrow(/^(?!.*geheim)document 0 of manifest a.yaml is not YAML/);
  });
});

describe('planCustomResources', () => {
  it('finds the namespace of each resource, if it has one', () => {
    const text = 'kind: A\nmetadata: {name: a, namespace: ns}\n---\nkind: B\nmetadata: {name: b}\n';
    const resources = planCustomResources([{ name: 'x.yaml', text }]);
    expect(resources.map(({ name, namespace }) => [name, namespace])).toEqual([
      ['x-0.yaml', 'ns'],
      ['x-1.yaml', undefined],
    ]);
  });
});

describe('formatManifest', () => {
  it('sorts keys and quotes strings that YAML 1.1 would not read as strings', () => {
    const object = { kind: 'A', apiVersion: 'v1', data: { b: '0644', a: 'yes', c: '1_000' } };
    const text = formatManifest(object);
    expect(text).toMatch(/^apiVersion: v1\ndata:\n {2}a: "yes"\n {2}b: "0644"\n {2}c: "1_000"\n/);
    expect(parse(text, { version: '1.1' })).toEqual(object);
  });
});

describe('formatNodeRegistriesConf', () => {
  const release = {
    source: 'quay.io/openshift-release-dev/ocp-v4.0-art-dev',
    mirrors: ['openshift/release'],
    set: 'release',
    by: 'digest',
  } as const;
  const others = [
    { source: 'registry.redhat.io/rhel9', mirrors: ['rhel9'], set: 'operator', by: 'digest' },
    {
      source: 'registry.redhat.io/rhel9',
      mirrors: ['rhel9', 'other/rhel9'],
      set: 'generic',
      by: 'tag',
    },
  ] as const;

  it('sends hosts to their registry and then to the upgrade ISO', () => {
    expect(formatNodeRegistriesConf([release], { interactive: false })).toBe(
      `unqualified-search-registries = []

[[registry]]
  location = "quay.io/openshift-release-dev/ocp-v4.0-art-dev"
  prefix = ""

  [[registry.mirror]]
    location = "registry.appliance.openshift.com:22625/openshift/release"

  [[registry.mirror]]
    location = "registry.appliance.openshift.com:5001/openshift/release"
`,
    );
  });

  it('sends hosts of the interactive flow only to localhost, with each source in one table', () => {
    expect(formatNodeRegistriesConf(others, { interactive: true })).toBe(
      `unqualified-search-registries = []

[[registry]]
  location = "registry.redhat.io/rhel9"
  prefix = ""

  [[registry.mirror]]
    location = "localhost:22625/rhel9"

  [[registry.mirror]]
    location = "localhost:22625/other/rhel9"
`,
    );
  });
});
