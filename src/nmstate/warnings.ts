import { contains, formatAddress, type Cidr, type Family } from '../base/ip-address.ts';
import {
  FAMILIES,
  isDynamic,
  isLinkLocal,
  isThere,
  listAddresses,
  listAllAddresses,
  listBases,
  listPorts,
  settingsOf,
} from './addresses.ts';
import { warnOfBondOptions } from './bond.ts';
import { warnOfAddresses, warnOfHops } from './judge-addresses.ts';
import { findSharedMacs } from './mac-map.ts';
import { listBondOptions } from './profiles.ts';
import { type NetworkState, readNetworkState } from './read.ts';
import { isKnownType, type NetworkInterface } from './state.ts';
import { type NetworkFinding, join } from './values.ts';

/* This file owns the warnings of settings that nmstate accepts, but that seldom work on a node. */

/** Warns of a network without problems. */
export const warnOfState = (state: NetworkState): readonly NetworkFinding[] => [
  ...state.interfaces.filter(isThere).flatMap(warnOfInterface),
  ...warnOfBases(state.interfaces),
  // Two interfaces with one address reach no one if they are on the same network.
  ...findSharedMacs(state.interfaces, ({ type }) => type === 'ethernet'),
  ...warnOfAddresses(state),
  ...warnOfHops(state),
  ...warnOfDefaultRoutes(state),
  ...warnOfServers(state),
];

function warnOfInterface(each: NetworkInterface): readonly NetworkFinding[] {
  const { name, type, 'link-aggregation': bond } = each;
  const at = (member: string, problem: string): NetworkFinding => ({
    path: join(each.path, member),
    owner: name,
    problem,
  });
  const local = (settingsOf(each, 6).address ?? []).filter(({ subnet }) => isLinkLocal(subnet));
  return [
    ...(bond
      ? warnOfBondOptions(bond.mode, listBondOptions(each)).map(([option, why]) =>
          at(`link-aggregation.options.${option}`, why),
        )
      : []),
    ...(isKnownType(type) ? [] : [at('type', `interfaces of type "${type}" are not checked here`)]),
    ...local.map(({ path, text }) => ({
      path,
      owner: name,
      problem: `nmstate leaves out the link-local address ${text}`,
    })),
  ];
}

/** Without a running system, nmstate knows only interfaces that the document defines. */
function warnOfBases(interfaces: readonly NetworkInterface[]): readonly NetworkFinding[] {
  const defined = new Set(interfaces.map(({ name }) => name));
  return interfaces
    .filter(({ state }) => state === 'up')
    .flatMap((each) => {
      const ports = each.type === 'bond' ? listPorts(each) : [];
      const bases = each.type === 'vlan' ? listBases(each) : [];
      return [...ports, ...bases]
        .filter(({ name }) => !defined.has(name))
        .map(({ name, path }) => ({
          path,
          owner: each.name,
          problem: `${each.type} ${each.name} needs "${name}", which is not defined`,
          hint: `add "${name}" to the interfaces`,
        }));
    });
}

/** Families of static addresses; none with a dynamic interface, which brings routes and name servers. */
function listStatic(interfaces: readonly NetworkInterface[]): readonly Family[] {
  const up = interfaces.filter(({ state }) => state === 'up');
  if (up.some((each) => FAMILIES.some((family) => isDynamic(each, family)))) return [];
  return FAMILIES.filter((family) => up.some((each) => listAddresses(each, family).length > 0));
}

/** The cluster network takes the interface of the default route. */
const warnOfDefaultRoutes = ({ interfaces, routes }: NetworkState): readonly NetworkFinding[] =>
  listStatic(interfaces)
    .filter(
      (family) =>
        !routes.some(
          ({ destination }) => destination.family === family && destination.prefix === 0,
        ),
    )
    .map((family) => ({
      path: 'routes.config',
      problem: `there is no default route for IPv${family}`,
    }));

/** True for a document whose addresses are all static, and that leads to no other network. */
export function lacksDefaultRoute(value: unknown): boolean {
  const { state } = readNetworkState(value);
  const count = listStatic(state.interfaces).length;
  return count > 0 && warnOfDefaultRoutes(state).length === count;
}

function warnOfServers({ interfaces, routes, servers }: NetworkState): readonly NetworkFinding[] {
  const path = 'dns-resolver.config.server';
  const addresses = interfaces.filter(isThere).flatMap(listAllAddresses);
  const isStaticOnly = listStatic(interfaces).length > 0;
  if (isStaticOnly && servers.length === 0)
    return [{ path, problem: 'no name server is configured' }];
  const own = new Set(addresses.map(({ text }) => text));
  const reached: readonly Cidr[] = [
    ...routes.map(({ destination }) => destination),
    ...addresses.map(({ subnet }) => subnet),
  ];
  return servers.flatMap(({ address, zone }, index) => {
    const text = formatAddress(address);
    const at = { path: `${path}[${index}]` };
    if (own.has(text)) {
      return [{ ...at, problem: `the name server ${text} is the address of the host itself` }];
    }
    const isReached = zone !== undefined || reached.some((cidr) => contains(cidr, address));
    return !isStaticOnly || isReached
      ? []
      : [{ ...at, problem: `no route leads to the name server ${text}` }];
  });
}
