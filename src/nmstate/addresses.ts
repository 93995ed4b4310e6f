import { contains, type Family, type IpAddress, parseCidr } from '../base/ip-address.ts';
import type { NetworkState, NetworkRoute } from './read.ts';
import type { InterfaceAddress, IpSettings } from './members.ts';
import type { NetworkInterface } from './state.ts';
import type { NetworkFinding } from './values.ts';

/* This file owns the meaning of address settings, and the choice of the interface for name servers. */

export const FAMILIES = [4, 6] as const;

export const settingsOf = (each: NetworkInterface, family: Family): IpSettings =>
  each[`ipv${family}`] ?? {};

export const isEnabled = (each: NetworkInterface, family: Family): boolean =>
  settingsOf(each, family).enabled === true;

/** True if the addresses of a family come from DHCP or router advertisements. */
export function isDynamic(each: NetworkInterface, family: Family): boolean {
  const { enabled, dhcp, autoconf } = settingsOf(each, family);
  return enabled === true && (dhcp === true || (family === 6 && autoconf === true));
}

const LINK_LOCAL = parseCidr('fe80::/10');

/** Addresses of fe80::/10 exist without being configured; nmstate leaves them out of profiles. */
export const isLinkLocal = (address: IpAddress): boolean =>
  LINK_LOCAL !== undefined && contains(LINK_LOCAL, address);

/** The addresses that a profile gets. */
export const listAddresses = (
  each: NetworkInterface,
  family: Family,
): readonly InterfaceAddress[] =>
  isEnabled(each, family)
    ? (settingsOf(each, family).address ?? []).filter(({ subnet }) => !isLinkLocal(subnet))
    : [];

export const listAllAddresses = (each: NetworkInterface): readonly InterfaceAddress[] =>
  FAMILIES.flatMap((family) => listAddresses(each, family));

const isStatic = (each: NetworkInterface, family: Family): boolean =>
  !isDynamic(each, family) && listAddresses(each, family).length > 0;

/** True if the interface exists on the host after the document is applied. */
export const isThere = ({ state }: NetworkInterface): boolean => state === 'up' || state === 'down';

/** Ports of a bond, a bridge or a VRF, with their paths; an Open vSwitch bond is a port with ports. */
export function listPorts(each: NetworkInterface): readonly Port[] {
  const { 'link-aggregation': bond, bridge, vrf } = each;
  return [
    ...name(bond?.port, `${each.path}.link-aggregation.port`),
    ...name(bridge?.port, `${each.path}.bridge.port`),
    ...name(vrf?.port, `${each.path}.vrf.port`),
  ];
}

/** The interface on which one of a type like VLAN is, with its path. */
export function listBases(each: NetworkInterface): readonly Port[] {
  const sections = ['vlan', 'vxlan', 'mac-vlan', 'mac-vtap'] as const;
  return sections.flatMap((section) => {
    const base = each[section]?.['base-iface'];
    return base === undefined ? [] : [{ name: base, path: `${each.path}.${section}.base-iface` }];
  });
}

export type Port = { readonly name: string; readonly path: string };
type OvsPort = {
  readonly 'name': string;
  readonly 'link-aggregation'?:
    { readonly port?: readonly { readonly name: string }[] | undefined } | undefined;
};

const name = (ports: readonly (string | OvsPort)[] | undefined, path: string): readonly Port[] =>
  (ports ?? []).flatMap((port, at): readonly Port[] => {
    if (typeof port === 'string') return [{ name: port, path: `${path}[${at}]` }];
    const inner = port['link-aggregation']?.port;
    return inner
      ? name(inner, `${path}[${at}].link-aggregation.port`)
      : [{ name: port.name, path: `${path}[${at}]` }];
  });

/** Types that store no name servers. */
const WITHOUT_SERVERS = ['loopback', 'ovs-bridge', 'ipsec'];

/** Name servers and domains of an interface and a family. */
export type NamesOfInterface = {
  readonly owner: string;
  readonly family: Family;
  readonly servers: NetworkState['servers'];
  readonly domains: readonly string[];
  /** True for the family that is asked first. */
  readonly isFirst: boolean;
};

/**
 * Places name servers as nmstate 2.2 does: on the first interface with static addresses of the
 * family, or with DHCP whose name servers are ignored; else on the first with addresses of the
 * family. An interface without addresses cannot have them: NetworkManager refuses its profile.
 */
