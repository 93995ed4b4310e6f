import { formatAddress, parseAddress } from '../../base/ip-address.ts';
import { isObject, withoutUndefined } from '../../base/lists.ts';
import { unlessEmpty } from '../../base/text/words.ts';
import { formatNetworkConfig, readInterfaces } from '../../nmstate/index.ts';
import type {
  AgentCluster,
  AgentHost,
  AgentPlatform,
  AgentRole,
  FencingCredential,
} from '../../openshift/agent/agent-cluster.ts';
import { formatRendezvous } from '../../openshift/agent/rendezvous.ts';
import { readProxy } from '../rules/install-config.ts';
import { type NetworkEntry, resolveNetworks } from '../rules/networks.ts';
import type {
  WrittenAgentConfig,
  WrittenAgentHost,
  WrittenAgentInstall,
  WrittenBaremetal,
} from './documents.ts';
import { resolveProvisioning } from './provisioning.ts';
import { chooseRendezvousIp } from './rendezvous.ts';
import { countNodes } from '../rules/machine-pools.ts';
import { listVips } from './vips.ts';

/* Reads the cluster out of install-config.yaml and agent-config.yaml that have no problem. */

type Rest = Pick<AgentCluster, 'manifests' | 'agentConfig' | 'installMembers' | 'release'>;

export function readAgentCluster(
  install: WrittenAgentInstall,
  agent: WrittenAgentConfig,
  rest: Rest,
): AgentCluster {
  return {
    ...rest,
    ...readNames(install),
    ...readAgentNetworks(install),
    replicas: countNodes(install),
    platform: readPlatform(install),
    ntpSources: listTimeServers(agent, install.platform?.baremetal),
    overrides: parseOverrides(install),
    fencing: (install.controlPlane?.fencing?.credentials ?? []).map(readFencing),
    hosts: listAgentHosts(install, agent).map(readHost),
    rendezvousIp: formatRendezvous(chooseRendezvousIp(withHosts(install, agent)) ?? ''),
    mirrors: [...(install.imageDigestSources ?? []), ...(install.imageContentSources ?? [])].map(
      ({ source = '', mirrors = [] } = {}) => ({
        source,
        mirrors: mirrors.flatMap((mirror = '') => (mirror === '' ? [] : [mirror])),
      }),
    ),
  };
}

type Names = 'name' | 'namespace' | 'baseDomain' | 'sshKey' | 'pullSecret' | 'architecture';

function readNames(install: WrittenAgentInstall): Pick<AgentCluster, Names> {
  const { metadata = {}, baseDomain = '', sshKey = '', pullSecret = '' } = install;
  return {
    name: metadata.name ?? '',
    ...withoutUndefined({ namespace: unlessEmpty(metadata.namespace) }),
    baseDomain,
    sshKey,
    pullSecret,
    architecture: install.controlPlane?.architecture ?? 'amd64',
  };
}

type NetworkMembers =
  'networkType' | 'machineNetwork' | 'clusterNetwork' | 'serviceNetwork' | 'proxy' | 'trustBundle';

function readAgentNetworks(install: WrittenAgentInstall): Pick<AgentCluster, NetworkMembers> {
  const networks = resolveNetworks(install.networking);
  const proxy = readProxy(install.proxy);
  return {
    networkType: networks.networkType,
    machineNetwork: networks.machine.map(canonicalOf),
    clusterNetwork: networks.cluster.map((entry) => ({
      cidr: canonicalOf(entry),
      hostPrefix: entry.hostPrefix ?? 0,
    })),
    serviceNetwork: networks.service.map(canonicalOf),
    ...withoutUndefined({ proxy, trustBundle: unlessEmpty(install.additionalTrustBundle) }),
  };
}

/** Hosts of agent-config.yaml count before those of install-config.yaml. */
export const withHosts = (
  install: WrittenAgentInstall,
  agent: WrittenAgentConfig,
): WrittenAgentConfig => ({ ...agent, hosts: listAgentHosts(install, agent) });

