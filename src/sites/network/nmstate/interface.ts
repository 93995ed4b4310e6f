import type { DocumentProblem } from '../../../base/errors.ts';
import type { Report } from '../../../shape/report.ts';
import { BOND_MODES } from '../../../openshift/customisation/network-interfaces.ts';
import { invalid, required, unsupported } from '../../../shape/report.ts';
import { flagOf, listOf, mapOf, numberOf, textOf, type FreeMap } from '../free.ts';
import { parseAddress, widthOf, type Family } from '../../../base/ip-address.ts';
import type { NetworkInterface } from '../interfaces.ts';

/** NetworkManager takes both separators; 20 octets are of InfiniBand. */
const MAC = /^[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}(?:(?:[:-][0-9a-f]{2}){14})?$/i;
/** IFNAMSIZ without the final zero. */
const LONGEST_NAME = 15;

/** RFC 8200 5. */
const LEAST_IPV6_MTU = 1280;

/** Interfaces that the kernel does not know by their name. */
const LONG_NAMED = new Set(['ovs-bridge', 'ovs-interface', 'ipsec', 'vpn']);

/** Settings that say nothing without these members. */
const NEEDED: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'infiniband': { infiniband: ['mode'] },
  'mac-vlan': { 'mac-vlan': ['base-iface', 'mode'] },
  'mac-vtap': { 'mac-vtap': ['base-iface', 'mode'] },
  'vxlan': { vxlan: ['id'] },
};

/** The members of one interface: those of every type, then those of its own. */
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
  // Where it is found by its address, the name is only that of a profile.
  const isLabel = value['identifier'] !== undefined && value['identifier'] !== 'name';
  if (isLabel || LONG_NAMED.has(type)) return [];
  const isBad = name.length > LONGEST_NAME || /[\s/]/.test(name) || name === '.' || name === '..';
  const why = `a name has at most ${LONGEST_NAME} characters, without blanks and slashes`;
  return isBad ? [report(`${path}.name`, invalid(name, why))] : [];
}

function checkMtu(report: Report, { path, value }: NetworkInterface): readonly DocumentProblem[] {
  const mtu = numberOf(value['mtu']);
  const hasIpv6 = flagOf(mapOf(value['ipv6'])['enabled']) === true;
  if (mtu === undefined || mtu === 0 || mtu >= LEAST_IPV6_MTU || !hasIpv6) return [];
  return [
    report(`${path}.mtu`, invalid(String(mtu), `IPv6 needs packets of ${LEAST_IPV6_MTU} bytes`)),
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
    ...(isIpv4Autoconf ? [report(`${at}.autoconf`, 'IPv4 has no autoconf; it has dhcp')] : []),
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

/** Values that are not numbers were reported before. */
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
    ...(base === '' ? [report(`${path}.base-iface`, required('a VLAN needs its interface'))] : []),
    ...checkBounded(report, `${path}.id`, {
      value: vlan['id'],
      most: 4094,
      missing: 'a VLAN needs a number',
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
    ? [report(`${path}.route-table-id`, required('a VRF needs a table of routes'))]
    : [];
}
