import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Digest } from '../../../src/base/digest.ts';
import { planDestination } from '../../../src/openshift/mirror/sets.ts';
import { planMirrors } from '../../../src/openshift/mirror/mirrors.ts';
import {
  renderCatalogResources,
  renderClusterCatalogs,
} from '../../../src/openshift/node/catalogs.ts';
import { planExtraManifests } from '../../../src/openshift/node/manifests.ts';
import {
  renderLocalRegistryMirror,
  renderMirrorSets,
  renderSignatureConfigMap,
  formatNodeRegistriesConf,
} from '../../../src/openshift/node/mirror-sets.ts';
import { parseReference } from '../../../src/registry/reference.ts';

const NODE = 'localhost:22625';
const DIGEST: Digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

function imageOf(
  name: string,
  category: 'release' | 'operator' | 'generic',
  more: { readonly to?: string; readonly kind?: 'release-image' | 'catalog' } = {},
) {
  const source = parseReference(name);
  const destination = planDestination(source, more.to === undefined ? {} : { repository: more.to });
  return { source, destination, category, kind: more.kind };
}

/** What an OVE medium carries, a few images of each kind. */
const OVE = [
  imageOf(`quay.io/openshift-release-dev/ocp-release@${DIGEST}`, 'release', {
    to: 'openshift/release-images',
    kind: 'release-image',
  }),
  imageOf(`quay.io/openshift-release-dev/ocp-v4.0-art-dev@${DIGEST}`, 'release', {
    to: 'openshift/release',
  }),
  imageOf(`registry.redhat.io/container-native-virtualization/virt-api@${DIGEST}`, 'operator'),
  imageOf(`registry.redhat.io/container-native-virtualization/virt-handler@${DIGEST}`, 'operator'),
  imageOf(`registry.redhat.io/rhel9/support-tools@${DIGEST}`, 'operator'),
  imageOf('registry.redhat.io/redhat/redhat-operator-index:v4.21', 'operator', {
    kind: 'catalog',
  }),
  imageOf('registry.redhat.io/rhel9/support-tools:latest', 'generic'),
];

const indexOf = (name: string, tag: string) => ({
  name,
  source: parseReference(name),
  destination: { repository: parseReference(name).repository, tag },
});
const REDHAT = indexOf('registry.redhat.io/redhat/redhat-operator-index:v4.21', 'v4.21');

describe('the resources of an OVE selection', () => {
  const mirrors = planMirrors(OVE);

  it('tell the cluster of release, operators and other images apart', () => {
    const texts = renderMirrorSets(mirrors, [NODE]).map(({ name, text }) => `# ${name}\n${text}`);
    expect(texts.join('---\n')).toBe(`# idms-release-0.yaml
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata:
  name: idms-release-0
spec:
  imageDigestMirrors:
    - mirrors:
        - localhost:22625/openshift/release-images
      source: quay.io/openshift-release-dev/ocp-release
    - mirrors:
        - localhost:22625/openshift/release
      source: quay.io/openshift-release-dev/ocp-v4.0-art-dev
---
# idms-operator-0.yaml
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata:
  name: idms-operator-0
spec:
  imageDigestMirrors:
    - mirrors:
        - localhost:22625/container-native-virtualization
      source: registry.redhat.io/container-native-virtualization
    - mirrors:
        - localhost:22625/rhel9
      source: registry.redhat.io/rhel9
---
# itms-generic-0.yaml
apiVersion: config.openshift.io/v1
kind: ImageTagMirrorSet
metadata:
  name: itms-generic-0
spec:
  imageTagMirrors:
    - mirrors:
        - localhost:22625/rhel9
      source: registry.redhat.io/rhel9
`);
  });

  it('name the same sources as registries.conf of the nodes', () => {
    const conf = formatNodeRegistriesConf(mirrors, { interactive: true });
    const locations = [...conf.matchAll(/^ {2}location = "(.*)"$/gm)].map(([, name]) => name);
    expect(locations).toEqual([...new Set(mirrors.map(({ source }) => source))]);
  });

  it('name the catalog as consoles and scripts expect', () => {
    const [manifest, ...more] = renderCatalogResources({
      catalogs: [REDHAT],
      registry: NODE,
      useDefaultSourceNames: true,
    });
    expect(more).toEqual([]);
    expect(manifest?.name).toBe('cs-redhat-operator-index-v4-21.yaml');
    expect(manifest?.text).toBe(`apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: redhat-operators
  namespace: openshift-marketplace
spec:
  image: localhost:22625/redhat/redhat-operator-index:v4.21
  sourceType: grpc
`);
  });

  it('become extra manifests unchanged, except ClusterCatalogs', () => {
    const catalogs = { catalogs: [REDHAT], registry: NODE, useDefaultSourceNames: true };
    const sources = renderCatalogResources(catalogs);
    const manifests = planExtraManifests([...sources, ...renderClusterCatalogs(catalogs)], {
      useDefaultSourceNames: true,
    });
    expect(manifests.map(({ name }) => name)).toEqual(['cs-redhat-operator-index-v4-21-0.yaml']);
    expect(manifests[0]?.text).toContain('name: redhat-operators\n');
  });
});

