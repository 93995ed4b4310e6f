import {
  FAMILIES,
  isDynamic,
  isEnabled,
  isThere,
  listBases,
  listPorts,
  placeNames,
  type Port,
  settingsOf,
} from './addresses.ts';
import { checkAddresses } from './judge-addresses.ts';
import { isAddressOfHost, refuseBondOptions } from './bond.ts';
import { findSharedMacs } from './mac-map.ts';
import { listBondOptions } from './profiles.ts';
import { checkRoute, checkRule } from './judge-routes.ts';
import type { NetworkState } from './read.ts';
import { isLongNamed, type NetworkInterface } from './state.ts';
import { expected, type NetworkFinding, join } from './values.ts';

/*
 * This file owns the rules for a whole network: what nmstate refuses, what NetworkManager refuses in
 * the profiles, and what no kernel can apply. The members of the document have been read without a problem.
 */

export type JudgeOptions = {
  /** True if a map of MAC addresses gives the interfaces their names on the host. */
  readonly isMapped?: boolean;
};

/** The problems of a network whose members could all be read. */
export const judgeState = (
  state: NetworkState,
  options: JudgeOptions = {},
): readonly NetworkFinding[] => [
  ...checkNames(state.interfaces, options),
  ...state.interfaces.filter(isThere).flatMap((each) => checkInterface(each, state)),
  ...checkPorts(state.interfaces),
  // Profiles that are found by the same address would both claim one interface.
  ...findSharedMacs(state.interfaces, ({ identifier }) => identifier === 'mac-address'),
  ...checkCycles(state),
  ...checkAddresses(state),
  ...state.routes.flatMap((route) => checkRoute(route, state)),
  ...state.rules.flatMap(checkRule),
  ...placeNames(state).problems,
  ...checkContent(state),
];

const findingAt = (each: NetworkInterface, member: string, problem: string): NetworkFinding => ({
  path: join(each.path, member),
  owner: each.name,
  problem,
});

/** IFNAMSIZ without the final zero, bytes. */
const LONGEST_NAME = 15;

function checkNames(
  interfaces: readonly NetworkInterface[],
  { isMapped = false }: JudgeOptions,
): readonly NetworkFinding[] {
  const seen = new Set<string>();
  return interfaces.flatMap((each) => {
    const { name, type, state } = each;
    if (state === 'absent') return [];
    // An Open vSwitch bridge and its port may share a name: only the port is in the kernel.
    const key = `${type === 'ovs-bridge' ? 'bridge' : 'kernel'} ${name}`;
    const isTwice = seen.has(key);
    seen.add(key);
    return [
      ...(isTwice ? [findingAt(each, 'name', 'another interface has the same name')] : []),
      ...(isMapped && /\s/.test(name)
        ? [
            findingAt(
              each,
              'name',
              'a name in a MAC map has no spaces: scripts of the host split it',
            ),
          ]
        : []),
      ...(isThere(each) && !fitsKernel(each, isMapped)
        ? [findingAt(each, 'name', `a name must have at most ${LONGEST_NAME} bytes`)]
        : []),
    ];
  });
}

/**
 * The script that installs profiles by MAC address at boot writes the name of the real interface into
 * the name of a VLAN, so that its first part may be a longer name.
 */
function fitsKernel({ name, type, identifier }: NetworkInterface, isMapped: boolean): boolean {
  if (isLongNamed(type) || (identifier ?? 'name') !== 'name') return true;
  if (Buffer.byteLength(name) <= LONGEST_NAME) return name !== '.' && name !== '..';
  return isMapped && type === 'vlan' && /^[^.]{1,15}\.\d{1,4}$/.test(name);
}

