import { parse } from '../../shape/parse-text.ts';
import { isInDefaultSet, readDefinition, type ResourceDefinition } from '../release/manifests.ts';
import type { NodeManifest } from './manifests.ts';

export type ManifestSources = {
  /** Manifests that are generated for the media. */
  readonly generated: readonly NodeManifest[];
  /** Manifests of the user, and those that users may have among theirs; one document each. */
  readonly given: readonly NodeManifest[];
  /** Generated kinds that stay, although only clusters of a preview have them. */
  readonly decided?: readonly string[];
};

export type ServedManifests = {
  readonly manifests: readonly NodeManifest[];
  readonly warnings: readonly string[];
};

/**
 * The manifests whose kinds a cluster of this release serves when it is bootstrapped: bootstrap retries any
 * other for an hour, and then fails. Other generated manifests, and the ones that oc-mirror writes, are left
 * out; the user's stay, because one of their operators may bring the kind in time. Each has a warning.
 */
export function selectServed(
  { generated, given, decided = [] }: ManifestSources,
  release: { readonly version: string; readonly definitions: readonly ResourceDefinition[] },
): ServedManifests {
  const own = given.map(({ text }) => readDefinition(parseText(text)));
  const known = [...release.definitions, ...own.filter((definition) => definition !== undefined)];
  const warnings: string[] = [];
  const keep = (manifest: NodeManifest, isGenerated: boolean): boolean => {
    const { apiVersion, kind } = readType(manifest);
    if (isGenerated && decided.includes(kind)) return true;
    const sets = findFeatureSets({ apiVersion, kind }, known);
    if (sets === 'all') return true;
    const isDropped = isGenerated || FROM_MIRRORING.includes(kind);
    const reason =
      sets.length === 0
        ? `release ${release.version} does not serve ${apiVersion} ${kind}`
        : `release ${release.version} serves ${apiVersion} ${kind} only with ${sets.join(' or ')}`;
    warnings.push(
      isDropped
        ? `manifest ${manifest.name} is left out: ${reason}`
        : `manifest ${manifest.name}: ${reason}; the bootstrap fails unless an operator adds it within 60 minutes: move it to openshift/crs`,
    );
    return !isDropped;
  };
  const manifests = [
    ...given.filter((manifest) => keep(manifest, false)),
    ...generated.filter((manifest) => keep(manifest, true)),
  ];
  return { manifests, warnings };
}

type Type = { readonly apiVersion: string; readonly kind: string };

/**
 * Kinds without a definition, of OpenShift 4.14 and later: Kubernetes, then OpenShift's own API servers.
 * `group/version: kinds`.
 */
const BUILT_IN: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'v1':
      'ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod ' +
      'PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount',
    'admissionregistration.k8s.io/v1':
      'MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ' +
      'ValidatingWebhookConfiguration',
    'apiextensions.k8s.io/v1': 'CustomResourceDefinition',
    'apiregistration.k8s.io/v1': 'APIService',
    'apps/v1': 'ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet',
    'autoscaling/v1': 'HorizontalPodAutoscaler',
    'autoscaling/v2': 'HorizontalPodAutoscaler',
    'batch/v1': 'CronJob Job',
    'certificates.k8s.io/v1': 'CertificateSigningRequest',
    'coordination.k8s.io/v1': 'Lease',
    'discovery.k8s.io/v1': 'EndpointSlice',
    'events.k8s.io/v1': 'Event',
    'flowcontrol.apiserver.k8s.io/v1': 'FlowSchema PriorityLevelConfiguration',
    'networking.k8s.io/v1': 'Ingress IngressClass NetworkPolicy',
    'node.k8s.io/v1': 'RuntimeClass',
    'policy/v1': 'PodDisruptionBudget',
    'rbac.authorization.k8s.io/v1': 'ClusterRole ClusterRoleBinding Role RoleBinding',
    'scheduling.k8s.io/v1': 'PriorityClass',
    'storage.k8s.io/v1': 'CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment',
    'apps.openshift.io/v1': 'DeploymentConfig',
    'authorization.openshift.io/v1': 'ClusterRole ClusterRoleBinding Role RoleBinding',
    'build.openshift.io/v1': 'Build BuildConfig',
    'image.openshift.io/v1': 'Image ImageStream ImageStreamImport ImageStreamTag ImageTag',
    'oauth.openshift.io/v1':
      'OAuthAccessToken OAuthAuthorizeToken OAuthClient OAuthClientAuthorization',
    'project.openshift.io/v1': 'Project ProjectRequest',
    'route.openshift.io/v1': 'Route',
    'template.openshift.io/v1': 'Template TemplateInstance',
    'user.openshift.io/v1': 'Group Identity User UserIdentityMapping',
  }),
);

/** Kinds that oc-mirror writes for operators and releases that not every cluster has. */
const FROM_MIRRORING = ['ImageDigestMirrorSet', 'ImageTagMirrorSet', 'UpdateService'];

/** `all` if clusters that ask for no feature set serve the type, too. */
function findFeatureSets(
  { apiVersion, kind }: Type,
  known: readonly ResourceDefinition[],
): 'all' | readonly string[] {
  if (BUILT_IN.get(apiVersion)?.split(' ').includes(kind) === true) return 'all';
  const [group, version = ''] = apiVersion.split('/');
  const serving = known.filter(
    (definition) =>
      definition.group === group &&
      definition.kind === kind &&
      definition.versions.includes(version),
  );
  if (serving.some(isInDefaultSet)) return 'all';
  return [...new Set(serving.flatMap(({ featureSets = [] }) => featureSets))].sort();
}

/** A manifest without apiVersion has no kind that any server serves. */
function readType({ text }: NodeManifest): Type {
  const { apiVersion, kind } = (parseText(text) ?? {}) as Partial<Record<keyof Type, unknown>>;
  return { apiVersion: textOr(apiVersion, 'no apiVersion'), kind: textOr(kind, 'no kind') };
}

const textOr = (value: unknown, other: string): string =>
  typeof value === 'string' ? value : other;

const parseText = (text: string): unknown =>
  parse(text, { version: '1.1', uniqueKeys: false, logLevel: 'error', prettyErrors: false });
