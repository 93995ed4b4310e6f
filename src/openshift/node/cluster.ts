import { formatReference, parseReference } from '../../registry/index.ts';
import type { SelectedCatalog } from '../catalog/selected.ts';
import type { PlannedMirror } from '../mirror/mirrors.ts';
import { planCatalogDestination } from '../mirror/operator-set.ts';
import type { MirrorPlan } from '../mirror/plan.ts';
import { formatReleaseBundleTag, type RpmArchitecture } from '../release/bundle.ts';
import {
  findInternalReleaseImage,
  findServedKind,
  INTERNAL_RELEASE_IMAGE,
  MACHINE_CONFIG_GROUP,
  PINNED_IMAGE_SET,
  type ResourceDefinition,
} from '../release/manifests.ts';
import type { Release } from '../release/release.ts';
import type { SurveyedWorkspace } from '../workspace/set.ts';
import { renderCatalogResources, renderClusterCatalogs, type ServedCatalog } from './catalogs.ts';
import {
  formatManifest,
  type NodeManifest,
  formatMachineConfig,
  splitDocuments,
  ROLE_LABEL,
  ROLES,
  type Role,
} from './manifests.ts';
import {
  renderLocalRegistryMirror,
  renderMirrorSets,
  renderSignatureConfigMap,
} from './mirror-sets.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain } from './registry.ts';

export type NodeRelease = {
  readonly version: string;
  /** `registry/repository@sha256:...` */
  readonly digestReference: string;
  readonly arch: RpmArchitecture;
};

export type GeneratedManifestsInput = {
  readonly release: NodeRelease;
  /** Definitions in the release's payload. */
  readonly definitions: readonly ResourceDefinition[];
  readonly interactive: boolean;
  readonly enableDefaultSources: boolean;
  readonly createPinnedImageSets: boolean;
  /** References of the images to pin, as they are named before mirroring. */
  readonly pinnedImages: readonly string[];
  readonly corePasswordHash?: string;
  readonly mirrors: readonly PlannedMirror[];
  readonly catalogs: readonly ServedCatalog[];
  /** Catalog sources that came with a mirror. */
  readonly mirrorResources?: readonly NodeManifest[];
  readonly useDefaultSourceNames: boolean;
  /** Detached signatures of the release image, if they are available. */
  readonly releaseSignatures: readonly Uint8Array[];
};

export function planGeneratedManifests(input: GeneratedManifestsInput): readonly NodeManifest[] {
  const { corePasswordHash } = input;
  const registry = registryOf(input);
  return [
    ...renderMirrorSets(input.mirrors, [registry]),
    ...renderLocalRegistryMirror(input.release.digestReference, registry),
    ...(input.enableDefaultSources ? [] : [renderOperatorHub()]),
    ...(corePasswordHash === undefined
      ? []
      : ROLES.map((role) => renderCorePassword(role, corePasswordHash))),
    ...planPinnedImageSets(input),
    ...planInternalReleaseImage(input),
  ];
}

/** Manifests that users may also have among their own: catalog sources and release signatures. */
export const planMirrorManifests = (input: GeneratedManifestsInput): readonly NodeManifest[] => [
  ...(input.mirrorResources ?? []),
  ...renderCatalogResources({ ...input, registry: registryOf(input) }),
  ...renderSignatures(input),
];

/**
 * ClusterCatalogs of a workspace, and one for each other catalog; media leave them out.
 *
 * @throws ConfigError `catalog.bad-name`, `catalog.same-name`
 */
export const listClusterCatalogs = (
  input: Pick<GeneratedManifestsInput, 'mirrorResources' | 'catalogs' | 'interactive'>,
): readonly NodeManifest[] => [
  ...(input.mirrorResources ?? [])
    .flatMap(splitDocuments)
    .filter(({ document }) => document.get('kind') === 'ClusterCatalog')
    .map(({ name, text }) => ({ name, text })),
  ...renderClusterCatalogs({ catalogs: input.catalogs, registry: registryOf(input) }),
];

const registryOf = ({ interactive }: Pick<GeneratedManifestsInput, 'interactive'>): string =>
  `${nodeRegistryDomain(interactive)}:${NODE_REGISTRY_PORT}`;

function renderSignatures({ release, releaseSignatures }: GeneratedManifestsInput): NodeManifest[] {
  const { digest } = parseReference(release.digestReference);
  if (digest === undefined || releaseSignatures.length === 0) return [];
  return [renderSignatureConfigMap({ digest, signatures: releaseSignatures })];
}

/** The release that the assisted service installs, by digest. */
export const formatClusterImageSet = (release: NodeRelease): string =>
  formatManifest({
    apiVersion: 'hive.openshift.io/v1',
    kind: 'ClusterImageSet',
    metadata: { name: `openshift-${release.version}` },
    spec: { releaseImage: release.digestReference },
  });

