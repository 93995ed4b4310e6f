import type { DocumentProblem } from '../base/errors.ts';
import {
  createCidr,
  parseAddress,
  widthOf,
  type Cidr,
  type Family,
  parseCidr,
  type IpAddress,
} from '../base/ip-address.ts';
import { withoutUndefined } from '../base/lists.ts';
import { type Report, invalid, required, unsupported } from '../shape/report.ts';
import type { Plain } from '../shape/shape.ts';
import { BOND_MODES } from './state.ts';
import { flagOf, listOf, mapOf, numberOf, textOf, type FreeMap } from './values.ts';

/* This file owns the rules for interfaces, ports, routes and route rules. */

/** An address of an interface, with its subnet. */
export type InterfaceAddress = {
  /** Path of the address in the document. */
  readonly path: string;
  readonly text: string;
  readonly subnet: Cidr;
};

/** The members of an interface that the checks read. */
export type NetworkInterface = {
  readonly path: string;
  readonly name: string;
  readonly type: string;
  /** True unless the state is `absent`, `down` or `ignore`. */
  readonly isUp: boolean;
  /** MAC address in lower case, with colons. */
  readonly mac?: string;
  readonly addresses: readonly InterfaceAddress[];
  /** Families whose addresses come from DHCP or router advertisements. */
  readonly dynamic: readonly Family[];
  readonly value: FreeMap;
};

/** The interfaces of an nmstate document; invalid addresses are omitted. */
export const readInterfaces = (network: Plain | undefined): readonly NetworkInterface[] =>
  listOf(mapOf(network)['interfaces']).map((item, index) => {
    const value = mapOf(item);
    const path = `networkConfig.interfaces[${index}]`;
    const mac = textOf(value['mac-address'])?.toLowerCase().replaceAll('-', ':');
    return {
      path,
      value,
      name: textOf(value['name']) ?? '',
      type: textOf(value['type']) ?? '',
      isUp: !['absent', 'down', 'ignore'].includes(textOf(value['state']) ?? 'up'),
      ...withoutUndefined({ mac }),
      addresses: ([4, 6] as const).flatMap((family) => readAddresses(value, path, family)),
      dynamic: ([4, 6] as const).filter((family) => isDynamic(mapOf(value[`ipv${family}`]))),
    };
  });

function readAddresses(value: FreeMap, path: string, family: Family): readonly InterfaceAddress[] {
  const settings = mapOf(value[`ipv${family}`]);
  if (flagOf(settings['enabled']) !== true) return [];
  return listOf(settings['address']).flatMap((item, index) => {
    const { ip, 'prefix-length': prefix } = mapOf(item);
    const text = textOf(ip) ?? '';
    const address = parseAddress(text);
    const length = numberOf(prefix) ?? -1;
    if (address?.family !== family || length < 0 || length > widthOf(family)) return [];
    const at = `${path}.ipv${family}.address[${index}].ip`;
    return [{ path: at, text, subnet: createCidr(address, length, `${text}/${length}`) }];
  });
}

const isDynamic = (settings: FreeMap): boolean =>
  flagOf(settings['enabled']) === true &&
  (flagOf(settings['dhcp']) === true || flagOf(settings['autoconf']) === true);

/** NetworkManager accepts both separators; addresses of InfiniBand have 20 octets. */
const MAC = /^[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}(?:(?:[:-][0-9a-f]{2}){14})?$/i;
/** IFNAMSIZ without the final zero, bytes. */
const LONGEST_NAME = 15;

/** Least MTU of IPv6, bytes (RFC 8200 5). */
const LEAST_IPV6_MTU = 1280;

/** Types of interfaces that do not have this name in the kernel. */
const LONG_NAMED = new Set(['ovs-bridge', 'ovs-interface', 'ipsec', 'vpn']);

/** Required members of the settings of a type. */
const NEEDED: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'infiniband': { infiniband: ['mode'] },
  'mac-vlan': { 'mac-vlan': ['base-iface', 'mode'] },
  'mac-vtap': { 'mac-vtap': ['base-iface', 'mode'] },
  'vxlan': { vxlan: ['id'] },
};

/** Checks the members of one interface: those of every type, then those of its type. */
export function checkInterface(report: Report, each: NetworkInterface): readonly DocumentProblem[] {
  const { path, value, mac } = each;
  if (value['state'] === 'absent') return checkName(report, each);
  return [
    ...checkName(report, each),
    ...(mac === undefined || mac === '' || MAC.test(mac)
      ? []
      : [report(`${path}.mac-address`, invalid(mac, 'not a valid MAC address'))]),
    ...checkMtu(report, each),
    ...([4, 6] as const).flatMap((family) => checkFamily(report, each, family)),
    ...(each.isUp ? checkType(report, each) : []),
  ];
}

