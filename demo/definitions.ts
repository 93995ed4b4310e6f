/** The sets of a kind that is not for every cluster. */
const PREVIEW_SETS = ['TechPreviewNoUpgrade', 'DevPreviewNoUpgrade', 'CustomNoUpgrade'] as const;

type Kind = {
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  /** Storage first. */
  readonly versions: readonly string[];
  /** One for each file; absent: one file for every cluster. */
  readonly featureSets?: readonly string[];
};

/**
 * Definitions such as a release of this version has, by their path in its image: those that media rely
 * on, in the form that payloads give them, with one of another profile.
 */
export function makeDefinitions(version: string): Readonly<Record<string, string>> {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const era = major * 100 + minor;
  const files = listKinds(era).flatMap((kind) =>
    (kind.featureSets ?? [undefined]).map((set) => [nameFile(kind, set), format(kind, set)]),
  );
  return Object.fromEntries(files) as Record<string, string>;
}

function listKinds(era: number): readonly Kind[] {
  const config = { group: 'config.openshift.io', versions: ['v1'] };
  const machine = { group: 'machineconfiguration.openshift.io', versions: ['v1'] };
  const operators = { group: 'operators.coreos.com', versions: ['v1alpha1'] };
  return [
    { ...config, kind: 'ClusterVersion', plural: 'clusterversions' },
    { ...config, kind: 'OperatorHub', plural: 'operatorhubs' },
    ...(era < 413
      ? []
      : [
          { ...config, kind: 'ImageDigestMirrorSet', plural: 'imagedigestmirrorsets' },
          { ...config, kind: 'ImageTagMirrorSet', plural: 'imagetagmirrorsets' },
        ]),
    { ...operators, kind: 'CatalogSource', plural: 'catalogsources' },
    { ...operators, kind: 'Subscription', plural: 'subscriptions' },
    { ...operators, kind: 'OperatorGroup', plural: 'operatorgroups', versions: ['v1'] },
    { ...machine, kind: 'MachineConfig', plural: 'machineconfigs' },
    ...(era < 416 ? [] : [pinnedImageSet(era)]),
    ...(era < 421 ? [] : [internalReleaseImage(era)]),
  ];
}

const pinnedImageSet = (era: number): Kind => ({
  group: 'machineconfiguration.openshift.io',
  kind: 'PinnedImageSet',
  plural: 'pinnedimagesets',
  ...(era < 420 ? { versions: ['v1alpha1'], featureSets: PREVIEW_SETS } : { versions: ['v1'] }),
});

const internalReleaseImage = (era: number): Kind => ({
  group: 'machineconfiguration.openshift.io',
  kind: 'InternalReleaseImage',
  plural: 'internalreleaseimages',
  ...(era < 422 ? { versions: ['v1alpha1'], featureSets: PREVIEW_SETS } : { versions: ['v1'] }),
});

const nameFile = ({ group, plural }: Kind, set: string | undefined): string =>
  `release-manifests/0000_80_${group.split('.')[0] ?? ''}_01_${plural}${set === undefined ? '' : `-${set}`}.crd.yaml`;

const format = ({ group, kind, plural, versions }: Kind, set: string | undefined): string =>
  [
    'apiVersion: apiextensions.k8s.io/v1',
    'kind: CustomResourceDefinition',
    'metadata:',
    '  annotations:',
    '    include.release.openshift.io/ibm-cloud-managed: "true"',
    '    include.release.openshift.io/self-managed-high-availability: "true"',
    ...(set === undefined ? [] : [`    release.openshift.io/feature-set: ${set}`]),
    `  name: ${plural}.${group}`,
    'spec:',
    `  group: ${group}`,
    '  names:',
    `    kind: ${kind}`,
    `    listKind: ${kind}List`,
    `    plural: ${plural}`,
    `    singular: ${kind.toLowerCase()}`,
    '  scope: Cluster',
    '  versions:',
    ...versions.flatMap((version, index) => [
      `  - name: ${version}`,
      '    schema:',
      '      openAPIV3Schema:',
      '        description: |-',
      '          What the cluster is told.',
      '',
      '          It has a blank line.',
      '        type: object',
      '    served: true',
      `    storage: ${String(index === 0)}`,
    ]),
    '',
  ].join('\n');
