import type { DocumentProblem } from '../../base/errors.ts';
import { type Cidr, widthOf } from '../../base/ip-address.ts';
import { maxOf } from '../../base/lists.ts';
import { type ReportProblem, invalid } from '../../shape/report.ts';
import { type NetworkEntry, resolveNetworks, type SiteNetworks } from '../rules/networks.ts';
import type { WrittenAgentInstall } from './documents.ts';
import { countNodes } from '../rules/machine-pools.ts';
import { findPlatform } from './topology.ts';

/*
 * Owns the rules of networks that a cluster passes at openshift-install and fails when it is registered, with
 * the ids of assisted-service (internal/cluster/validator.go, internal/network).
 */

export function checkAgentNetworks(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const networks = resolveNetworks(written.networking);
  const counts = countNodes(written);
  const nodes = counts.master + counts.worker;
  return [
    ...checkAgentNetworkType(report, networks),
    ...checkMachineCount(report, written, networks),
    ...checkSizes(report, networks, nodes === 1),
    ...networks.cluster.flatMap((entry) => checkPrefix(report, entry, nodes)),
  ];
}

const KNOWN_TYPES = ['OVNKubernetes', 'Cilium', 'Calico', 'CiscoACI', 'None'];

function checkAgentNetworkType(
  report: ReportProblem,
  { networkType, networkTypePath }: SiteNetworks,
): readonly DocumentProblem[] {
  if (networkType === 'OpenShiftSDN') {
    const why = 'networkType OpenShiftSDN is not supported, please use OVNKubernetes';
    return [report(networkTypePath, invalid(networkType, why))];
  }
  if (KNOWN_TYPES.includes(networkType)) return [];
  const why =
    'The network type is not valid; the valid network types are OpenShiftSDN, OVNKubernetes, Cilium, Calico, ' +
    'CiscoACI, or None';
  return [
    report(networkTypePath, invalid(networkType, why), { code: 'validation.network-type-valid' }),
  ];
}

/** The installer takes several networks of one family; the service that balances the load does not. */
function checkMachineCount(
  report: ReportProblem,
  written: WrittenAgentInstall,
  { machine }: SiteNetworks,
): readonly DocumentProblem[] {
  const isBalanced =
    findPlatform(written) === 'baremetal' &&
    written.platform?.baremetal?.loadBalancer?.type !== 'UserManaged';
  const families = machine.map(({ cidr }) => cidr?.family);
  if (!isBalanced || new Set(families).size === families.length) return [];
  const why = 'Single-stack cluster cannot contain multiple Machine Networks';
  return [report('networking.machineNetwork', why, { code: 'validation.machine-cidr-defined' })];
}

/** Bits of a host in the smallest network of each kind. */
function checkSizes(
  report: ReportProblem,
  { machine, service, cluster }: SiteNetworks,
  isSingle: boolean,
): readonly DocumentProblem[] {
  const least = (entries: readonly NetworkEntry[], bits: number): readonly DocumentProblem[] =>
    entries.flatMap(({ path, text, cidr }) => {
      if (!cidr || widthOf(cidr.family) - cidr.prefix >= bits) return [];
      const why =
        `Address mask size must be between 1 to ${widthOf(cidr.family) - bits} and must include at least ` +
        `${2 ** bits} addresses`;
      return [report(path, invalid(text, why))];
    });
  return [...least(machine, isSingle ? 1 : 4), ...least(service, 7), ...least(cluster, 7)];
}

const LEAST_POD_BITS = 7;

function checkPrefix(
  report: ReportProblem,
  { path, cidr, hostPrefix = 0 }: NetworkEntry,
  nodes: number,
): readonly DocumentProblem[] {
  if (!cidr || hostPrefix < cidr.prefix) return [];
  const most = widthOf(cidr.family) - LEAST_POD_BITS;
  const why =
    hostPrefix > most ? explainLong(hostPrefix, most) : explainFew(cidr, hostPrefix, nodes);
  if (why === undefined) return [];
  return [
    report(path.replace(/\.cidr$/, '.hostPrefix'), `Invalid Cluster Network prefix: ${why}`, {
      code: 'validation.network-prefix-valid',
    }),
  ];
}

const explainLong = (hostPrefix: number, most: number): string =>
  `Host prefix, now ${hostPrefix}, must be less than or equal to ${most} to allow at least 128 addresses`;

function explainFew({ prefix }: Cidr, hostPrefix: number, nodes: number): string | undefined {
  const room = 2 ** (hostPrefix - prefix);
  const needed = nodes === 1 ? 1 : maxOf([4, nodes]);
  return room >= needed
    ? undefined
    : `Cluster network CIDR prefix ${prefix} does not contain enough addresses for ${nodes} hosts each one with ` +
        `${hostPrefix} prefix (${room} addresses)`;
}
