import { parseAddress, parseCidr, contains } from '../../base/ip-address.ts';
import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { unlessEmpty } from '../../base/text/words.ts';
import { formatGoJson } from '../../shape/go-json.ts';
import { toRpmName } from '../release/bundle.ts';
import type { AgentCluster, AgentHost, AgentPlatform } from './agent-cluster.ts';
import { formatPullSecret } from './agent-manifests.ts';
import { formatGoYaml } from './go-yaml.ts';
import { INSTALL_OVERRIDES } from './install-overrides.ts';

/*
 * Owns the manifests by which a cluster of the agent-based installer is registered, as openshift-install
 * writes them (installer: pkg/asset/agent/manifests).
 */

type Members = Readonly<Record<string, unknown>>;

/** Values that the release on the medium chose, and that every cluster of it must have too. */
export type ReleaseManifests = {
  /** `metadata.name` of the ClusterImageSet. */
  readonly imageSet: string;
  /** Members of the InfraEnv of the medium, whose status and empty members the release chose. */
  readonly infraEnv: Members;
};

export type NamedText = { readonly name: string; readonly text: string };

/** The label by which the InfraEnv selects the networks of its hosts. */
export const NETWORK_LABEL = 'infraenvs.agent-install.openshift.io';

/** In the order of the files of openshift-install; the ClusterImageSet is the medium's own. */
export function renderClusterManifests(
  cluster: AgentCluster,
  release: ReleaseManifests,
): readonly NamedText[] {
  const created = readCreated(release.infraEnv);
  const describe = (members: Members): string =>
    formatGoYaml({
      ...members,
      metadata: {
        ...created,
        ...objectOrEmpty(members['metadata']),
        ...withoutUndefined({ namespace: cluster.namespace }),
      },
    });
  const { install, deployment, infraEnv, networks, pullSecret } = mapClusterManifests(
    cluster,
    release,
  );
  const texts = networks.map((network) => `${describe(network)}---\n`);
  return [
    { name: 'agent-cluster-install.yaml', text: describe(install) },
    { name: 'cluster-deployment.yaml', text: describe(deployment) },
    { name: 'infraenv.yaml', text: describe(infraEnv) },
    ...(texts.length === 0 ? [] : [{ name: 'nmstateconfig.yaml', text: texts.join('') }]),
    { name: 'pull-secret.yaml', text: describe(pullSecret) },
  ];
}

/** The resources of a cluster, without what a release adds to their metadata. */
export type ClusterManifests = Readonly<
  Record<'install' | 'deployment' | 'infraEnv' | 'pullSecret', Members>
> & { readonly networks: readonly Members[] };

export const mapClusterManifests = (
  cluster: AgentCluster,
  release: ReleaseManifests,
): ClusterManifests => ({
  install: mapInstall(cluster, release),
  deployment: mapDeployment(cluster),
  infraEnv: mapInfraEnv(cluster, release),
  networks: cluster.hosts.flatMap((host, index) => {
    const network = mapNetwork(cluster, host, index);
    return network ? [network] : [];
  }),
  pullSecret: mapPullSecret(cluster),
});

/** Older releases write an empty creation time into each manifest. */
function readCreated(infraEnv: Members): Members {
  const metadata = objectOrEmpty(infraEnv['metadata']);
  return 'creationTimestamp' in metadata ? { creationTimestamp: null } : {};
}

const INSTALL_API = { group: 'extensions.hive.openshift.io', version: 'v1beta1' };

