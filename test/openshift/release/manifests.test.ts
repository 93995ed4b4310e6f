import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { makeDefinitions } from '../../../demo/definitions.ts';
import {
  findInternalReleaseImage,
  skipsLocalRegistry,
} from '../../../src/openshift/release/manifests.ts';
import { definitionsOf, readDefinitionsOf } from '../../support/node-configs.ts';

const SELF_MANAGED = 'include.release.openshift.io/self-managed-high-availability';
const HYPERSHIFT = 'include.release.openshift.io/ibm-cloud-managed';
const FEATURE_SET = 'release.openshift.io/feature-set';

const definition = (
  versions: readonly string[],
  annotations: Readonly<Record<string, string>> = {},
): string =>
  stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: 'internalreleaseimages.machineconfiguration.openshift.io',
      annotations: { [SELF_MANAGED]: 'true', ...annotations },
    },
    spec: {
      group: 'machineconfiguration.openshift.io',
      names: { kind: 'InternalReleaseImage', plural: 'internalreleaseimages' },
      versions: versions.map((name) => ({
        name,
        served: true,
        storage: name === versions[0],
        schema: { openAPIV3Schema: { type: 'object', description: 'kind: of\n\ntext' } },
      })),
    },
  });

const filesOf = (...texts: readonly string[]): ReadonlyMap<string, Uint8Array> =>
  new Map(
    texts.map((text, index) => [`release-manifests/${index}.crd.yaml`, Buffer.from(text)] as const),
  );

const find = (...texts: readonly string[]) =>
  findInternalReleaseImage(readDefinitionsOf(filesOf(...texts)));

describe('the version of InternalReleaseImage', () => {
  it('is undefined for a payload without its definition', () => {
    expect(find('apiVersion: v1\nkind: Namespace\n')).toBeUndefined();
  });

  it('is v1alpha1, as a preview, for the three files by feature set of 4.21', () => {
    const sets = ['TechPreviewNoUpgrade', 'DevPreviewNoUpgrade', 'CustomNoUpgrade'];
    const files = sets.map((set) => definition(['v1alpha1'], { [FEATURE_SET]: set }));
    expect(find(...files)).toEqual({ version: 'v1alpha1', isPreview: true });
  });

  it('is v1, as a preview, for one file with both versions and a list of preview sets', () => {
    const list = 'CustomNoUpgrade,DevPreviewNoUpgrade,TechPreviewNoUpgrade';
    expect(find(definition(['v1', 'v1alpha1'], { [FEATURE_SET]: list }))).toEqual({
      version: 'v1',
      isPreview: true,
    });
  });

  it('is v1 for one file with v1 and no feature set', () => {
    expect(find(definition(['v1']))).toEqual({ version: 'v1', isPreview: false });
  });

  it('is undefined if only clusters of another profile get the definition', () => {
    const hosted = definition(['v1'], { [SELF_MANAGED]: 'false', [HYPERSHIFT]: 'true' });
    expect(find(hosted)).toBeUndefined();
  });

  it('is the one of the default set if preview sets have others', () => {
    const preview = definition(['v1', 'v1alpha1'], { [FEATURE_SET]: 'TechPreviewNoUpgrade' });
    const usual = definition(['v1alpha1'], { [FEATURE_SET]: 'Default,OKD' });
    expect(find(preview, usual)).toEqual({ version: 'v1alpha1', isPreview: false });
  });

  it('is undefined if the definition serves only versions that we do not write', () => {
    expect(find(definition(['v2']))).toBeUndefined();
  });

  it('is found in a file of several documents, and in a JSON file', () => {
    const several = `apiVersion: v1\nkind: Namespace\n--- # next\n${definition(['v1'])}`;
    expect(find(several)).toMatchObject({ version: 'v1' });
    const json = JSON.stringify({
      kind: 'CustomResourceDefinition',
      metadata: { annotations: { [SELF_MANAGED]: 'true' } },
      spec: {
        group: 'machineconfiguration.openshift.io',
        names: { kind: 'InternalReleaseImage' },
        versions: [{ name: 'v1', served: true }],
      },
    });
    expect(find(json)).toMatchObject({ version: 'v1' });
  });

  it('is not a version that the definition has but does not serve', () => {
    const text = definition(['v1', 'v1alpha1']).replace('served: true', 'served: false');
    expect(find(text)).toEqual({ version: 'v1alpha1', isPreview: false });
  });

  it.each([
    ['4.20.3', undefined],
    ['4.21.0', { version: 'v1alpha1', isPreview: true }],
    ['4.22.9', { version: 'v1', isPreview: false }],
    ['5.0.0', { version: 'v1', isPreview: false }],
  ])('of a payload of %s is the one of that release', (version, expected) => {
    expect(find(...Object.values(makeDefinitions(version)))).toEqual(expected);
  });
});

describe('a definition of a payload', () => {
  it('that is not YAML is refused with the name of its file', () => {
    const text = definition(['v1']).replace('spec:', 'spec: ]');
    expect(() => find(definition(['v1']), text)).toThrow(
      expect.objectContaining({
        code: 'release.manifest-unreadable',
        exitCode: 5,
        message: expect.stringContaining('release-manifests/1.crd.yaml') as string,
      }),
    );
  });

  it('without a group is refused with the name of its file', () => {
    const text = definition(['v1']).replace(/^ {2}group:.*\n/m, '');
    expect(() => find(text)).toThrow(
      expect.objectContaining({
        code: 'release.manifest-unreadable',
        message: expect.stringContaining('0.crd.yaml') as string,
      }),
    );
  });
});

describe('the registry of the media on installed hosts', () => {
  const release = (version: string) => ({ version, definitions: definitionsOf(version) });

  it.each([
    ['4.22.9', true, true],
    ['4.22.9', false, false],
    ['4.21.3', true, false],
    ['4.20.3', true, false],
  ])(
    'of %s, interactive %s, is left to the cluster by default: %s',
    (version, interactive, skips) => {
      expect(skipsLocalRegistry(release(version), { interactive })).toBe(skips);
    },
  );

  it('follows the configuration, if it has a setting', () => {
    for (const skipLocalRegistry of [true, false]) {
      const wanted = { interactive: true, skipLocalRegistry };
      expect(skipsLocalRegistry(release('4.21.3'), wanted)).toBe(skipLocalRegistry);
    }
  });

  it('cannot be left to a cluster that has no registry', () => {
    const wanted = { interactive: true, skipLocalRegistry: true };
    expect(() => skipsLocalRegistry(release('4.20.3'), wanted)).toThrow(
      expect.objectContaining({ code: 'release.no-internal-registry', exitCode: 3 }),
    );
  });
});
