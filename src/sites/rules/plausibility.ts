import type { DocumentProblem } from '../../base/errors.ts';
import {
  contains,
  formatAddress,
  overlaps,
  type Cidr,
  type Family,
} from '../../base/ip-address.ts';
import { FAMILIES, isDynamic, listAddresses } from '../../nmstate/addresses.ts';
import type { InterfaceAddress } from '../../nmstate/members.ts';
import { type NetworkState, readNetworkState, type Route } from '../../nmstate/read.ts';
import type { NetworkInterface } from '../../nmstate/state.ts';
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
  const { state } = readNetworkState(network);
  const interfaces = state.interfaces.filter((each) => each.state === 'up');
  if (interfaces.length === 0) return [];
  const addresses = interfaces.flatMap(addressesOf);
  return [
    ...checkMachineNetworks(report, { interfaces, addresses }, networks.machine),
    ...checkOwnNetworks(report, addresses, networks),
    ...checkEdges(report, addresses),
    ...checkTwice(report, interfaces),
    ...checkNextHops(report, state),
  ];
}

const addressesOf = (each: NetworkInterface): readonly InterfaceAddress[] =>
  FAMILIES.flatMap((family) => listAddresses(each, family));

/** The path in the document of a path in its network. */
const pathOf = ({ path }: Pick<InterfaceAddress, 'path'>): string => `networkConfig.${path}`;

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
  const dynamic = new Set(
    FAMILIES.filter((family) => interfaces.some((each) => isDynamic(each, family))),
  );
  return machine.flatMap((cidr) => {
    const mine = addresses.filter(({ subnet }) => subnet.family === cidr.family);
    if (dynamic.has(cidr.family) || mine.some(({ subnet }) => contains(cidr, subnet))) return [];
    const [first] = mine;
    if (!first) {
      const why = `no interface has an IPv${cidr.family} address for machine network ${cidr.text}`;
      return [report('networkConfig', why)];
    }
    return [
      report(pathOf(first), invalid(first.text, `no address is in machine network ${cidr.text}`)),
    ];
  });
}

/** Warns of addresses whose subnet is another one than the machine network that they are in. */
export function warnOfPrefixes(
  report: Report,
  network: Plain | undefined,
  { machine }: ClusterNetworks,
): readonly DocumentProblem[] {
  const addresses = readNetworkState(network).state.interfaces.flatMap(addressesOf);
  return addresses.flatMap(({ path, text, subnet }) => {
    const around = machine.find((cidr) => cidr.family === subnet.family && contains(cidr, subnet));
    if (!around || around.prefix === subnet.prefix) return [];
    const why = `${subnet.text} has another prefix than machine network ${around.text}`;
    return [report(pathOf({ path }), invalid(text, why))];
  });
}

function checkOwnNetworks(
  report: Report,
  addresses: readonly InterfaceAddress[],
  { service, cluster }: ClusterNetworks,
): readonly DocumentProblem[] {
  return addresses.flatMap(({ path, text, subnet }) => [
    ...listOverlaps(subnet, service).map((other) =>
      report(
        pathOf({ path }),
        invalid(text, `its subnet must not overlap with service network ${other.text}`),
      ),
    ),
    ...listOverlaps(subnet, cluster).map((other) =>
      report(
        pathOf({ path }),
        invalid(text, `its subnet must not overlap with cluster network ${other.text}`),
      ),
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
    return [
      report(pathOf({ path }), invalid(text, `this is the ${what} address of ${subnet.text}`)),
    ];
  });
}

/** Refuses an address on two interfaces, unless there are VRFs, each of which has its own addresses. */
function checkTwice(
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const owners = new Map<string, string>();
  if (interfaces.some(({ type }) => type === 'vrf')) return [];
  return interfaces.flatMap((each) =>
    addressesOf(each).flatMap(({ path, text, subnet }) => {
      const address = formatAddress(subnet);
      const owner = owners.get(address) ?? each.name;
      owners.set(address, owner);
      return owner === each.name ? [] : [report(pathOf({ path }), `Duplicate value: "${text}"`)];
    }),
  );
}

function checkNextHops(
  report: Report,
  { interfaces, routes }: NetworkState,
): readonly DocumentProblem[] {
  return routes.flatMap((route) => {
    const hop = route['next-hop-address'];
    const out = interfaces.find(({ name }) => name === route['next-hop-interface']);
    if (!hop || !out || isLinkLocalHop(hop)) return [];
    if (routes.some((other) => isOnLink(other, out.name, hop))) return [];
    const why = explainNextHop(hop, out);
    const path = `${pathOf(route)}.next-hop-address`;
    return why === undefined ? [] : [report(path, invalid(formatAddress(hop), why))];
  });
}

/** fe80::/10 can be reached over any interface. */
const isLinkLocalHop = ({ family, value }: Hop): boolean =>
  family === 6 && value >> 118n === 0x3fan;

/** A route without a gateway means that its hosts are on the link. */
const isOnLink = (route: Route, name: string, hop: Hop): boolean =>
  route['next-hop-interface'] === name &&
  route['next-hop-address'] === undefined &&
  contains(route.destination, hop);

function explainNextHop(hop: Hop, out: NetworkInterface): string | undefined {
  if (isDynamic(out, hop.family)) return undefined;
  const mine = listAddresses(out, hop.family);
  if (mine.some(({ subnet }) => subnet.value === hop.value)) {
    return `this is the address of ${out.name} itself`;
  }
  // NetworkManager adds a route to a gateway for an address that is alone in its subnet.
  const isAlone = mine.length > 0 && mine.every(({ subnet }) => subnet.first === subnet.last);
  return isAlone || mine.some(({ subnet }) => contains(subnet, hop))
    ? undefined
    : `this is in no subnet of interface ${out.name}`;
}
