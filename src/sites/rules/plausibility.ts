import type { DocumentProblem } from '../../base/errors.ts';
import {
  contains,
  formatAddress,
  overlaps,
  parseAddress,
  parseCidr,
  type Cidr,
  type Family,
} from '../../base/ip-address.ts';
import {
  readInterfaces,
  type InterfaceAddress,
  type NetworkInterface,
} from '../../nmstate/rules.ts';
import { listOf, mapOf, textOf, type FreeMap } from '../../nmstate/values.ts';
import { type Report, invalid } from '../../shape/report.ts';
import type { Plain } from '../../shape/shape.ts';

/* Owns the comparison of a node's addresses and routes with the networks of its cluster. */

/** The networks of install-config.yaml that a site's addresses must fit. */
export type ClusterNetworks = {
  /** Machine networks as written; empty if the user wrote no machine network. */
  readonly machine: readonly Cidr[];
  readonly service: readonly Cidr[];
  readonly cluster: readonly Cidr[];
};

type Hop = { readonly family: Family; readonly value: bigint };

/**
 * Checks that the addresses of a node make sense together with the networks of its cluster. The
 * node looks for its addresses in the machine networks; without one it never becomes ready.
 */
export function checkPlausibility(
  report: Report,
  network: Plain | undefined,
  networks: ClusterNetworks,
): readonly DocumentProblem[] {
  const interfaces = readInterfaces(network).filter(({ isUp }) => isUp);
  if (interfaces.length === 0) return [];
  const addresses = interfaces.flatMap((each) => each.addresses);
  return [
    ...checkMachineNetworks(report, { interfaces, addresses }, networks.machine),
    ...checkOwnNetworks(report, addresses, networks),
    ...checkEdges(report, addresses),
    ...checkTwice(report, interfaces),
    ...checkNextHops(report, network, interfaces),
  ];
}

type Given = {
  readonly interfaces: readonly NetworkInterface[];
  readonly addresses: readonly InterfaceAddress[];
};

/** Each machine network has an address of the node, or can get one from DHCP. */
function checkMachineNetworks(
  report: Report,
  { interfaces, addresses }: Given,
  machine: readonly Cidr[],
): readonly DocumentProblem[] {
  const dynamic = new Set(interfaces.flatMap((each) => each.dynamic));
  return machine.flatMap((cidr) => {
    const mine = addresses.filter(({ subnet }) => subnet.family === cidr.family);
    if (dynamic.has(cidr.family) || mine.some(({ subnet }) => contains(cidr, subnet))) return [];
    const [first] = mine;
    if (!first) {
      const why = `no interface has an IPv${cidr.family} address for machine network ${cidr.text}`;
      return [report('networkConfig', why)];
    }
    return [
      report(first.path, invalid(first.text, `no address is in machine network ${cidr.text}`)),
    ];
  });
}

function checkOwnNetworks(
  report: Report,
  addresses: readonly InterfaceAddress[],
  { service, cluster }: ClusterNetworks,
): readonly DocumentProblem[] {
  return addresses.flatMap(({ path, text, subnet }) => [
    ...listOverlaps(subnet, service).map((other) =>
      report(path, invalid(text, `its subnet must not overlap with service network ${other.text}`)),
    ),
    ...listOverlaps(subnet, cluster).map((other) =>
      report(path, invalid(text, `its subnet must not overlap with cluster network ${other.text}`)),
    ),
  ]);
}

const listOverlaps = (subnet: Cidr, others: readonly Cidr[]): readonly Cidr[] =>
  others.filter((other) => overlaps(subnet, other));

/**
 * The first and the last address of an IPv4 subnet belong to no host (RFC 1122 3.2.1.3; /31: RFC
 * 3021).
 */
function checkEdges(
  report: Report,
  addresses: readonly InterfaceAddress[],
): readonly DocumentProblem[] {
  return addresses.flatMap(({ path, text, subnet }) => {
    if (subnet.family === 6 || subnet.prefix > 30) return [];
    const isNetwork = subnet.value === subnet.first;
    if (!isNetwork && subnet.value !== subnet.last) return [];
    const what = isNetwork ? 'network' : 'broadcast';
    return [report(path, invalid(text, `this is the ${what} address of ${subnet.text}`))];
  });
}

/** Refuses an address on two interfaces, unless there are VRFs, each of which has its own addresses. */
function checkTwice(
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const owners = new Map<string, string>();
  if (interfaces.some(({ type }) => type === 'vrf')) return [];
  return interfaces.flatMap(({ name, addresses }) =>
    addresses.flatMap(({ path, text, subnet }) => {
      const address = formatAddress(subnet);
      const owner = owners.get(address) ?? name;
      owners.set(address, owner);
      return owner === name ? [] : [report(path, `Duplicate value: "${text}"`)];
    }),
  );
}

function checkNextHops(
  report: Report,
  network: Plain | undefined,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const byName = new Map(interfaces.map((each) => [each.name, each]));
  const routes = listOf(mapOf(mapOf(network)['routes'])['config']).map(mapOf);
  return routes.flatMap((route, index) => {
    const text = textOf(route['next-hop-address']) ?? '';
    const hop = parseAddress(text);
    const out = byName.get(textOf(route['next-hop-interface']) ?? '');
    if (!hop || !out || route['state'] === 'absent' || isLinkLocal(hop)) return [];
    if (routes.some((other) => isOnLink(other, out.name, hop))) return [];
    const why = explainNextHop(hop, out);
    const path = `networkConfig.routes.config[${index}].next-hop-address`;
    return why === undefined ? [] : [report(path, invalid(text, why))];
  });
}

/** fe80::/10 can be reached over any interface. */
const isLinkLocal = ({ family, value }: Hop): boolean => family === 6 && value >> 118n === 0x3fan;

/** A route without a gateway means that its hosts are on the link. */
function isOnLink(route: FreeMap, name: string, hop: Hop): boolean {
  const network = parseCidr(textOf(route['destination']) ?? '');
  const hasGateway = (textOf(route['next-hop-address']) ?? '') !== '';
  return (
    route['next-hop-interface'] === name &&
    !hasGateway &&
    network !== undefined &&
    contains(network, hop)
  );
}

function explainNextHop(
  hop: Hop,
  { name, addresses, dynamic }: NetworkInterface,
): string | undefined {
  if (dynamic.includes(hop.family)) return undefined;
  if (addresses.some(({ subnet }) => subnet.family === hop.family && subnet.value === hop.value)) {
    return `this is the address of ${name} itself`;
  }
  const mine = addresses.filter(({ subnet }) => subnet.family === hop.family);
  // NetworkManager adds a route to a gateway for an address that is alone in its subnet.
  const isAlone = mine.length > 0 && mine.every(({ subnet }) => subnet.first === subnet.last);
  return isAlone || mine.some(({ subnet }) => contains(subnet, hop))
    ? undefined
    : `this is in no subnet of interface ${name}`;
}