function mapInstall(cluster: AgentCluster, { imageSet }: ReleaseManifests): Members {
  const { name, platform, replicas } = cluster;
  const overrides = formatOverrides(cluster);
  const isOvn = CARRIED_NETWORK_TYPES.includes(cluster.networkType);
  return {
    apiVersion: `${INSTALL_API.group}/${INSTALL_API.version}`,
    kind: 'AgentClusterInstall',
    metadata: {
      name,
      annotations: overrides === undefined ? undefined : { [INSTALL_OVERRIDES]: overrides },
    },
    spec: {
      clusterDeploymentRef: { name },
      imageSetRef: { name: imageSet },
      networking: {
        clusterNetwork: cluster.clusterNetwork,
        machineNetwork: cluster.machineNetwork.map((cidr) => ({ cidr })),
        networkType: isOvn ? cluster.networkType : 'OVNKubernetes',
        serviceNetwork: cluster.serviceNetwork,
        userManagedNetworking: platform.kind !== 'baremetal',
      },
      platformType: PLATFORM_TYPES[platform.kind],
      provisionRequirements: {
        controlPlaneAgents: replicas.master,
        arbiterAgents: replicas.arbiter || undefined,
        workerAgents: replicas.worker || undefined,
      },
      proxy: mapProxy(cluster),
      sshPublicKey: unlessEmpty(trimKey(cluster)),
      ...mapPlatform(platform),
      ...cluster.installMembers,
    },
    status: {
      debugInfo: { eventsURL: '', logsURL: '' },
      progress: { totalPercentage: 0 },
    },
  };
}

/** Network types that the AgentClusterInstall carries; another one is an override. */
const CARRIED_NETWORK_TYPES = ['OVNKubernetes', 'OpenShiftSDN'];

const PLATFORM_TYPES: Readonly<Record<AgentPlatform['kind'], string>> = {
  baremetal: 'BareMetal',
  external: 'External',
  none: 'None',
};

function mapPlatform(platform: AgentPlatform): Members {
  if (platform.kind === 'baremetal') {
    const { apiVIPs, ingressVIPs } = platform;
    return { apiVIP: apiVIPs[0], apiVIPs, ingressVIP: ingressVIPs[0], ingressVIPs };
  }
  if (platform.kind === 'none') return {};
  const { platformName } = platform;
  const cloudControllerManager = platformName === 'oci' ? 'External' : undefined;
  return { external: { platformName: unlessEmpty(platformName), cloudControllerManager } };
}

/** JSON text of what no member of the AgentClusterInstall carries; undefined if everything has a member. */
function formatOverrides(cluster: AgentCluster): string | undefined {
  const { fips, ...others } = cluster.overrides;
  const networking = CARRIED_NETWORK_TYPES.includes(cluster.networkType)
    ? undefined
    : mapNetworking(cluster);
  const { capabilities, ...rest } = others;
  const platform = mapOverriddenPlatform(cluster);
  const members = withoutUndefined({ fips, platform, capabilities, networking, ...rest });
  return Object.keys(members).length === 0 ? undefined : formatGoJson(toGo(members));
}

type GoValue = Parameters<typeof formatGoJson>[0];

/** Members in their own order. */
function toGo(value: unknown): GoValue {
  if (Array.isArray(value)) return value.map(toGo);
  if (typeof value !== 'object' || value === null) return value as GoValue;
  return new Map(
    Object.entries(value).flatMap(([name, member]) =>
      member === undefined ? [] : [[name, toGo(member)] as const],
    ),
  );
}

const mapNetworking = (cluster: AgentCluster): Members => ({
  networkType: cluster.networkType,
  machineNetwork: cluster.machineNetwork.map((cidr) => ({ cidr })),
  clusterNetwork: cluster.clusterNetwork,
  serviceNetwork: cluster.serviceNetwork,
});

function mapOverriddenPlatform({ platform, hosts }: AgentCluster): Members | undefined {
  if (platform.kind === 'none') return undefined;
  if (platform.kind === 'external') {
    const { platformName, cloudControllerManager } = platform;
    return {
      external: {
        platformName: unlessEmpty(platformName),
        cloudControllerManager: unlessEmpty(cloudControllerManager),
      },
    };
  }
  const managed = hosts.filter(({ bmc }) => bmc !== undefined);
  if (managed.length === 0) return undefined;
  return { baremetal: { hosts: managed.map(mapManagedHost), ...platform.provisioning } };
}

