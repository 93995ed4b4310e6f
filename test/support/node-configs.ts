import { digestFromHex } from '../../src/base/digest.ts';
import type { File, IgnitionConfig } from '../../src/ignition/index.ts';
import { makeDefinitions } from '../../demo/definitions.ts';
import type { BootstrapInput } from '../../src/openshift/node/bootstrap.ts';
import { readManifests } from '../../src/openshift/release/manifests.ts';
import {
  DEFINITION,
  readDefinitions,
  type ResourceDefinition,
} from '../../src/openshift/release/manifests.ts';

/** What files of a payload define, as the program reads it. */
export const readDefinitionsOf = (
  files: ReadonlyMap<string, Uint8Array>,
): readonly ResourceDefinition[] => readDefinitions(readManifests(files, [DEFINITION]));

/** What payloads of a version define. */
export const definitionsOf = (version: string): readonly ResourceDefinition[] =>
  readDefinitionsOf(
    new Map(
      Object.entries(makeDefinitions(version)).map(
        ([path, text]) => [path, Buffer.from(text)] as const,
      ),
    ),
  );

/** A release like those of the update graph, with one manifest and one custom resource. */
export const bootstrapInput: BootstrapInput = {
  release: {
    version: '4.21.3',
    digestReference: `quay.io/openshift-release-dev/ocp-release@sha256:${'a'.repeat(64)}`,
    arch: 'x86_64',
  },
  definitions: definitionsOf('4.21.3'),
  registryImage: {
    reference: `quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:${'b'.repeat(64)}`,
    useDistributionEntrypoint: true,
  },
  mirrors: [
    {
      source: 'quay.io/openshift-release-dev/ocp-release',
      mirrors: ['openshift/release-images'],
      set: 'release',
      by: 'digest',
    },
    {
      source: 'quay.io/openshift-release-dev/ocp-v4.0-art-dev',
      mirrors: ['openshift/release'],
      set: 'release',
      by: 'digest',
    },
    { source: 'registry.redhat.io/rhel9', mirrors: ['rhel9'], set: 'operator', by: 'digest' },
    { source: 'registry.redhat.io/rhel9', mirrors: ['rhel9'], set: 'generic', by: 'tag' },
  ],
  catalogs: [],
  releaseSignatures: [],
  interactive: false,
  enableDefaultSources: false,
  createPinnedImageSets: true,
  pinnedImages: [`quay.io/openshift-release-dev/ocp-release@sha256:${'a'.repeat(64)}`],
  stopLocalRegistry: false,
  skipLocalRegistry: false,
  disableImagePolicy: false,
  registryData: 'copy',
  registryTree: { size: 21_000_000_000, digest: digestFromHex('d'.repeat(64)) },
  useDefaultSourceNames: true,
  corePasswordHash: '$6$saltsalt$hash',
  extraManifests: [
    {
      name: 'catalogs.yaml',
      text: `apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: cs-redhat-operator-index-v4-21
  namespace: openshift-marketplace
spec:
  sourceType: grpc
  image: registry.example.com/redhat/redhat-operator-index:v4.21
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata:
  name: cc-redhat-operator-index-v4-21
`,
    },
  ],
  crs: [
    {
      name: 'nmstate.yaml',
      text: 'apiVersion: nmstate.io/v1\nkind: NMState\nmetadata:\n  name: nmstate\n',
    },
    {
      name: 'cnv.yaml',
      text: 'apiVersion: hco.kubevirt.io/v1beta1\nkind: HyperConverged\nmetadata:\n  name: hc\n  namespace: openshift-cnv\n',
    },
  ],
};

/** The text that Ignition will write for a file with a `data:` URL. */
export function readContents(file: File | undefined): string {
  const source = file?.contents?.source ?? '';
  if (source === 'data:,') return '';
  const base64 = source.slice(source.indexOf(',') + 1);
  return Buffer.from(base64, 'base64').toString();
}

export const findFile = (config: IgnitionConfig, path: string): File | undefined =>
  config.storage?.files?.find((file) => file.path === path);

/** One line a file, directory or unit, as a golden lists them. */
export function listContents(config: IgnitionConfig): string[] {
  const mode = (value = 0): string => value.toString(8).padStart(4, '0');
  return [
    ...(config.storage?.directories ?? []).map((node) => `${mode(node.mode)} ${node.path}/`),
    ...(config.storage?.files ?? []).map((node) => `${mode(node.mode)} ${node.path}`),
    ...(config.systemd?.units ?? []).map(
      (unit) => `${unit.enabled === true ? 'enabled' : '-'} ${unit.name}`,
    ),
  ];
}
