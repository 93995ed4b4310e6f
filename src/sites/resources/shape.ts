import type { DocumentProblem } from '../../base/errors.ts';
import {
  FLAG,
  FREE,
  INTEGER,
  list,
  listMemberNames,
  mapping,
  partial,
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

const NODE = partial({
  ...OF_HUB,
  hostName: TEXT,
  bmcAddress: TEXT,
  bmcCredentialsName: REFERENCE,
  bootMACAddress: TEXT,
  templateRefs: list(REFERENCE),
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
  hostRef: REFERENCE,
});

const CLUSTER_INSTANCE = partial(
  {
    apiVersion: TEXT,
    kind: TEXT,
    metadata: FREE,
    status: FREE,
    spec: partial({
      ...OF_HUB,
      clusterName: TEXT,
      baseDomain: TEXT,
      pullSecretRef: REFERENCE,
      clusterImageSetNameRef: TEXT,
      templateRefs: list(REFERENCE),
      nodes: list(NODE),
      sshPublicKey: TEXT,
      apiVIPs: list(TEXT),
      ingressVIPs: list(TEXT),
      additionalNTPSources: list(TEXT),
      machineNetwork: NETWORKS,
      clusterNetwork: NETWORKS,
      serviceNetwork: NETWORKS,
      networkType: TEXT,
      platformType: TEXT,
      proxy: partial({ httpProxy: TEXT, httpsProxy: TEXT, noProxy: TEXT }),
      installConfigOverrides: TEXT,
      ignitionConfigOverride: TEXT,
      diskEncryption: FREE,
      extraManifestsRefs: list(REFERENCE),
      cpuPartitioningMode: TEXT,
      cpuArchitecture: TEXT,
      clusterType: TEXT,
      caBundleRef: REFERENCE,
      holdInstallation: FLAG,
      reinstall: FREE,
    }),
  },
  { others: 'warned' },
);

export type Spec = NonNullable<TypeOf<typeof CLUSTER_INSTANCE>['spec']>;
export type InstanceNode = TypeOf<typeof NODE>;

const KEYS: ReadonlySet<string> = new Set([
  ...PUBLIC_KEYS,
  ...listMemberNames(CLUSTER_INSTANCE).map((name) => name.toLowerCase()),
]);

type Document = ReturnType<typeof readInstance>;

export const readInstance = (resource: FoundResource) =>
  readFound(resource, CLUSTER_INSTANCE, KEYS);

export type Conversion = {
  readonly spec: Spec;
  readonly nodes: readonly InstanceNode[];
  readonly flow: SiteFlow;
  readonly index: ResourceIndex;
  readonly document: Document;
  /** Members of the files of a site that no ClusterInstance has. */
  readonly more?: { readonly install: object; readonly imageBased: object };
  readonly problems: DocumentProblem[];
  readonly warnings: DocumentProblem[];
};