/** Without a network the default catalogs would only fail. */
const renderOperatorHub = (): NodeManifest => ({
  name: 'operatorhub-cluster.yaml',
  text: formatManifest({
    apiVersion: 'config.openshift.io/v1',
    kind: 'OperatorHub',
    metadata: { name: 'cluster' },
    spec: { disableAllDefaultSources: true },
  }),
});

const renderCorePassword = (role: Role, passwordHash: string): NodeManifest => {
  const name = `99-${role}-set-core-pass`;
  const passwd = { users: [{ name: 'core', passwordHash }] };
  return { name: `${name}.yaml`, text: formatMachineConfig({ name, role, passwd }) };
};

/** One for each role. If a payload serves no version, they are `v1`: the check of kinds then reports them. */
export function planPinnedImageSets({
  createPinnedImageSets,
  definitions,
  pinnedImages,
}: Pick<
  GeneratedManifestsInput,
  'createPinnedImageSets' | 'definitions' | 'pinnedImages'
>): readonly NodeManifest[] {
  const version = findServedKind(definitions, PINNED_IMAGE_SET)?.version ?? 'v1';
  return createPinnedImageSets
    ? ROLES.map((role) => renderPinnedImageSet(role, { version, pinnedImages }))
    : [];
}

const renderPinnedImageSet = (
  role: Role,
  { version, pinnedImages }: { readonly version: string; readonly pinnedImages: readonly string[] },
): NodeManifest => ({
  name: `${role}-pinned-image-set.yaml`,
  text: formatManifest({
    apiVersion: `${MACHINE_CONFIG_GROUP}/${version}`,
    kind: PINNED_IMAGE_SET,
    metadata: { name: `${role}-pinned-image-set`, labels: { [ROLE_LABEL]: role } },
    spec: { pinnedImages: pinnedImages.map((name) => ({ name })) },
  }),
});

/**
 * The machine config operator finds it by file name. Without its kind, bootstrap waits for it until it fails.
 */
function planInternalReleaseImage({
  release: { version, arch },
  definitions,
  interactive,
}: GeneratedManifestsInput): NodeManifest[] {
  const served = interactive ? findInternalReleaseImage(definitions) : undefined;
  if (served === undefined) return [];
  return [
    {
      name: 'internalreleaseimage.yaml',
      text: formatManifest({
        apiVersion: `${MACHINE_CONFIG_GROUP}/${served.version}`,
        kind: INTERNAL_RELEASE_IMAGE,
        metadata: { name: 'cluster' },
        spec: { releases: [{ name: formatReleaseBundleTag(version, arch) }] },
      }),
    },
  ];
}

/** Content that is carried for a cluster. */
export type CarriedForCluster = {
  readonly release: Release;
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  /** Base64. */
  readonly signatures: readonly string[];
  /** Present if a workspace of oc-mirror states the names of its catalogs. */
  readonly workspace?: Pick<SurveyedWorkspace, 'resources' | 'catalogImages'>;
};

export type ClusterSettings = {
  readonly interactive: boolean;
  readonly enableDefaultSources: boolean;
  readonly createPinnedImageSets: boolean;
  readonly useDefaultSourceNames: boolean;
};

/** Has no secret. */
export const describeCluster = (
  { release, plan, catalogs, signatures, workspace }: CarriedForCluster,
  {
    interactive,
    enableDefaultSources,
    createPinnedImageSets,
    useDefaultSourceNames,
  }: ClusterSettings,
): Omit<GeneratedManifestsInput, 'corePasswordHash'> => ({
  release: toNodeRelease(release),
  definitions: release.definitions,
  mirrors: plan.mirrors,
  catalogs: describeNodeCatalogs(catalogs, workspace),
  mirrorResources: workspace?.resources ?? [],
  releaseSignatures: signatures.map((base64) => Buffer.from(base64, 'base64')),
  interactive,
  enableDefaultSources,
  createPinnedImageSets,
  useDefaultSourceNames,
  pinnedImages: listPinned(plan),
});

/** Images, each once even if it has several places: a set does not take a name twice. */
const listPinned = ({ images }: MirrorPlan): readonly string[] => [
  ...new Set(
    images
      .filter(({ kind }) => kind !== 'signature' && kind !== 'catalog')
      .map(({ source }) => formatReference(source)),
  ),
];

/** Without those that a workspace has resources for, also if oc-mirror put them below a namespace. */
export const describeNodeCatalogs = (
  catalogs: readonly SelectedCatalog[],
  workspace?: Pick<SurveyedWorkspace, 'catalogImages'>,
): readonly ServedCatalog[] =>
  catalogs
    .map((catalog) => ({
      name: catalog.name,
      source: catalog.reference,
      destination: planCatalogDestination(catalog),
      digest: catalog.digest,
    }))
    .filter(({ destination: { repository, tag }, digest }) => {
      const names = [`${repository}:${tag}`, `${repository}@${digest}`];
      return !workspace?.catalogImages.some((place) =>
        names.some((name) => place === name || place.endsWith(`/${name}`)),
      );
    });

export const toNodeRelease = ({ version, reference, arch }: Release): NodeRelease => ({
  version,
  arch,
  digestReference: formatReference(reference),
});