function checkName(
  report: Report,
  { path, name, type, value }: NetworkInterface,
): readonly DocumentProblem[] {
  if (name === '') return [report(path, required('an interface needs a name'))];
  // If the interface is found by its address, the name is only the name of a profile.
  const isLabel = value['identifier'] !== undefined && value['identifier'] !== 'name';
  if (isLabel || LONG_NAMED.has(type)) return [];
  const isBad = name.length > LONGEST_NAME || /[\s/]/.test(name) || name === '.' || name === '..';
  const why = `a name must have at most ${LONGEST_NAME} characters, without spaces or slashes`;
  return isBad ? [report(`${path}.name`, invalid(name, why))] : [];
}

function checkMtu(report: Report, { path, value }: NetworkInterface): readonly DocumentProblem[] {
  const mtu = numberOf(value['mtu']);
  const hasIpv6 = flagOf(mapOf(value['ipv6'])['enabled']) === true;
  if (mtu === undefined || mtu === 0 || mtu >= LEAST_IPV6_MTU || !hasIpv6) return [];
  return [
    report(`${path}.mtu`, invalid(String(mtu), `IPv6 needs an MTU of at least ${LEAST_IPV6_MTU}`)),
  ];
}

function checkFamily(
  report: Report,
  { path, value }: NetworkInterface,
  family: Family,
): readonly DocumentProblem[] {
  const at = `${path}.ipv${family}`;
  const settings = mapOf(value[`ipv${family}`]);
  const isIpv4Autoconf = family === 4 && flagOf(settings['autoconf']) !== undefined;
  return [
    ...(isIpv4Autoconf ? [report(`${at}.autoconf`, 'IPv4 has no autoconf; use dhcp')] : []),
    ...listOf(settings['address']).flatMap((item, index) =>
      checkAddress(report, `${at}.address[${index}]`, { address: mapOf(item), family }),
    ),
  ];
}

function checkAddress(
  report: Report,
  path: string,
  { address, family }: { readonly address: FreeMap; readonly family: Family },
): readonly DocumentProblem[] {
  const text = textOf(address['ip']);
  const isAddress = text !== undefined && parseAddress(text)?.family === family;
  return [
    ...(isAddress
      ? []
      : [report(`${path}.ip`, invalid(text ?? '', `not a valid IPv${family} address`))]),
    ...checkBounded(report, `${path}.prefix-length`, {
      value: address['prefix-length'],
      most: widthOf(family),
      missing: `a length from 0 to ${widthOf(family)} is needed`,
    }),
  ];
}

type Bounded = {
  readonly value: FreeMap[string] | undefined;
  readonly most: number;
  readonly missing: string;
};

/** Checks that a number is present and not too large; other values were reported before. */
function checkBounded(
  report: Report,
  path: string,
  { value, most, missing }: Bounded,
): readonly DocumentProblem[] {
  if (value === undefined) return [report(path, required(missing))];
  const number = numberOf(value) ?? -1;
  return number > most
    ? [report(path, invalid(String(number), `this must be from 0 to ${most}`))]
    : [];
}

function checkType(report: Report, each: NetworkInterface): readonly DocumentProblem[] {
  const { type, value, path } = each;
  if (type === 'vlan') return checkVlan(report, `${path}.vlan`, value);
  if (type === 'bond') return checkBond(report, `${path}.link-aggregation`, value);
  if (type === 'vrf') return checkVrf(report, `${path}.vrf`, value);
  const needed = Object.hasOwn(NEEDED, type) ? NEEDED[type] : undefined;
  return Object.entries(needed ?? {}).flatMap(([section, names]) =>
    names
      .filter((name) => value[section] !== undefined && (mapOf(value[section])[name] ?? '') === '')
      .map((name) => report(`${path}.${section}.${name}`, required('this is needed'))),
  );
}

function checkVlan(report: Report, path: string, value: FreeMap): readonly DocumentProblem[] {
  const vlan = mapOf(value['vlan']);
  const base = textOf(vlan['base-iface']) ?? '';
  return [
    ...(base === ''
      ? [report(`${path}.base-iface`, required('a VLAN needs a base interface'))]
      : []),
    ...checkBounded(report, `${path}.id`, {
      value: vlan['id'],
      most: 4094,
      missing: 'a VLAN needs an ID',
    }),
  ];
}

