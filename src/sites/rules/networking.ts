import type { DocumentProblem } from '../../base/errors.ts';
import { formatNetwork, overlaps, widthOf, type Cidr, type Family } from '../../base/ip-address.ts';
import { type ReportProblem, invalid, tooMany } from '../../shape/report.ts';
import { listInternalNetworks, type NetworkEntry, type SiteNetworks } from './networks.ts';

/* Owns the rules of cluster, service, machine and join networks, and of their overlaps. */

const MOST_MACHINE_NETWORKS = 2;

export function checkNetworking(
  report: ReportProblem,
  networks: SiteNetworks,
): readonly DocumentProblem[] {
  const { machine, service, cluster } = networks;
  const internal = listInternalNetworks(networks);
  const each = (kind: string, list: readonly NetworkEntry[]): readonly DocumentProblem[] =>
    list.flatMap((entry) =>
      explainNetwork(kind, entry, internal).map((why) =>
        report(entry.path, invalid(entry.text, why)),
      ),
    );
  return [
    ...each('machine', machine),
    ...each('service', service),
    ...each('cluster', cluster),
    ...cluster.flatMap((entry) => checkHostPrefix(report, entry)),
    ...checkSamePrefix(report, cluster),
    ...checkJoinNetwork(report, networks),
    ...checkOverlaps(report, networks),
    ...checkStack(report, networks),
  ];
}

/** Rules that only a cluster of a single node must keep. */
export const checkSingleNodeNetworks = (
  report: ReportProblem,
  networks: SiteNetworks,
): readonly DocumentProblem[] => [
  ...checkNetworkType(report, networks),
  ...checkCount(report, networks.machine),
];

function checkNetworkType(
  report: ReportProblem,
  { networkType, networkTypePath }: SiteNetworks,
): readonly DocumentProblem[] {
  if (networkType === 'OVNKubernetes') return [];
  const why = 'Only OVNKubernetes network type is allowed for Single Node OpenShift (SNO) cluster';
  const shownPath = 'Networking.NetworkType';
  return [report(networkTypePath, invalid(networkType, why), { shownPath })];
}

function checkCount(
  report: ReportProblem,
  { length }: readonly NetworkEntry[],
): readonly DocumentProblem[] {
  if (length <= MOST_MACHINE_NETWORKS) return [];
  const shownPath = 'Networking.MachineNetwork';
  const problem = tooMany(length, MOST_MACHINE_NETWORKS);
  return [report('networking.machineNetwork', problem, { shownPath })];
}

function explainNetwork(
  kind: string,
  { cidr, text }: NetworkEntry,
  internal: readonly Cidr[],
): readonly string[] {
  if (!cidr) return [`invalid CIDR address: ${text}`];
  const canonical = formatNetwork(cidr);
  const taken = internal.filter((network) => overlaps(network, cidr));
  return [
    ...(cidr.value === 0n ? ['address must be specified'] : []),
    ...(cidr.value === cidr.first
      ? []
      : [`invalid network address. got ${text}, expecting ${canonical}`]),
    ...taken.map(
      (network) => `must not overlap with the OVNKubernetes internal subnet ${network.text}`,
    ),
    ...(kind === 'service' ? explainServiceSize(cidr) : []),
  ];
}

function explainServiceSize({ family, prefix }: Cidr): readonly string[] {
  const shortest = family === 4 ? 12 : 108;
  return prefix < shortest
    ? [`subnet size for IPv${family} service network must be /${shortest} or longer`]
    : [];
}

function checkHostPrefix(
  report: ReportProblem,
  { path, cidr, hostPrefix = 0 }: NetworkEntry,
): readonly DocumentProblem[] {
  const why = cidr && explainHostPrefix(cidr, hostPrefix);
  if (why === undefined) return [];
  const at = path.replace(/\.cidr$/, '.hostPrefix');
  return [report(at, invalid(String(hostPrefix), why))];
}

function explainHostPrefix(cidr: Cidr, hostPrefix: number): string | undefined {
  if (hostPrefix < cidr.prefix) {
    return `cluster network host subnetwork prefix ${hostPrefix} must not be larger size than CIDR ${cidr.text}`;
  }
  if (cidr.family === 6 && hostPrefix !== 64) {
    return 'cluster network host subnetwork prefix must be 64 for IPv6 networks';
  }
  return hostPrefix > widthOf(cidr.family)
    ? `cluster network host subnetwork prefix ${hostPrefix} is longer than an address`
    : undefined;
}

