import type { DocumentProblem } from '../../base/errors.ts';
import type { ConfigDocument } from '../../shape/document.ts';
import {
  FLAG,
  FREE,
  INTEGER,
  list,
  listMemberNames,
  mapping,
  partial,
  type Shape,
  TEXT,
  type TypeOf,
} from '../../shape/shape.ts';
import { PUBLIC_KEYS } from '../documents.ts';
import { type FoundResource, readFound, type ResourceIndex } from './find.ts';

/* Owns the shape of a ClusterInstance (siteconfig.open-cluster-management.io/v1alpha1), and what is converted. */

export const INSTANCE_API = 'siteconfig.open-cluster-management.io/v1alpha1';

/** Way in which the nodes of a site are installed. */
export type SiteFlow = 'agent' | 'image-based';

export const REFERENCE = partial({ name: TEXT, namespace: TEXT });
const NETWORKS = list(partial({ cidr: TEXT, hostPrefix: INTEGER }));

/** Members that only a hub reads. */
const OF_HUB = {
  extraAnnotations: FREE,
  extraLabels: FREE,
  suppressedManifests: FREE,
  pruneManifests: FREE,
};

/** Members of a node that a SiteConfig has as well. */
export const NODE_MEMBERS = {
  hostName: TEXT,
  bmcAddress: TEXT,
  bmcCredentialsName: REFERENCE,
  bootMACAddress: TEXT,
  role: TEXT,
  rootDeviceHints: FREE,
  nodeNetwork: partial({
    interfaces: list(partial({ name: TEXT, macAddress: TEXT })),
    config: FREE,
  }),
  nodeLabels: mapping(TEXT),
  automatedCleaningMode: TEXT,
  bootMode: TEXT,
  installerArgs: TEXT,
  ignitionConfigOverride: TEXT,
  ironicInspect: TEXT,
  cpuArchitecture: TEXT,
};

const NODE = partial({
  ...OF_HUB,
  ...NODE_MEMBERS,
  templateRefs: list(REFERENCE),
  hostRef: REFERENCE,
});

/** Members of a cluster that a SiteConfig has as well. */
export const CLUSTER_MEMBERS = {
  clusterName: TEXT,
  clusterImageSetNameRef: TEXT,
  apiVIPs: list(TEXT),
  ingressVIPs: list(TEXT),
  additionalNTPSources: list(TEXT),
  machineNetwork: NETWORKS,
  clusterNetwork: NETWORKS,
  networkType: TEXT,
  platformType: TEXT,
  proxy: partial({ httpProxy: TEXT, httpsProxy: TEXT, noProxy: TEXT }),
  installConfigOverrides: TEXT,
  ignitionConfigOverride: TEXT,
  diskEncryption: FREE,
  cpuPartitioningMode: TEXT,
  cpuArchitecture: TEXT,
  clusterType: TEXT,
  holdInstallation: FLAG,
};

const CLUSTER_INSTANCE = partial(
  {
    apiVersion: TEXT,
    kind: TEXT,
    metadata: FREE,
    status: FREE,
    spec: partial({
      ...OF_HUB,
      ...CLUSTER_MEMBERS,
      baseDomain: TEXT,
      pullSecretRef: REFERENCE,
      templateRefs: list(REFERENCE),
      nodes: list(NODE),
      sshPublicKey: TEXT,
      serviceNetwork: NETWORKS,
      extraManifestsRefs: list(REFERENCE),
      caBundleRef: REFERENCE,
      reinstall: FREE,
    }),
  },
  { others: 'warned' },
);

export type Spec = NonNullable<TypeOf<typeof CLUSTER_INSTANCE>['spec']>;
export type InstanceNode = TypeOf<typeof NODE>;

/** Keys whose values may be shown: those of all sites, and those that a shape names. */
export const listPublicKeys = (shape: Shape): ReadonlySet<string> =>
  new Set([...PUBLIC_KEYS, ...listMemberNames(shape).map((name) => name.toLowerCase())]);

const KEYS = listPublicKeys(CLUSTER_INSTANCE);

export type InstanceDocument = ConfigDocument<TypeOf<typeof CLUSTER_INSTANCE>>;

export const readInstance = (resource: FoundResource): InstanceDocument =>
  readFound(resource, CLUSTER_INSTANCE, { publicKeys: KEYS });

export type Conversion = {
  readonly spec: Spec;
  readonly nodes: readonly InstanceNode[];
  readonly flow: SiteFlow;
  readonly index: ResourceIndex;
  readonly document: InstanceDocument;
  /** Members of the files of a site that no ClusterInstance has. */
  readonly more?: { readonly install: object; readonly imageBased: object };
  readonly problems: DocumentProblem[];
  readonly warnings: DocumentProblem[];
};