function checkInterface(each: NetworkInterface, state: NetworkState): readonly NetworkFinding[] {
  const { identifier, 'mac-address': mac, 'link-aggregation': bond, 'vlan': vlan } = each;
  const options = bond ? refuseBondOptions(bond.mode, listBondOptions(each)) : [];
  return [
    ...(identifier === 'mac-address' ? checkIdentifier(each) : []),
    ...(mac !== undefined && !isAddressOfHost(mac)
      ? [findingAt(each, 'mac-address', `no interface can have the address ${mac}`)]
      : []),
    ...options.map(([option, why]) => findingAt(each, `link-aggregation.options.${option}`, why)),
    ...(vlan?.['base-iface'] === each.name
      ? [findingAt(each, 'vlan.base-iface', 'an interface cannot be its own base')]
      : []),
    ...checkMtu(each, state),
    ...checkFamilies(each),
  ];
}

/** NetworkManager creates bonds and bridges by their names (nm-setting-bond.c and nm-setting-bridge.c, verify). */
function checkIdentifier(each: NetworkInterface): readonly NetworkFinding[] {
  const isVirtual = ['bond', 'linux-bridge'].includes(each.type);
  return [
    ...(each['mac-address'] === undefined
      ? [findingAt(each, '', "missing field 'mac-address'")]
      : []),
    ...(isVirtual
      ? [findingAt(each, 'identifier', `an interface of type ${each.type} is found by its name`)]
      : []),
  ];
}

/** RFC 8200 5. */
const LEAST_IPV6_MTU = 1280;
/** Headers of VXLAN over IPv4 (RFC 7348 5). */
const VXLAN_HEADERS = 50;

function checkMtu(each: NetworkInterface, state: NetworkState): readonly NetworkFinding[] {
  const { mtu = 0 } = each;
  if (mtu === 0) return [];
  const isSmall = isEnabled(each, 6) && mtu < LEAST_IPV6_MTU;
  const small = `IPv6 needs an MTU of at least ${LEAST_IPV6_MTU}, but got ${mtu}`;
  return [...(isSmall ? [findingAt(each, 'mtu', small)] : []), ...checkBaseMtu(each, mtu, state)];
}

/** The kernel answers ERANGE (net/8021q/vlan_dev.c, vlan_dev_change_mtu; vxlan_change_mtu). */
function checkBaseMtu(
  each: NetworkInterface,
  mtu: number,
  { byName }: NetworkState,
): readonly NetworkFinding[] {
  const [{ name } = { name: '' }] = listBases(each);
  const base = byName.get(name);
  if (base?.mtu === undefined || !isThere(base)) return [];
  const most = base.mtu - (each.vxlan ? VXLAN_HEADERS : 0);
  const why = `${mtu} is above ${most}, which the MTU ${base.mtu} of "${base.name}" allows`;
  return mtu > most ? [findingAt(each, 'mtu', why)] : [];
}

/** NetworkManager's forms (nm-utils.c, _nm_utils_dhcp_duid_valid): a word, or 3 to 130 octets; empty for its own choice. */
export const isDuid = (text: string): boolean =>
  text === '' ||
  /^(?:lease|llt|ll|stable-(?:llt|ll|uuid))$/.test(text) ||
  /^[\da-f]{1,2}(?::[\da-f]{1,2}){2,129}$/i.test(text) ||
  /^(?:[\da-f]{2}){3,130}$/i.test(text);

function checkFamilies(each: NetworkInterface): readonly NetworkFinding[] {
  const { dhcp, autoconf, enabled, 'dhcp-duid': duid } = settingsOf(each, 6);
  return [
    ...(enabled === true && autoconf === true && dhcp !== true
      ? [findingAt(each, 'ipv6.autoconf', 'nmstate has autoconf only together with dhcp')]
      : []),
    ...(isDynamic(each, 6) && duid !== undefined && !isDuid(duid)
      ? [
          findingAt(
            each,
            'ipv6.dhcp-duid',
            expected(
              duid,
              'a DUID that NetworkManager knows: ll, llt, lease or octets in hexadecimal',
            ),
          ),
        ]
      : []),
  ];
}

