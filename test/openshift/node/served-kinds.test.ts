import { describe, expect, it } from 'vitest';
import { planExtraManifests } from '../../../src/openshift/node/manifests.ts';
import { selectServed } from '../../../src/openshift/node/served-kinds.ts';
import { definitionsOf } from '../../support/node-configs.ts';

const manifest = (apiVersion: string, kind: string) => ({
  name: `${kind.toLowerCase()}.yaml`,
  text: `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: it\n`,
});

const release = (version: string) => ({ version, definitions: definitionsOf(version) });

const select = (version: string, ...given: readonly ReturnType<typeof manifest>[]) => {
  const { manifests, warnings } = selectServed({ given, generated: [] }, release(version));
  return { kept: manifests.map(({ name }) => name), warnings };
};

describe('a manifest for the bootstrap of a cluster', () => {
  it.each([
    ['v1', 'ConfigMap'],
    ['rbac.authorization.k8s.io/v1', 'ClusterRole'],
    ['route.openshift.io/v1', 'Route'],
    ['config.openshift.io/v1', 'ImageDigestMirrorSet'],
  ])('of %s %s is served, and causes no warning', (apiVersion, kind) => {
    const given = manifest(apiVersion, kind);
    expect(select('4.14.0', given)).toEqual({ kept: [given.name], warnings: [] });
  });

  it('of an UpdateService, which only its operator defines, is left out with a warning', () => {
    const given = manifest('updateservice.operator.openshift.io/v1', 'UpdateService');
    expect(select('4.22.9', given)).toEqual({
      kept: [],
      warnings: [
        'manifest updateservice.yaml is left out: release 4.22.9 does not serve updateservice.operator.openshift.io/v1 UpdateService',
      ],
    });
  });

  it('of an ImageTagMirrorSet is left out below 4.13, where the kind does not exist', () => {
    const given = manifest('config.openshift.io/v1', 'ImageTagMirrorSet');
    expect(select('4.12.70', given).kept).toEqual([]);
    expect(select('4.13.0', given).kept).toEqual([given.name]);
  });

  it('of a ClusterCatalog never reaches the medium', () => {
    const given = manifest('olm.operatorframework.io/v1', 'ClusterCatalog');
    expect(planExtraManifests([given], { useDefaultSourceNames: false })).toEqual([]);
  });

  it("of an operator's kind stays, with a warning that names the kind and the folder for it", () => {
    const given = manifest('lvm.topolvm.io/v1alpha1', 'LVMCluster');
    const { kept, warnings } = select('4.21.3', given);
    expect(kept).toEqual(['lvmcluster.yaml']);
    expect(warnings).toEqual([
      expect.stringMatching(
        /lvmcluster\.yaml: release 4\.21\.3 does not serve lvm\.topolvm\.io\/v1alpha1 LVMCluster.*openshift\/crs/,
      ),
    ]);
  });

  it('of a version that the payload does not serve has a warning with the version', () => {
    const given = manifest('machineconfiguration.openshift.io/v1', 'InternalReleaseImage');
    expect(select('4.21.3', given).warnings).toEqual([
      expect.stringContaining('machineconfiguration.openshift.io/v1 InternalReleaseImage'),
    ]);
  });

  it('of a preview kind has a warning with the feature sets that bring it', () => {
    const given = manifest('machineconfiguration.openshift.io/v1alpha1', 'InternalReleaseImage');
    expect(select('4.21.3', given).warnings).toEqual([
      expect.stringContaining('only with CustomNoUpgrade or DevPreviewNoUpgrade or TechPreview'),
    ]);
  });

  it('is served if the user adds its definition', () => {
    const definition = {
      name: 'crd.yaml',
      text: `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.acme.example}
spec:
  group: acme.example
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true}]
`,
    };
    expect(select('4.14.0', definition, manifest('acme.example/v1', 'Widget')).warnings).toEqual(
      [],
    );
  });

  it('that is generated is left out if the payload serves it only to previews', () => {
    const generated = [manifest('machineconfiguration.openshift.io/v1alpha1', 'PinnedImageSet')];
    const { manifests, warnings } = selectServed({ given: [], generated }, release('4.17.0'));
    expect(manifests).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('is left out')]);
  });
});
