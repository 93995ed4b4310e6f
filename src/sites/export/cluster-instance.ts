import { withoutUndefined } from '../../base/lists.ts';
import { unlessEmpty } from '../../base/text/words.ts';
import {
  AGENT_ROLES,
  type AgentCluster,
  type AgentRole,
} from '../../openshift/agent/agent-cluster.ts';
import { namePullSecret } from '../../openshift/agent/cluster-manifests.ts';
import { formatRendezvous } from '../../openshift/agent/rendezvous.ts';
import { toRpmName } from '../../openshift/release/bundle.ts';
import { chooseRendezvousIp } from '../agent/rendezvous.ts';
import { RENDEZVOUS_ANNOTATION } from '../resources/annotations.ts';
import { type SiteFlow, INSTANCE_API } from '../resources/shape.ts';
import { type ImageBasedSite, INSTALL_FILE } from '../site.ts';
import { listOverrides } from './overrides.ts';
import { BUNDLE_NAME, controllerSecretNameOf, metadataOf } from './payloads.ts';
import type { ExportHost, Members, SiteExport } from './site-export.ts';

/* Owns the ClusterInstance of a site (siteconfig.open-cluster-management.io/v1alpha1), as its reader takes it. */

export function clusterInstanceOf(exported: SiteExport, manifests: readonly string[]): Members {
  const { site, cluster, baseDomain, hosts } = exported;
  const flow: SiteFlow = site.kind;
  const spec = site.kind === 'agent' ? mapAgent(site.cluster, exported) : mapImageBased(site);
  return {
    apiVersion: INSTANCE_API,
    kind: 'ClusterInstance',
    metadata: metadataOf(exported, site.name, {
      annotations: site.kind === 'agent' ? annotationsOf(site.cluster, hosts) : undefined,
    }),
    spec: {
      clusterName: cluster,
      baseDomain,
      clusterImageSetNameRef: exported.imageSet,
      pullSecretRef: { name: namePullSecret(cluster) },
      templateRefs: [templateOf(exported, flow, 'cluster')],
      extraManifestsRefs: listNames(manifests),
      ...spec,
      nodes: hosts.map((host) => mapNode(exported, host, flow)),
    },
  };
}

const listNames = (names: readonly string[]): readonly Members[] | undefined =>
  names.length === 0 ? undefined : names.map((name) => ({ name }));

const PREFIXES: Readonly<Record<SiteFlow, string>> = { 'agent': 'ai', 'image-based': 'ibi' };

/** The templates that siteconfig brings along. */
const templateOf = (
  { templateNamespace: namespace }: SiteExport,
  flow: SiteFlow,
  level: 'cluster' | 'node',
): Members => ({ name: `${PREFIXES[flow]}-${level}-templates-v1`, namespace });

function mapImageBased({ install, imageBased }: ImageBasedSite): Members {
  const { additionalNTPSources: sources } = imageBased;
  return withoutUndefined({
    clusterType: 'SNO',
    sshPublicKey: unlessEmpty(install.sshKey),
    machineNetwork: install.machineNetworks?.map((cidr) => ({ cidr })),
    additionalNTPSources: sources.length === 0 ? undefined : sources,
    proxy: install.proxy,
    caBundleRef: install.additionalTrustBundle === undefined ? undefined : { name: BUNDLE_NAME },
  });
}

const PLATFORM_TYPES: Readonly<Record<AgentCluster['platform']['kind'], string>> = {
  baremetal: 'BareMetal',
  external: 'External',
  none: 'None',
};

function mapAgent(cluster: AgentCluster, exported: SiteExport): Members {
  checkCounts(cluster, exported);
  const { platform, ntpSources = [], overrides } = cluster;
  const { apiVIPs, ingressVIPs } = platform.kind === 'baremetal' ? platform : {};
  return withoutUndefined({
    clusterType: chooseType(cluster.replicas),
    cpuArchitecture: readArchitecture(cluster, exported),
    sshPublicKey: unlessEmpty(cluster.sshKey),
    machineNetwork: cluster.machineNetwork.map((cidr) => ({ cidr })),
    clusterNetwork: cluster.clusterNetwork,
    serviceNetwork: cluster.serviceNetwork.map((cidr) => ({ cidr })),
    networkType: readNetworkType(cluster, exported),
    platformType: PLATFORM_TYPES[platform.kind],
    apiVIPs,
    ingressVIPs,
    additionalNTPSources: ntpSources.length === 0 ? undefined : ntpSources,
    proxy: cluster.proxy,
    cpuPartitioningMode: overrides['cpuPartitioningMode'],
    installConfigOverrides: formatOverrides(cluster),
  });
}