/** A port belongs to one controller, and only ports of a VRF and of Open vSwitch have addresses. */
function checkPorts(interfaces: readonly NetworkInterface[]): readonly NetworkFinding[] {
  const owners = new Map<string, NetworkInterface>();
  const there = interfaces.filter(isThere);
  const ports = there.flatMap((owner) => listPorts(owner).map((port) => ({ port, owner })));
  const twice = ports.flatMap(({ port, owner }) => {
    const problem = explainPort(port, owner, owners.get(port.name));
    owners.set(port.name, owner);
    return problem === undefined ? [] : [{ path: port.path, owner: owner.name, problem }];
  });
  const addressed = there.flatMap((each) => {
    const owner = owners.get(each.name);
    const family = FAMILIES.find((family) => isEnabled(each, family));
    const mayHave = each.type.startsWith('ovs-') || owner?.type === 'vrf' || owner === each;
    // The addresses of a port that is down are in no profile.
    if (!owner || family === undefined || mayHave || each.state === 'down') return [];
    const why = `a port of ${owner.name} cannot have addresses of its own`;
    return [findingAt(each, `ipv${family}`, why)];
  });
  return [...twice, ...addressed];
}

function explainPort(
  { name }: Port,
  owner: NetworkInterface,
  known: NetworkInterface | undefined,
): string | undefined {
  if (name === owner.name && owner.type !== 'ovs-bridge')
    return 'an interface cannot be its own port';
  return known && `"${name}" is already a port of ${known.name}`;
}

/** Interfaces that are below each other: none of them can be made before the others. */
function checkCycles({ interfaces, byName }: NetworkState): readonly NetworkFinding[] {
  const done = new Set<string>();
  return interfaces.flatMap((each) => {
    const path = isThere(each) ? findCycle(each, byName, done) : undefined;
    if (path === undefined) return [];
    return [findingAt(each, '', `is below itself: ${formatCycle(path)}`)];
  });
}

/** Names of a cycle that are shown; a cycle may be as long as the document. */
const MOST_OF_CYCLE = 8;

function formatCycle(path: readonly string[]): string {
  const shown = path.slice(0, MOST_OF_CYCLE);
  const more = path.length - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more`] : []), path[0]].join(' over ');
}

/**
 * Walks down from an interface, without recursion: a chain may be as long as the document.
 *
 * @param done interfaces with no cycle below them, or whose cycle is known
 */
function findCycle(
  top: NetworkInterface,
  byName: NetworkState['byName'],
  done: Set<string>,
): readonly string[] | undefined {
  const walk = [{ name: top.name, below: listBelow(top) }];
  const open = new Set([top.name]);
  for (let last = walk.at(-1); last; last = walk.at(-1)) {
    const next = done.has(last.name) ? undefined : last.below.pop();
    if (next === undefined) {
      done.add(last.name);
      open.delete(last.name);
      walk.pop();
    } else if (open.has(next)) {
      const names = walk.map(({ name }) => name);
      for (const name of names) done.add(name);
      return names.slice(names.indexOf(next));
    } else if (!done.has(next)) {
      open.add(next);
      const found = byName.get(next);
      walk.push({ name: next, below: found ? listBelow(found) : [] });
    }
  }
  return undefined;
}

/** Names of the interfaces that an interface is made of; its own name is refused elsewhere. */
const listBelow = (each: NetworkInterface): string[] =>
  each.type.startsWith('ovs-')
    ? []
    : [...listBases(each), ...listPorts(each)]
        .map(({ name }) => name)
        .filter((name) => name !== each.name);

/** In the words of openshift-install. */
export const EMPTY_NETWORK = 'nmstate generated an empty NetworkManager config file content';

/** A document that configures nothing leaves a host offline; openshift-install refuses it, too. */
function checkContent({ interfaces, routes, rules }: NetworkState): readonly NetworkFinding[] {
  if (interfaces.some(isThere) || routes.length + rules.length > 0) return [];
  return [
    { path: '', problem: EMPTY_NETWORK, hint: 'leave the network out for DHCP on all interfaces' },
  ];
}
