import type { ConfigProblem } from '../../document/problem.ts';
import { formatNetwork, overlaps, widthOf, type Cidr } from '../network/ip-address.ts';
import { invalid, tooMany, type Report } from '../document/report.ts';
import type { NetworkEntry, SiteNetworks } from './networks.ts';
import { checkStack } from './stack.ts';

const MOST_MACHINE_NETWORKS = 2;

/** @param internal what OVN-Kubernetes keeps for itself */
export function checkNetworking(
  report: Report,
  networks: SiteNetworks,
  internal: readonly Cidr[],
): readonly ConfigProblem[] {
  const { networkType, machine, service, cluster } = networks;
  const each = (kind: string, list: readonly NetworkEntry[]): readonly ConfigProblem[] =>
    list.flatMap((entry) =>
      explainNetwork(kind, entry, internal).map((why) =>
        report(entry.path, invalid(entry.text, why)),
      ),
    );
  return [
    ...checkNetworkType(report, networkType),
    ...checkCount(report, machine),
    ...each('machine', machine),
    ...each('service', service),
    ...each('cluster', cluster),
    ...cluster.flatMap((entry) => checkHostPrefix(report, entry)),
    ...checkOverlaps(report, networks),
    ...checkStack(report, networks),
  ];
}

function checkNetworkType(report: Report, networkType: string): readonly ConfigProblem[] {
  if (networkType === 'OVNKubernetes') return [];
  const why = 'Only OVNKubernetes network type is allowed for Single Node OpenShift (SNO) cluster';
  const shownPath = 'Networking.NetworkType';
  return [report('networking.networkType', invalid(networkType, why), { shownPath })];
}

function checkCount(report: Report, { length }: readonly NetworkEntry[]): readonly ConfigProblem[] {
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
  report: Report,
  { path, cidr, hostPrefix = 0 }: NetworkEntry,
): readonly ConfigProblem[] {
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

/** More networks than any cluster has. */
const MOST_NETWORKS = 100;

/** Every network against those before it: machine networks first, then service, then cluster networks. */
function checkOverlaps(report: Report, networks: SiteNetworks): readonly ConfigProblem[] {
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