/** Checks prefixes of IPv4; the prefix of IPv6 is always 64. */
function checkSamePrefix(
  report: ReportProblem,
  cluster: readonly NetworkEntry[],
): readonly DocumentProblem[] {
  const [first, ...others] = cluster.filter(({ cidr }) => cidr?.family === 4);
  const why = 'cluster network host subnetwork prefix must be the same value for IPv4 networks';
  return others
    .filter(({ hostPrefix }) => hostPrefix !== first?.hostPrefix)
    .map(({ path, hostPrefix = 0 }) =>
      report(path.replace(/\.cidr$/, '.hostPrefix'), invalid(String(hostPrefix), why)),
    );
}

/** The join network needs an address for each of the nodes that the cluster networks have room for. */
function checkJoinNetwork(
  report: ReportProblem,
  { join, cluster }: SiteNetworks,
): readonly DocumentProblem[] {
  if (!join) return [];
  const { cidr, path, text } = join;
  const nodes = cluster
    .filter((entry) => entry.cidr?.family === 4)
    .reduce((sum, entry) => sum + 2 ** ((entry.hostPrefix ?? 0) - (entry.cidr?.prefix ?? 0)), 0);
  const isSmall = cidr?.family === 4 && 2 ** (32 - cidr.prefix) < nodes;
  const why = [
    ...explainNetwork('join', join, []),
    ...(isSmall ? [`it is not large enough for the ${nodes} nodes of the cluster networks`] : []),
  ];
  return why.map((each) => report(path, invalid(text, each)));
}

/** More networks than any cluster has. */
const MOST_NETWORKS = 100;

/** Compares every network with the ones before it: machine, then service, then cluster networks. */
function checkOverlaps(report: ReportProblem, networks: SiteNetworks): readonly DocumentProblem[] {
  const kinds = ['machine', 'service', 'cluster'] as const;
  const all = kinds.flatMap((kind) =>
    networks[kind].map((entry, index) => ({ kind, entry, index })),
  );
  if (all.length > MOST_NETWORKS) {
    return [report('networking', tooMany(all.length, MOST_NETWORKS))];
  }
  return all.flatMap(({ kind, entry }, at) =>
    all.slice(0, at).flatMap((other) => {
      if (!entry.cidr || !other.entry.cidr || !overlaps(entry.cidr, other.entry.cidr)) return [];
      const why = `${kind} network must not overlap with ${other.kind} network ${other.index}`;
      return [report(entry.path, invalid(entry.text, why))];
    }),
  );
}

/** The service networks alone decide whether a cluster has one family of addresses or two. */
function checkStack(
  report: ReportProblem,
  { machine, service, cluster }: SiteNetworks,
): readonly DocumentProblem[] {
  const families = listFamilies(service);
  const at = (list: string, entries: readonly NetworkEntry[], why: string): DocumentProblem =>
    report(`networking.${list}`, invalid(entries.map(({ text }) => text).join(', '), why));
  if (families.length < 2) {
    return service.length > 1
      ? [at('serviceNetwork', service, 'only one service network can be specified')]
      : [];
  }
  const count =
    'when installing dual-stack IPv4/IPv6 you must provide two service networks, one for each IP address type';
  return [
    ...(service.length === 2 ? [] : [at('serviceNetwork', service, count)]),
    ...explainFamilies(families, machine).map((why) => at('machineNetwork', machine, why)),
    ...explainFamilies(families, cluster).map((why) => at('clusterNetwork', cluster, why)),
  ];
}

function explainFamilies(
  families: readonly Family[],
  entries: readonly NetworkEntry[],
): readonly string[] {
  const found = listFamilies(entries);
  const missing = families.filter((family) => !found.includes(family));
  if (missing.length > 0) {
    return missing.map(
      (family) => `dual-stack IPv4/IPv6 requires an IPv${family} network in this list`,
    );
  }
  return found[0] === families[0]
    ? []
    : [`IPv${families[0] ?? 4} must come first, as in the list of service networks`];
}

/** Families in the order in which they first occur. */
const listFamilies = (entries: readonly NetworkEntry[]): readonly Family[] => [
  ...new Set(entries.flatMap(({ cidr }) => (cidr ? [cidr.family] : []))),
];
