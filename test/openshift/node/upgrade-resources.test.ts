import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { digestOf } from '../../../src/base/digest.ts';
import {
  renderUpgradeMachineConfig,
  renderUpgradeResources,
} from '../../../src/openshift/node/upgrade.ts';
import { parseReference } from '../../../src/registry/reference.ts';

const INDEX = 'registry.redhat.io/redhat/redhat-operator-index:v4.22';
const catalog = {
  name: INDEX,
  source: parseReference(INDEX),
  destination: { repository: 'redhat/redhat-operator-index', tag: 'v4.22' },
  digest: digestOf('filtered'),
};
const input = {
  version: '4.22.3',
  releases: [
    { version: '4.21.12', digest: digestOf('first'), signatures: [Buffer.from('one')] },
    { version: '4.22.3', digest: digestOf('last'), signatures: [Buffer.from('two')] },
  ],
  mirrors: [
    { source: 'registry.redhat.io/rhel9', mirrors: ['rhel9'], set: 'operator', by: 'digest' },
    { source: 'quay.io/tool', mirrors: ['tool'], set: 'generic', by: 'tag' },
  ],
  catalogs: [catalog],
  useDefaultSourceNames: true,
} as const;

type KubernetesObject = {
  kind: string;
  metadata: { name: string; namespace?: string };
  spec?: Record<string, unknown>;
};
const read = (overrides: Partial<typeof input> | { releases: [] } = {}): KubernetesObject[] =>
  parseAllDocuments(renderUpgradeResources({ ...input, ...overrides })).map(
    (document) => document.toJS() as KubernetesObject,
  );

describe('renderUpgradeResources', () => {
  it('names the signatures of all releases first, and no object that an installation makes', () => {
    expect(read().map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'ConfigMap release-signatures-4.21.12',
      'ConfigMap release-signatures-4.22.3',
      'ImageDigestMirrorSet idms-operator-4.22.3',
      'ImageTagMirrorSet itms-generic-4.22.3',
      'ImageDigestMirrorSet idms-catalog-4.22.3',
      'CatalogSource redhat-operators',
    ]);
  });

  it.each(['4.22.3-A.-.b-', '4.22.3--', '4.22.3-rc.1+multi', `4.22.3-${'a-'.repeat(120)}z`])(
    'gives every object of %s a name that Kubernetes accepts',
    (version) => {
      const releases = [{ version, digest: digestOf('last'), signatures: [Buffer.from('two')] }];
      const text = renderUpgradeResources({ ...input, version, releases });
      for (const document of parseAllDocuments(text)) {
        const { metadata } = document.toJS() as KubernetesObject;
        expect(metadata.name).toMatch(
          /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
        );
      }
      const config = renderUpgradeMachineConfig({
        hops: [
          {
            version,
            releaseImage: `q.io/a@${digestOf('last')}`,
            fromVersions: ['4.21.1'],
            isSigned: true,
            isAccepted: false,
          },
        ],
        arch: 'x86_64',
        resources: text,
        acknowledged: [],
      });
      const { metadata } = parse(config) as { metadata: { labels: Record<string, string> } };
      for (const value of Object.values(metadata.labels)) {
        expect(value).toMatch(/^(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/);
      }
    },
  );

  it("gives every source the hosts' own registry and the registry of the attached ISO as mirrors", () => {
    expect(read().find(({ metadata }) => metadata.name === 'idms-operator-4.22.3')?.spec).toEqual({
      imageDigestMirrors: [
        {
          source: 'registry.redhat.io/rhel9',
          mirrors: [
            'registry.appliance.openshift.com:22625/rhel9',
            'registry.appliance.openshift.com:5001/rhel9',
          ],
        },
      ],
    });
  });

  it('names a catalog by digest, and reads it from the attached ISO until the host has a copy', () => {
    const objects = read();
    expect(objects.at(-1)?.spec?.['image']).toBe(
      `registry.appliance.openshift.com:22625/redhat/redhat-operator-index@${catalog.digest}`,
    );
    expect(objects.at(-2)?.spec).toEqual({
      imageDigestMirrors: [
        {
          source: 'registry.appliance.openshift.com:22625',
          mirrors: ['registry.appliance.openshift.com:5001'],
        },
      ],
    });
  });

  it('has no ConfigMap for releases without signatures', () => {
    expect(read({ releases: [] })[0]?.kind).toBe('ImageDigestMirrorSet');
  });
});
