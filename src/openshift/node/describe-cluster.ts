import type { SelectedCatalog } from '../catalog/selected-catalog.ts';
import type { MirrorPlan } from '../mirror/mirror-plan.ts';
import { planCatalogDestination } from '../mirror/operator-set.ts';
import type { Release } from '../release/release-payload.ts';
import { formatReference } from '../../registry/reference.ts';
import type { SurveyedWorkspace } from '../workspace/workspace-set.ts';
import type { ServedCatalog } from './catalog-sources.ts';
import type { GeneratedManifestsInput, NodeRelease } from './manifests/generated-manifests.ts';

/** What is carried for a cluster. */
export type CarriedForCluster = {
  readonly release: Release;
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  /** Base64. */
  readonly signatures: readonly string[];
  /** Present where a workspace of oc-mirror says what its catalogs are called. */
  readonly workspace?: Pick<SurveyedWorkspace, 'resources' | 'catalogImages'>;
};

/** How a cluster uses the media, as the configuration says. */
export type ClusterSettings = {
  readonly interactive: boolean;
  readonly enableDefaultSources: boolean;
  readonly createPinnedImageSets: boolean;
  readonly useDefaultSourceNames: boolean;
};

/** What a cluster learns of the media: its mirrors, catalogs and release. No secret. */
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
  catalogs: describeCatalogs(catalogs, workspace),
  mirrorResources: workspace?.resources ?? [],
  releaseSignatures: signatures.map((base64) => Buffer.from(base64, 'base64')),
  interactive,
  enableDefaultSources,
  createPinnedImageSets,
  useDefaultSourceNames,
  pinnedImages: listPinned(plan),
});

/** Each once, wherever it stands: a set does not take a name twice. */
const listPinned = ({ images }: MirrorPlan): readonly string[] => [
  ...new Set(
    images
      .filter(({ kind }) => kind !== 'signature' && kind !== 'catalog')
      .map(({ source }) => formatReference(source)),
  ),
];

/** Without those that a workspace has resources for, where oc-mirror put them below a namespace, too. */
export const describeCatalogs = (
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