describe('the name of a CatalogSource', () => {
  const nameOf = (catalog: Parameters<typeof renderCatalogResources>[0]['catalogs'][number]) => {
    const [manifest] = renderCatalogResources({
      catalogs: [catalog],
      registry: NODE,
      useDefaultSourceNames: false,
    });
    const { metadata, spec } = parse(manifest?.text ?? '') as {
      readonly metadata: { readonly name: string };
      readonly spec: { readonly image: string };
    };
    return [metadata.name, spec.image];
  };

  it.each([
    ['v4.21', 'cs-my-index-v4-21'],
    ['LATEST_x', 'cs-my-index-latest-x'],
    ['v4.21-2026-11-21', 'cs-my-index-v4-21-2026-1'],
  ])('ends with the first characters of the tag %s', (tag, expected) => {
    expect(nameOf(indexOf(`quay.io/team/my.index:${tag}`, tag))).toEqual([
      expected,
      `${NODE}/team/my.index:${tag}`,
    ]);
  });

  it('ends with the digest if the configuration has no tag', () => {
    const tag = `sha256-${'0123456789abcdef'.repeat(4)}`;
    const catalog = indexOf(`quay.io/team/index@${DIGEST}`, tag);
    const served: Digest = `sha256:${'b'.repeat(64)}`;
    expect(nameOf({ ...catalog, digest: served })).toEqual([
      'cs-index-0123456789ab',
      `${NODE}/team/index@${served}`,
    ]);
    expect(nameOf(catalog)[1]).toBe(`${NODE}/team/index:${tag}`);
  });

  it('follows the tag that the configuration gives to the copy', () => {
    expect(nameOf(indexOf(`quay.io/team/index@${DIGEST}`, 'mine'))[0]).toBe('cs-index-mine');
  });

  it.each(['cs', 'cc'])('has at most 63 characters, the last a hash (%s)', (prefix) => {
    const long = 'a-company-with-a-long-name-and-its-own-operator-catalog';
    const catalogs = [long, `${long}-of-tests`, `other/${long}`].map((path) =>
      indexOf(`quay.io/team/${path}:v4.21`, 'v4.21'),
    );
    const render = prefix === 'cs' ? renderCatalogResources : renderClusterCatalogs;
    const manifests = render({ catalogs, registry: NODE, useDefaultSourceNames: false });
    const names = manifests.map(
      ({ text }) => (parse(text) as { metadata: { name: string } }).metadata.name,
    );
    expect(names).toEqual([
      `${prefix}-a-company-with-a-long-name-and-its-own-operator-cat-520ac6e0`,
      `${prefix}-a-company-with-a-long-name-and-its-own-operator-cat-da42b2ca`,
      `${prefix}-a-company-with-a-long-name-and-its-own-operator-cat-1af83ef2`,
    ]);
    expect(manifests.map(({ name }) => name)).toEqual(names.map((name) => `${name}.yaml`));
    expect(names.map(({ length }) => length)).toEqual([63, 63, 63]);
  });

  it('is the default name of a catalog whose own name is too long', () => {
    const catalog = indexOf(
      `quay.io/${'team-'.repeat(12)}x/redhat-operator-index-${'y'.repeat(60)}:v1`,
      'v1',
    );
    const [manifest] = renderCatalogResources({
      catalogs: [catalog],
      registry: NODE,
      useDefaultSourceNames: true,
    });
    expect(parse(manifest?.text ?? '')).toMatchObject({ metadata: { name: 'redhat-operators' } });
  });

  it('must be one that the cluster accepts', () => {
    expect(() => nameOf(indexOf('quay.io/team/my_index:v1', 'v1'))).toThrow(
      'catalog quay.io/team/my_index:v1 would be called "cs-my_index-v1" in the cluster',
    );
    expect(() => nameOf(indexOf('quay.io/team/index:v1_', 'v1_'))).toThrow('"cs-index-v1-"');
  });

  it.each([
    [true, 'redhat-operators', 'set useDefaultSourceNames to false'],
    [false, 'cs-redhat-operator-index-v4-21-2026-1', 'another targetCatalog or targetTag'],
  ])(
    'is refused for a second catalog (useDefaultSourceNames: %s)',
    (useDefaultSourceNames, name, hint) => {
      const catalogs = ['v4.21-2026-11', 'v4.21-2026-12'].map((tag) =>
        indexOf(`quay.io/redhat/redhat-operator-index:${tag}`, tag),
      );
      const input = { catalogs, registry: NODE, useDefaultSourceNames };
      expect(() => renderCatalogResources(input)).toThrow(
        expect.objectContaining({
          code: 'catalog.same-name',
          message: expect.stringContaining(
            `index:v4.21-2026-11 and quay.io/redhat/redhat-operator-index:v4.21-2026-12 would both be called "${name}"`,
          ) as string,
          hint: expect.stringContaining(hint) as string,
        }) as Error,
      );
    },
  );
});