const POOLS: Readonly<Record<AgentRole, string>> = {
  master: 'controlPlane',
  arbiter: 'arbiter',
  worker: 'compute',
};

/** The nodes of a ClusterInstance are all that the cluster has; hosts that only come up are not counted. */
function checkCounts({ replicas }: AgentCluster, { hosts, refuse }: SiteExport): void {
  for (const role of AGENT_ROLES) {
    const count = hosts.filter((host) => host.role === role).length;
    if (count === replicas[role]) continue;
    const problem = `the cluster has ${replicas[role]} hosts as ${role}, and ${count} of them are named: a ClusterInstance names every node`;
    refuse(
      { file: INSTALL_FILE, path: POOLS[role] },
      problem,
      'name each host in agent-config.yaml',
    );
  }
}

/** A single node with workers has no type of its own. */
function chooseType({ master, arbiter, worker }: AgentCluster['replicas']): string | undefined {
  if (arbiter > 0) return 'HighlyAvailableArbiter';
  if (master > 1) return 'HighlyAvailable';
  return worker === 0 ? 'SNO' : undefined;
}

function readArchitecture({ architecture }: AgentCluster, { refuse }: SiteExport): string {
  const name = toRpmName(architecture);
  const known = ['x86_64', 'aarch64'];
  if (!known.includes(name)) {
    const problem = `a ClusterInstance has hosts of ${known.join(' and ')}, not of ${name}`;
    refuse({ file: INSTALL_FILE, path: 'controlPlane.architecture' }, problem);
  }
  return name;
}

function readNetworkType({ networkType }: AgentCluster, { refuse }: SiteExport): string {
  const known = ['OVNKubernetes', 'OpenShiftSDN'];
  if (!known.includes(networkType)) {
    const problem = `a ClusterInstance has the network types ${known.join(' and ')}, not ${networkType}`;
    refuse({ file: INSTALL_FILE, path: 'networking.networkType' }, problem);
  }
  return networkType;
}

/** The namespace in install-config.yaml is not that of the resources. */
function formatOverrides(cluster: AgentCluster): string | undefined {
  const { namespace } = cluster;
  const overrides = withoutUndefined({
    metadata: namespace === undefined ? undefined : { namespace },
    ...listOverrides(cluster),
  });
  return Object.keys(overrides).length === 0 ? undefined : JSON.stringify(overrides);
}

/** Only if the reader would choose another host, or could not choose any. */
function annotationsOf(
  { rendezvousIp }: AgentCluster,
  hosts: readonly ExportHost[],
): Members | undefined {
  const chosen = chooseRendezvousIp({
    hosts: hosts.map(({ role, network, interfaces }) => ({
      role,
      interfaces,
      ...(network !== undefined && { networkConfig: network }),
    })),
  });
  return chosen !== undefined && formatRendezvous(chosen) === rendezvousIp
    ? undefined
    : { [RENDEZVOUS_ANNOTATION]: rendezvousIp };
}

function mapNode(exported: SiteExport, host: ExportHost, flow: SiteFlow): Members {
  const { refuse } = exported;
  const { hostname, controller, bootMac, interfaces, network, nodeLabels, place } = host;
  const named = hostname ?? '';
  if (hostname === undefined)
    refuse(place, 'a node of a ClusterInstance has a name', 'give the host a hostname');
  const lacking = [
    ...(controller === undefined ? ['the address of its controller'] : []),
    ...(bootMac === undefined ? ['the MAC address that it boots from'] : []),
  ];
  if (lacking.length > 0) {
    const problem = `a node of a ClusterInstance has ${lacking.join(' and ')}, and ${named} has not`;
    refuse(place, problem, 'name it in the table of --hosts');
  }
  return {
    hostName: hostname,
    role: host.role,
    bmcAddress: controller?.address,
    bmcCredentialsName: { name: controllerSecretNameOf(named) },
    bootMACAddress: bootMac,
    templateRefs: [templateOf(exported, flow, 'node')],
    rootDeviceHints: host.rootDeviceHints,
    nodeLabels: Object.keys(nodeLabels).length === 0 ? undefined : nodeLabels,
    nodeNetwork:
      interfaces.length === 0 && network === undefined
        ? undefined
        : withoutUndefined({ interfaces: nameInterfaces(interfaces), config: network }),
  };
}

/** The API wants a name for each; only those that a network configuration names have a meaning. */
const nameInterfaces = (interfaces: ExportHost['interfaces']): readonly Members[] | undefined =>
  interfaces.length === 0
    ? undefined
    : interfaces.map(({ name, macAddress }, index) => ({
        name: name ?? (index === 0 ? 'boot' : `boot${index}`),
        macAddress,
      }));