export function listAgentHosts(
  { platform }: WrittenAgentInstall,
  { hosts = [] }: WrittenAgentConfig,
): readonly WrittenAgentHost[] {
  if (hosts.length > 0) return hosts.map((host = {}) => host);
  return (platform?.baremetal?.hosts ?? []).map((host = {}) => {
    const { name: hostname, role, rootDeviceHints, networkConfig, bmc: BMC, bootMACAddress } = host;
    const named = readInterfaces(networkConfig).flatMap(({ name, 'mac-address': macAddress }) =>
      macAddress === undefined ? [] : [{ name, macAddress }],
    );
    const boot = { name: 'boot', ...withoutUndefined({ macAddress: bootMACAddress }) };
    return withoutUndefined({
      hostname,
      role,
      rootDeviceHints,
      networkConfig,
      BMC,
      interfaces: named.length > 0 ? named : [boot],
    });
  });
}

/** Go writes a network with its prefix and without zeros. */
function canonicalOf({ text, cidr }: NetworkEntry): string {
  const address = parseAddress(text.replace(/\/.*/, ''));
  return cidr && address ? `${formatAddress(address)}/${cidr.prefix}` : text;
}

function readPlatform({ platform = {}, networking }: WrittenAgentInstall): AgentPlatform {
  const { baremetal, external } = platform;
  if (external) {
    const { platformName = '', cloudControllerManager = '' } = external;
    return { kind: 'external', platformName, cloudControllerManager };
  }
  if (!baremetal) return { kind: 'none' };
  const { api, ingress } = listVips(baremetal);
  const machine = resolveNetworks(networking).machine.flatMap(({ cidr }) => (cidr ? [cidr] : []));
  const { network, cidr, clusterIp, range } = resolveProvisioning(baremetal, machine);
  return {
    kind: 'baremetal',
    apiVIPs: api,
    ingressVIPs: ingress,
    provisioning: withoutUndefined({
      clusterProvisioningIP: unlessEmpty(clusterIp),
      provisioningNetwork: network,
      provisioningNetworkInterface: unlessEmpty(baremetal.provisioningNetworkInterface),
      provisioningNetworkCIDR: cidr,
      provisioningDHCPRange: unlessEmpty(range),
    }),
  };
}

const listTimeServers = (
  { additionalNTPSources = [] }: WrittenAgentConfig,
  { additionalNTPServers = [] }: WrittenBaremetal = {},
): readonly string[] =>
  (additionalNTPSources.length > 0 ? additionalNTPSources : additionalNTPServers).map(
    (source = '') => source,
  );

/** In the order of the installer's own struct. */
function parseOverrides(install: WrittenAgentInstall): Readonly<Record<string, unknown>> {
  const {
    additionalTrustBundlePolicy: policy = '',
    cpuPartitioningMode = '',
    capabilities,
  } = install;
  return withoutUndefined({
    fips: install.fips === true ? true : undefined,
    capabilities,
    cpuPartitioningMode: cpuPartitioningMode === 'AllNodes' ? cpuPartitioningMode : undefined,
    additionalTrustBundlePolicy: ['', 'Proxyonly'].includes(policy) ? undefined : policy,
    featureSet: unlessEmpty(install.featureSet),
    featureGates: install.featureGates?.length ? install.featureGates : undefined,
  });
}

const readFencing = (written: Partial<FencingCredential> = {}): FencingCredential => {
  const { hostName = '', username = '', password = '', address = '' } = written;
  const { certificateVerification = '' } = written;
  return {
    hostName,
    username,
    password,
    address,
    ...withoutUndefined({ certificateVerification: unlessEmpty(certificateVerification) }),
  };
};

function readHost({
  hostname,
  role,
  rootDeviceHints: hints,
  interfaces = [],
  networkConfig,
  BMC: bmc = {},
}: WrittenAgentHost): AgentHost {
  const isManaged = [bmc.username, bmc.password, bmc.address].some((text = '') => text !== '');
  const given = hints && withoutUndefined(hints);
  return {
    interfaces: interfaces.map(({ name, macAddress = '' } = {}) => ({
      macAddress,
      ...withoutUndefined({ name }),
    })),
    ...withoutUndefined({
      hostname: unlessEmpty(hostname),
      role: unlessEmpty(role) as AgentRole | undefined,
      rootDeviceHints: given && Object.keys(given).length > 0 ? given : undefined,
      network: isObject(networkConfig)
        ? {
            // Only nmstatectl reads it.
            get text() {
              return formatNetworkConfig(networkConfig);
            },
            value: networkConfig,
          }
        : undefined,
      bmc: isManaged ? bmc : undefined,
    }),
  };
}