function checkBond(report: Report, path: string, value: FreeMap): readonly DocumentProblem[] {
  const bond = mapOf(value['link-aggregation']);
  const mode = textOf(bond['mode']) ?? '';
  if (mode === '') return [report(`${path}.mode`, required('a bond needs a mode'))];
  const isMode = BOND_MODES.includes(mode) || /^[0-6]$/.test(mode);
  return isMode ? [] : [report(`${path}.mode`, unsupported(mode, BOND_MODES))];
}

function checkVrf(report: Report, path: string, value: FreeMap): readonly DocumentProblem[] {
  const table = mapOf(value['vrf'])['route-table-id'];
  return table === undefined || numberOf(table) === 0
    ? [report(`${path}.route-table-id`, required('a VRF needs a route table'))]
    : [];
}

/**
 * Checks that a port belongs to one bond or bridge, never to two, and that it has no addresses.
 */
export function checkPorts(
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const owners = new Map<string, string>();
  const ports = interfaces.filter(({ isUp }) => isUp).flatMap(listPorts);
  return [
    ...ports.flatMap(({ name, path, owner }) => {
      const known = owners.get(name);
      owners.set(name, owner.name);
      if (name === owner.name && owner.type !== 'ovs-bridge') {
        return [report(path, invalid(name, 'an interface cannot be its own port'))];
      }
      return known === undefined
        ? []
        : [report(path, invalid(name, `this is already a port of ${known}`))];
    }),
    ...checkPortAddresses(report, interfaces, ports),
    ...checkPortNames(report, interfaces),
  ];
}

type Port = {
  readonly name: string;
  readonly path: string;
  readonly owner: NetworkInterface;
};

/** Lists ports: bonds have them as names, bridges as objects; older member names are still read. */
export const listPorts = (owner: NetworkInterface): readonly Port[] =>
  ['link-aggregation', 'bridge', 'vrf'].flatMap((member) =>
    listNamed(mapOf(owner.value[member]), `${owner.path}.${member}`).map((port) => ({
      ...port,
      owner,
    })),
  );

function listNamed(settings: FreeMap, path: string): readonly Omit<Port, 'owner'>[] {
  const key = ['port', 'ports', 'slaves'].find((each) => Array.isArray(settings[each])) ?? 'port';
  return listOf(settings[key]).flatMap((port, index) => {
    const at = `${path}.${key}[${index}]`;
    // An Open vSwitch bond is a port with ports.
    const bond = mapOf(port)['link-aggregation'];
    if (bond !== undefined) return listNamed(mapOf(bond), `${at}.link-aggregation`);
    const name = textOf(port) ?? textOf(mapOf(port)['name']);
    return name === undefined ? [] : [{ name, path: at }];
  });
}

/** Ports of a VRF may have addresses, and so may internal ports of Open vSwitch. */
function checkPortAddresses(
  report: Report,
  interfaces: readonly NetworkInterface[],
  ports: readonly Port[],
): readonly DocumentProblem[] {
  const owners = new Map(
    ports.filter(({ owner }) => owner.type !== 'vrf').map(({ name, owner }) => [name, owner.name]),
  );
  return interfaces
    .filter(({ isUp, type }) => isUp && type !== 'ovs-interface' && type !== 'ovs-bridge')
    .flatMap(({ name, path, value }) => {
      const owner = owners.get(name);
      const family = ([4, 6] as const).find((each) => hasAddresses(mapOf(value[`ipv${each}`])));
      if (owner === undefined || owner === name || family === undefined) return [];
      const why = `a port of ${owner} cannot have addresses of its own`;
      return [report(`${path}.ipv${family}`, why)];
    });
}

const hasAddresses = (settings: FreeMap): boolean =>
  flagOf(settings['enabled']) === true &&
  (flagOf(settings['dhcp']) === true ||
    flagOf(settings['autoconf']) === true ||
    listOf(settings['address']).length > 0);

/** Checks that ports of bridges are objects with a name. */
const checkPortNames = (
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] =>
  interfaces
    .filter(({ isUp, type }) => isUp && type.endsWith('-bridge'))
    .flatMap(({ path, value }) =>
      listOf(mapOf(value['bridge'])['port']).flatMap((port, index) =>
        textOf(mapOf(port)['name']) === undefined
          ? [report(`${path}.bridge.port[${index}]`, required('a port needs a name'))]
          : [],
      ),
    );