describe('renderClusterCatalogs', () => {
  it('names the catalog after its repository and tag', () => {
    const [manifest] = renderClusterCatalogs({ catalogs: [REDHAT], registry: NODE });
    expect(manifest?.name).toBe('cc-redhat-operator-index-v4-21.yaml');
    expect(parse(manifest?.text ?? '')).toEqual({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name: 'cc-redhat-operator-index-v4-21' },
      spec: {
        source: {
          type: 'Image',
          image: { ref: 'localhost:22625/redhat/redhat-operator-index:v4.21' },
        },
        priority: 0,
        availabilityMode: 'Available',
      },
    });
  });
});

describe('renderLocalRegistryMirror', () => {
  it('maps the registry of a release of one’s own', () => {
    const [manifest] = renderLocalRegistryMirror(`reg.example.com:5000/ocp/rel@${DIGEST}`, NODE);
    expect(parse(manifest?.text ?? '')).toMatchObject({
      kind: 'ImageDigestMirrorSet',
      metadata: { name: 'local-registry-mirror' },
      spec: { imageDigestMirrors: [{ source: 'reg.example.com:5000', mirrors: [NODE] }] },
    });
  });

  it.each(['quay.io/openshift-release-dev/ocp-release', 'registry.ci.openshift.org/ocp/release'])(
    'maps nothing for %s',
    (name) => {
      expect(renderLocalRegistryMirror(`${name}@${DIGEST}`, NODE)).toEqual([]);
    },
  );
});

describe('renderSignatureConfigMap', () => {
  it('has a key for each signature, counted from one', () => {
    const { name, text } = renderSignatureConfigMap({
      digest: DIGEST,
      signatures: [Buffer.from('one'), Uint8Array.of(0xff, 0)],
    });
    const key = `sha256-${'0123456789abcdef'.repeat(4)}`;
    expect(name).toBe('signature-configmap.yaml');
    expect(parse(text)).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'mirrored-release-signatures',
        namespace: 'openshift-config-managed',
        labels: { 'release.openshift.io/verification-signatures': '' },
      },
      binaryData: { [`${key}-1`]: 'b25l', [`${key}-2`]: '/wA=' },
    });
  });
});