export function placeNames({ interfaces, servers, domains }: NetworkState): {
  readonly placed: readonly NamesOfInterface[];
  readonly problems: readonly NetworkFinding[];
} {
  const usable = interfaces.filter((each) => isThere(each) && !WITHOUT_SERVERS.includes(each.type));
  if (servers.length === 0) return placeDomains(usable, domains);
  const [first] = servers;
  const problems = [...checkOrder(servers), ...checkZones(usable, servers)];
  const placed = FAMILIES.flatMap((family) => {
    const own = servers.filter(({ address }) => address.family === family);
    if (own.length === 0) return [];
    const owner = chooseOwner(usable, servers, family);
    const isFirst = first?.address.family === family;
    if (owner === undefined) problems.push(lacking(servers, family));
    return owner === undefined
      ? []
      : [{ owner, family, servers: own, domains: isFirst ? domains : [], isFirst }];
  });
  return { placed, problems };
}

const SERVERS = 'dns-resolver.config.server';

/** NetworkManager asks all servers of one family before those of the other. */
function checkOrder(servers: NetworkState['servers']): NetworkFinding[] {
  const changes = servers.flatMap(({ address }, at) =>
    at > 0 && servers[at - 1]?.address.family !== address.family ? [at] : [],
  );
  const [, second] = changes;
  if (second === undefined) return [];
  const problem = 'name servers of one family must not be between those of the other';
  return [{ path: `${SERVERS}[${second}]`, problem }];
}

function checkZones(
  usable: readonly NetworkInterface[],
  servers: NetworkState['servers'],
): readonly NetworkFinding[] {
  const zones = servers.flatMap(({ zone }, at) => (zone === undefined ? [] : [{ zone, at }]));
  const [first] = zones;
  const byName = new Map(usable.map((each) => [each.name, each]));
  return zones.flatMap(({ zone, at }) => {
    const path = `${SERVERS}[${at}]`;
    const found = byName.get(zone);
    if (!found) return [{ path, problem: `no interface has the name "${zone}"` }];
    if (zone !== first?.zone) {
      return [{ path, problem: 'link-local name servers must be on one interface' }];
    }
    return isValid(found, 6) ? [] : [{ path, problem: `"${zone}" has no IPv6 address` }];
  });
}

function lacking(servers: NetworkState['servers'], family: Family): NetworkFinding {
  const at = servers.findIndex(({ address }) => address.family === family);
  const problem = `no interface has an IPv${family} address, so none can have this name server`;
  return { path: `${SERVERS}[${at}]`, problem };
}

function chooseOwner(
  usable: readonly NetworkInterface[],
  servers: NetworkState['servers'],
  family: Family,
): string | undefined {
  const { zone } = servers.find((each) => each.zone !== undefined) ?? {};
  if (family === 6 && zone !== undefined) return zone;
  const preferred = usable.find(
    (each) =>
      isStatic(each, family) ||
      (isDynamic(each, family) && settingsOf(each, family)['auto-dns'] === false),
  );
  return (preferred ?? usable.find((each) => isValid(each, family)))?.name;
}

const isValid = (each: NetworkInterface, family: Family): boolean =>
  each.state === 'up' && (isStatic(each, family) || isDynamic(each, family));

/** Domains without name servers go to a dynamic interface, else to one with addresses. */
function placeDomains(
  usable: readonly NetworkInterface[],
  domains: readonly string[],
): ReturnType<typeof placeNames> {
  if (domains.length === 0) return { placed: [], problems: [] };
  const places = usable
    .filter(({ state }) => state === 'up')
    .flatMap((each) => ([6, 4] as const).map((family) => ({ each, family })));
  const found =
    places.find(({ each, family }) => isDynamic(each, family)) ??
    places.find(({ each, family }) => isStatic(each, family));
  if (!found) {
    const problem = 'no interface has an address, so none can have these domains';
    return { placed: [], problems: [{ path: 'dns-resolver.config.search', problem }] };
  }
  const { each, family } = found;
  return {
    placed: [{ owner: each.name, family, servers: [], domains, isFirst: true }],
    problems: [],
  };
}

/** The interface of a route: routes that drop packets are on the loopback. */
export const outOf = (route: NetworkRoute): string => route['next-hop-interface'] ?? 'lo';