/** Checks routes and the interfaces that they name. */
export function checkRoutes(
  report: Report,
  network: FreeMap,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const byName = new Map(interfaces.map((each) => [each.name, each]));
  return listOf(mapOf(network['routes'])['config'])
    .map(mapOf)
    .flatMap((route, index) =>
      route['state'] === 'absent'
        ? []
        : Object.entries(explainRoute(route, byName)).map(([name, why]) =>
            report(`networkConfig.routes.config[${index}].${name}`, why),
          ),
    );
}

type Interfaces = ReadonlyMap<string, NetworkInterface>;

type Target = IpAddress | Cidr;

/** Problems of a route by member. */
function explainRoute(route: FreeMap, byName: Interfaces): Readonly<Record<string, string>> {
  const destination = textOf(route['destination']) ?? '';
  const target = parseCidr(destination) ?? parseAddress(destination);
  const via = textOf(route['next-hop-address']) ?? '';
  const out = textOf(route['next-hop-interface']) ?? '';
  const isSink = (textOf(route['route-type']) ?? '') !== '';
  const why = {
    'destination': explainDestination(destination, target),
    'next-hop-address': isSink ? explainSink(via) : explainAddress(via, target),
    'next-hop-interface': isSink ? undefined : explainOut(out, byName, target),
    'source': explainAddress(textOf(route['source']) ?? '', target),
    'weight': explainWeight(textOf(route['weight'])),
  };
  return Object.fromEntries(
    Object.entries(why).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

function explainDestination(text: string, target: Target | undefined): string | undefined {
  if (text === '') return required('a route needs a destination');
  if (!target) return invalid(text, 'not a valid network');
  const isZero = target.family === 4 && target.value >> 24n === 0n;
  return isZero && 'prefix' in target && target.prefix >= 8
    ? invalid(text, 'not a usable host network; the default route is 0.0.0.0/0')
    : undefined;
}

const explainSink = (via: string): string | undefined =>
  via === '' ? undefined : invalid(via, 'a route with a route-type has no next hop');

/** The problem with a next hop or a source address. */
function explainAddress(text: string, target: Target | undefined): string | undefined {
  if (text === '') return undefined;
  const address = parseAddress(text);
  if (!address) return invalid(text, 'not a valid IP address');
  const fits = !target || target.family === address.family;
  return fits ? undefined : invalid(text, 'its address family is not that of the destination');
}

function explainOut(
  out: string,
  byName: Interfaces,
  target: Target | undefined,
): string | undefined {
  if (out === '') return required('a route needs an interface');
  // Every node has this interface.
  if (out === 'lo') return undefined;
  const found = byName.get(out);
  if (!found) return invalid(out, 'no interface has this name');
  const state = textOf(found.value['state']);
  if (state === 'absent') return invalid(out, 'this interface has the state absent');
  if (!target || state === 'ignore' || isEnabled(found, target.family)) return undefined;
  return invalid(out, `IPv${target.family} is not enabled on this interface`);
}

const isEnabled = ({ value }: NetworkInterface, family: Family): boolean =>
  flagOf(mapOf(value[`ipv${family}`])['enabled']) === true;

const explainWeight = (text: string | undefined): string | undefined =>
  text === undefined || !/^\d+$/.test(text) || (Number(text) > 0 && Number(text) <= 256)
    ? undefined
    : invalid(text, 'this must be from 1 to 256');

/** Checks rules that choose a route table by address. */
export const checkRouteRules = (report: Report, network: FreeMap): readonly DocumentProblem[] =>
  listOf(mapOf(network['route-rules'])['config'])
    .map(mapOf)
    .flatMap((rule, index) =>
      rule['state'] === 'absent'
        ? []
        : checkRouteRule(report, `networkConfig.route-rules.config[${index}]`, rule),
    );

function checkRouteRule(report: Report, path: string, rule: FreeMap): readonly DocumentProblem[] {
  const family = textOf(rule['family']) ?? '';
  const ends = (['ip-from', 'ip-to'] as const)
    .map((name) => ({ name, text: textOf(rule[name]) ?? '' }))
    .filter(({ text }) => text !== '')
    .map((end) => ({ ...end, target: parseCidr(end.text) ?? parseAddress(end.text) }));
  if (ends.length === 0 && family === '') {
    return [report(path, required('a rule needs ip-from, ip-to or family'))];
  }
  const wanted = /^ipv[46]$/.test(family) ? Number(family.slice(3)) : ends[0]?.target?.family;
  return ends.flatMap(({ name, text, target }) => {
    if (!target) return [report(`${path}.${name}`, invalid(text, 'not a valid network'))];
    return target.family === wanted
      ? []
      : [report(`${path}.${name}`, invalid(text, `not an IPv${String(wanted)} address`))];
  });
}
