import type { ConfigProblem } from '../../config/document/problem.ts';
import type { Family } from '../network/ip-address.ts';
import { invalid, type Report } from '../document/report.ts';
import type { NetworkEntry, SiteNetworks } from '../network/networks.ts';

/** The service networks alone decide whether a cluster has one family of addresses or two. */
export function checkStack(
  report: Report,
  { machine, service, cluster }: SiteNetworks,
): readonly ConfigProblem[] {
  const families = listFamilies(service);
  const at = (list: string, entries: readonly NetworkEntry[], why: string): ConfigProblem =>
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

/** In the order in which they first occur. */
const listFamilies = (entries: readonly NetworkEntry[]): readonly Family[] => [
  ...new Set(entries.flatMap(({ cidr }) => (cidr ? [cidr.family] : []))),
];