const mapManagedHost = ({ hostname, role, interfaces, bmc }: AgentHost): Members => ({
  name: unlessEmpty(hostname),
  bmc: { ...NO_BMC, ...bmc },
  role: role ?? '',
  bootMACAddress: interfaces[0]?.macAddress ?? '',
  hardwareProfile: '',
});

const NO_BMC = { username: '', password: '', address: '', disableCertificateVerification: false };

const mapDeployment = ({ name, baseDomain }: AgentCluster): Members => ({
  apiVersion: 'hive.openshift.io/v1',
  kind: 'ClusterDeployment',
  metadata: { name },
  spec: {
    baseDomain,
    clusterInstallRef: { ...INSTALL_API, kind: 'AgentClusterInstall', name },
    clusterName: name,
    controlPlaneConfig: { servingCertificates: {} },
    installed: false,
    platform: {},
    pullSecretRef: { name: namePullSecret(name) },
  },
  status: {},
});

export const namePullSecret = (cluster: string): string => `${cluster}-pull-secret`;

function mapInfraEnv(cluster: AgentCluster, { infraEnv }: ReleaseManifests): Members {
  const { name, namespace, trustBundle, ntpSources = [] } = cluster;
  const { spec, status } = infraEnv;
  const { ipxeScriptType } = objectOrEmpty(spec);
  return {
    apiVersion: 'agent-install.openshift.io/v1beta1',
    kind: 'InfraEnv',
    metadata: { name },
    spec: {
      additionalNTPSources: ntpSources.length === 0 ? undefined : ntpSources,
      additionalTrustBundle: unlessEmpty(trustBundle),
      clusterRef: { name, namespace },
      cpuArchitecture: toRpmName(cluster.architecture),
      ipxeScriptType,
      nmStateConfigLabelSelector: { matchLabels: { [NETWORK_LABEL]: name } },
      proxy: mapProxy(cluster),
      pullSecretRef: { name: namePullSecret(name) },
      sshAuthorizedKey: unlessEmpty(trimKey(cluster)),
    },
    status,
  };
}

const trimKey = ({ sshKey }: AgentCluster): string => sshKey.replace(/^[|\n\t]+|[|\n\t]+$/g, '');

/** The machine network of the rendezvous host is an exception, as agents reach that host in it. */
export function mapProxy({
  proxy,
  rendezvousIp,
  machineNetwork,
}: AgentCluster): Members | undefined {
  if (proxy === undefined) return undefined;
  const { httpProxy, httpsProxy, noProxy = '' } = proxy;
  const address = parseAddress(rendezvousIp);
  const own = machineNetwork.find((text) => {
    const cidr = parseCidr(text);
    return cidr !== undefined && address !== undefined && contains(cidr, address);
  });
  const isKnown = own === undefined || noProxy.includes(own);
  const exceptions = isKnown ? noProxy : [noProxy, own].filter((each) => each !== '').join(',');
  return {
    httpProxy: unlessEmpty(httpProxy),
    httpsProxy: unlessEmpty(httpsProxy),
    noProxy: unlessEmpty(exceptions),
  };
}

function mapNetwork(
  { name }: AgentCluster,
  { network, interfaces }: AgentHost,
  index: number,
): Members | undefined {
  if (network === undefined) return undefined;
  return {
    apiVersion: 'agent-install.openshift.io/v1beta1',
    kind: 'NMStateConfig',
    metadata: { labels: { [NETWORK_LABEL]: name }, name: `${name}-${index}` },
    spec: { config: network.value, interfaces },
  };
}

const mapPullSecret = ({ name, pullSecret }: AgentCluster): Members => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: namePullSecret(name) },
  stringData: { '.dockerconfigjson': formatPullSecret(pullSecret) },
});
