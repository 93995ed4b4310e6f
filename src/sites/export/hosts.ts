import { isObject, withoutUndefined } from '../../base/lists.ts';
import { readInterfaces } from '../../nmstate/index.ts';
import {
  AGENT_ROLES,
  type AgentCluster,
  type AgentHost,
  type AgentRole,
} from '../../openshift/agent/agent-cluster.ts';
import { parse } from '../../shape/parse-text.ts';
import type { Plain } from '../../shape/shape.ts';
import { type ImageBasedSite, type Site, AGENT_FILE, IMAGE_BASED_FILE } from '../site.ts';
import type { HostController, FindController } from './host-table.ts';
import type { ExportHost, Members } from './site-export.ts';

/* Owns the hosts of a site of either kind, with the controllers that a table adds. */

export const listExportHosts = (site: Site, find: FindController): readonly ExportHost[] =>
  (site.kind === 'agent' ? listAgentHosts(site.cluster) : [readNode(site)]).map((host) => {
    const { hostname = '', controller, bootMac } = host;
    const found = find(site.name, hostname);
    return {
      ...host,
      ...withoutUndefined({
        controller: found?.controller ?? controller,
        bootMac: found?.bootMac ?? bootMac,
      }),
    };
  });

function listAgentHosts({ hosts, replicas }: AgentCluster): readonly ExportHost[] {
  const roles = chooseRoles(hosts, replicas);
  return hosts.map((host, index) => {
    const { hostname, interfaces, network, rootDeviceHints, bmc } = host;
    return {
      role: roles[index] ?? 'worker',
      isRoleChosen: host.role === undefined,
      interfaces,
      nodeLabels: {},
      place: { file: AGENT_FILE, path: `hosts[${index}]` },
      ...withoutUndefined({
        hostname,
        network: network?.value,
        rootDeviceHints,
        bootMac: interfaces[0]?.macAddress,
        controller: readController(bmc),
      }),
    };
  });
}

/** Hosts without a role fill what the others leave, in the order of the roles. */
function chooseRoles(
  hosts: readonly AgentHost[],
  replicas: AgentCluster['replicas'],
): readonly AgentRole[] {
  const left = AGENT_ROLES.flatMap((role) => {
    const taken = hosts.filter((host) => host.role === role).length;
    return Array.from({ length: Math.max(0, replicas[role] - taken) }, () => role);
  });
  return hosts.map(({ role }) => role ?? left.shift() ?? 'worker');
}

function readController(bmc: Members = {}): HostController | undefined {
  const text = (name: string): string | undefined => {
    const value = bmc[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const address = text('address');
  if (address === undefined) return undefined;
  return {
    address,
    disableCertificateVerification: bmc['disableCertificateVerification'] === true,
    ...withoutUndefined({ username: text('username'), password: text('password') }),
  };
}

function readNode({ imageBased }: ImageBasedSite): ExportHost {
  const { hostname, networkConfig, nodeLabels } = imageBased;
  const value = networkConfig === undefined ? undefined : parse(networkConfig);
  const network = isObject(value) ? (value as Plain) : undefined;
  const interfaces = readInterfaces(network).flatMap(({ name, 'mac-address': macAddress }) =>
    macAddress === undefined ? [] : [{ name, macAddress }],
  );
  return {
    hostname,
    role: 'master',
    isRoleChosen: false,
    interfaces,
    nodeLabels,
    place: { file: IMAGE_BASED_FILE, path: 'hostname' },
    ...withoutUndefined({ network, bootMac: interfaces[0]?.macAddress }),
  };
}
