import { FLAG, FREE, INTEGER, list, map, record, TEXT, type ValueOf } from '../../shape/shape.ts';

/** Kubernetes' type and object metadata: accepted and, but for the name, not looked at. */
const OBJECT = {
  apiVersion: TEXT,
  kind: TEXT,
  metadata: record({
    name: TEXT,
    generateName: TEXT,
    namespace: TEXT,
    selfLink: TEXT,
    uid: TEXT,
    resourceVersion: TEXT,
    generation: INTEGER,
    creationTimestamp: TEXT,
    deletionTimestamp: TEXT,
    deletionGracePeriodSeconds: INTEGER,
    labels: map(TEXT),
    annotations: map(TEXT),
    ownerReferences: FREE,
    finalizers: list(TEXT),
    managedFields: FREE,
  }),
};

const MACHINE_POOL = record({
  name: TEXT,
  replicas: INTEGER,
  architecture: TEXT,
  hyperthreading: TEXT,
  platform: FREE,
  fencing: FREE,
  diskSetup: FREE,
  management: FREE,
  osImageStream: TEXT,
});

const CLUSTER_NETWORKS = list(
  record({ cidr: TEXT, hostPrefix: INTEGER, hostSubnetLength: INTEGER }),
);

const IMAGE_SOURCES = list(record({ source: TEXT, mirrors: list(TEXT), sourcePolicy: TEXT }));

/** Only that one of the others is there matters; their members do not. */
const PLATFORM = record({
  aws: FREE,
  azure: FREE,
  baremetal: FREE,
  external: FREE,
  gcp: FREE,
  ibmcloud: FREE,
  none: record({}),
  nutanix: FREE,
  openstack: FREE,
  powervc: FREE,
  powervs: FREE,
  vsphere: FREE,
});

/** install-config.yaml, with the deprecated networking keys that are still converted. */
export const INSTALL_CONFIG = record({
  ...OBJECT,
  additionalTrustBundle: TEXT,
  additionalTrustBundlePolicy: TEXT,
  sshKey: TEXT,
  baseDomain: TEXT,
  networking: record({
    networkType: TEXT,
    machineNetwork: list(record({ cidr: TEXT })),
    clusterNetwork: CLUSTER_NETWORKS,
    serviceNetwork: list(TEXT),
    clusterNetworkMTU: INTEGER,
    ovnKubernetesConfig: FREE,
    machineCIDR: TEXT,
    type: TEXT,
    serviceCIDR: TEXT,
    clusterNetworks: CLUSTER_NETWORKS,
  }),
  controlPlane: MACHINE_POOL,
  arbiter: MACHINE_POOL,
  compute: list(MACHINE_POOL),
  platform: PLATFORM,
  pullSecret: TEXT,
  proxy: record({ httpProxy: TEXT, httpsProxy: TEXT, noProxy: TEXT }),
  imageContentSources: list(record({ source: TEXT, mirrors: list(TEXT) })),
  imageDigestSources: IMAGE_SOURCES,
  publish: TEXT,
  operatorPublishingStrategy: FREE,
  fips: FLAG,
  cpuPartitioningMode: TEXT,
  credentialsMode: TEXT,
  bootstrapInPlace: record({ installationDisk: TEXT }),
  capabilities: record({
    baselineCapabilitySet: TEXT,
    additionalEnabledCapabilities: list(TEXT),
  }),
  featureSet: TEXT,
  featureGates: list(TEXT),
  osImageStream: TEXT,
});

/** Names of platforms, in the order of the alphabet. */
export const PLATFORMS: readonly string[] = Object.keys(PLATFORM.members);

/** install-config.yaml as the user wrote it, without any default. */
export type WrittenInstallConfig = ValueOf<typeof INSTALL_CONFIG>;

/** image-based-config.yaml. Two of its keys are written with underscores. */
export const IMAGE_BASED_CONFIG = record({
  ...OBJECT,
  additionalNTPSources: list(TEXT),
  hostname: TEXT,
  networkConfig: FREE,
  releaseRegistry: TEXT,
  cluster_id: TEXT,
  infra_id: TEXT,
  nodeLabels: map(TEXT),
});

export type WrittenImageBasedConfig = ValueOf<typeof IMAGE_BASED_CONFIG>;
