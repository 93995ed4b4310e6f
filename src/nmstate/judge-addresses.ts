import { contains, formatAddress, type IpAddress, isOfNoHost } from '../base/ip-address.ts';
import { groupBy } from '../base/lists.ts';
import {
  isDynamic,
  listAllAddresses,
  isLinkLocal,
  isThere,
  listAddresses,
  outOf,
} from './addresses.ts';
import type { InterfaceAddress } from './members.ts';
import type { NetworkState, NetworkRoute } from './read.ts';
import type { NetworkInterface } from './state.ts';
import { type NetworkFinding, join } from './values.ts';

/*
 * This file owns the rules for addresses and next hops. An address that cannot work is a problem. One
 * that a neighbour may refuse, or that NetworkManager corrects, gets a warning.
 */

export type Owned = InterfaceAddress & { readonly owner: string };

/** Addresses of interfaces that are up; the loopback has addresses that no other interface can have. */
export const listOwned = (each: NetworkInterface): readonly Owned[] =>
  each.state === 'up' && each.type !== 'loopback'
    ? listAllAddresses(each).map((address) => ({ ...address, owner: each.name }))
    : [];

const findingOf = ({ path, owner }: Owned, problem: string): NetworkFinding => ({
  path,
  owner,
  problem,
});

/** Addresses that no interface can use. */
export const checkAddresses = ({ interfaces }: NetworkState): readonly NetworkFinding[] =>
  interfaces.flatMap(listOwned).flatMap((each) => {
    const { text, subnet } = each;
    if (isOfNoHost(subnet)) return [findingOf(each, `no interface can have the address ${text}`)];
    return hasEdges(each) && subnet.value === subnet.last
      ? [findingOf(each, `${text} is the broadcast address of ${subnet.text}`)]
      : [];
  });

/** The first and the last address of an IPv4 subnet belong to no host (RFC 1122 3.2.1.3; /31: RFC 3021). */
const hasEdges = ({ subnet }: Owned): boolean => subnet.family === 4 && subnet.prefix <= 30;

/** Addresses that work with some neighbours, or on some interfaces. */
export function warnOfAddresses({ interfaces }: NetworkState): readonly NetworkFinding[] {
  const owned = interfaces.flatMap(listOwned);
  const owners = new Map<string, string>();
  // Each VRF has addresses of its own.
  const hasVrf = interfaces.some((each) => isThere(each) && each.type === 'vrf');
  return owned.flatMap((each) => {
    const { text, subnet, owner } = each;
    const known = owners.get(text) ?? owner;
    owners.set(text, known);
    return [
      ...(hasEdges(each) && subnet.value === subnet.first
        ? [findingOf(each, `${text} is the network address of ${subnet.text}`)]
        : []),
      ...(hasVrf || known === owner
        ? []
        : [findingOf(each, `${text} is also an address of "${known}"`)]),
    ];
  });
}

/** The kernel refuses a route over an address of the host itself (fib_check_nh). */
export function explainHop(
  hop: IpAddress | undefined,
  out: NetworkInterface | undefined,
): string | undefined {
  const isOwn =
    hop && out && listAddresses(out, hop.family).some(({ subnet }) => isSame(subnet, hop));
  return isOwn ? `${formatAddress(hop)} is the address of ${out.name} itself` : undefined;
}

const isSame = (a: IpAddress, b: IpAddress): boolean =>
  a.family === b.family && a.value === b.value;

/** NetworkManager adds a route to a next hop that is in no subnet; hardly any router answers there. */
export function warnOfHops({ byName, routes }: NetworkState): readonly NetworkFinding[] {
  const onLink = groupBy(
    routes.filter((route) => route['next-hop-address'] === undefined),
    outOf,
  );
  return routes.flatMap((route) => {
    const hop = route['next-hop-address'];
    const out = byName.get(outOf(route));
    if (!hop || hop.value === 0n || !out || isReached(hop, out, onLink.get(out.name))) return [];
    const problem = `${formatAddress(hop)} is in no subnet of interface ${out.name}`;
    return [{ path: join(route.path, 'next-hop-address'), problem }];
  });
}

function isReached(
  hop: IpAddress,
  out: NetworkInterface,
  onLink: readonly NetworkRoute[] = [],
): boolean {
  // A link-local address can be reached over any interface.
  if (isLinkLocal(hop) || isDynamic(out, hop.family)) return true;
  const mine = listAddresses(out, hop.family);
  const isAlone = mine.length > 0 && mine.every(({ subnet }) => subnet.first === subnet.last);
  return (
    isAlone ||
    mine.some(({ subnet }) => contains(subnet, hop)) ||
    onLink.some(({ destination }) => contains(destination, hop))
  );
}
