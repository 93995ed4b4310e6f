import type { ConfigDocument } from '../../../shape/document.ts';
import {
  FLAG,
  FREE,
  INTEGER,
  list,
  mapping,
  otherwise,
  partial,
  TEXT,
  type TypeOf,
} from '../../../shape/shape.ts';
import { type FoundResource, readFound } from '../find.ts';
import { CLUSTER_MEMBERS, listPublicKeys, NODE_MEMBERS, REFERENCE } from '../shape.ts';

/*
 * Owns the shape of a SiteConfig (ran.openshift.io/v1), which has the members that siteconfig-converter of
 * cnf-features-deploy reads (ztp/tools/siteconfig-converter/main.go), and its clusters.
 */

export const SITE_CONFIG_KIND = 'SiteConfig';
export const SITE_CONFIG_API = 'ran.openshift.io/v1';

const OF_ALL = { crTemplates: FREE, crAnnotations: FREE, biosConfigRef: FREE };

const OLD_NODE = partial({
  ...OF_ALL,
  ...NODE_MEMBERS,
  nodeLabels: mapping(otherwise(TEXT, '')),
  crSuppression: FREE,
  cpuset: FREE,
  diskPartition: FREE,
  userData: FREE,
});

export type OldNode = TypeOf<typeof OLD_NODE>;

/** Stands in for a faulty item of a list, so that the others keep their places. */
const NO_NODE: OldNode = {};

const OLD_CLUSTER = partial({
  ...OF_ALL,
  ...CLUSTER_MEMBERS,
  apiVIP: TEXT,
  ingressVIP: TEXT,
  serviceNetwork: list(TEXT),
  clusterLabels: FREE,
  crSuppression: FREE,
  manifestsConfigMapRefs: list(REFERENCE),
  extraManifests: partial({
    searchPaths: list(TEXT),
    filter: partial({ inclusionDefault: TEXT, include: list(TEXT), exclude: list(TEXT) }),
  }),
  extraManifestPath: TEXT,
  extraManifestOnly: FLAG,
  mergeDefaultMachineConfigs: FLAG,
  siteConfigMap: FREE,
  numMasters: INTEGER,
  numWorkers: INTEGER,
  nodes: list(otherwise(OLD_NODE, NO_NODE)),
});

export type OldCluster = TypeOf<typeof OLD_CLUSTER>;

const NO_CLUSTER: OldCluster = {};

const SITE_CONFIG = partial(
  {
    apiVersion: TEXT,
    kind: TEXT,
    metadata: FREE,
    spec: partial({
      ...OF_ALL,
      baseDomain: TEXT,
      pullSecretRef: REFERENCE,
      clusterImageSetNameRef: TEXT,
      sshPublicKey: TEXT,
      sshPrivateKeySecretRef: FREE,
      clusters: list(otherwise(OLD_CLUSTER, NO_CLUSTER)),
    }),
  },
  { others: 'warned' },
);

export type SiteConfigSpec = NonNullable<TypeOf<typeof SITE_CONFIG>['spec']>;

export type SiteConfigDocument = ConfigDocument<TypeOf<typeof SITE_CONFIG>>;

/** A cluster, and its place in a SiteConfig. */
export type ClusterPlace = {
  readonly document: SiteConfigDocument;
  readonly cluster: OldCluster;
  readonly path: string;
};

const KEYS = listPublicKeys(SITE_CONFIG);

/** A file of the largest size has fewer; aliases may bring more. */
const MOST_VALUES = 300_000;

/** By document, of which each cluster asks: one reading for all. */
const known = new WeakMap<FoundResource['piece'], SiteConfigDocument>();

export function readSiteConfig(resource: FoundResource): SiteConfigDocument {
  const before = known.get(resource.piece);
  if (before?.file === resource.file.shownAs) return before; // its name becomes shorter once it is listed
  const document = readFound(resource, SITE_CONFIG, { publicKeys: KEYS, most: MOST_VALUES });
  known.set(resource.piece, document);
  return document;
}

/** The text of one cluster with what all of them share. */
export function formatCluster(resource: FoundResource): string {
  const { clusters = [], ...shared } = readSiteConfig(resource).value.spec ?? {};
  return JSON.stringify({ ...shared, clusters: [clusters[resource.cluster ?? 0]] });
}

/** A resource for each cluster, in the namespace that the converter gives it; one without clusters stays. */
export function listClusters(resource: FoundResource): readonly FoundResource[] {
  const { clusters = [] } = readSiteConfig(resource).value.spec ?? {};
  if (clusters.length === 0) return [resource];
  return clusters.map(({ clusterName = '' }, cluster) => ({
    ...resource,
    name: clusterName,
    namespace: clusterName,
    cluster,
  }));
}
