import type { ConfigProblem } from '../../document/problem.ts';
import { invalid, required, unsupported, type Report } from '../document/report.ts';
import { isMapping, listOf, mapOf, textOf, type FreeMap } from './free.ts';
import { parseAddress, widthOf, type Family } from './ip-address.ts';
import type { NetworkInterface } from './interfaces.ts';

const STATES = ['up', 'down', 'absent', 'ignore'];
const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}(?:(?::[0-9a-f]{2}){14})?$/i;
/** Names of the kernel's modes of bonding, and their numbers. */
const BOND_MODES = [
  'balance-rr',
  'active-backup',
  'balance-xor',
  'broadcast',
  '802.3ad',
  'balance-tlb',
  'balance-alb',
];
/** IFNAMSIZ without the final zero. */
const LONGEST_NAME = 15;

/** Interfaces that the kernel does not know by their name. */
const LONG_NAMED = new Set(['ovs-bridge', 'ovs-interface', 'ipsec', 'vpn']);

/** The members of one interface: those of every type, then those of its own. */
export function checkInterface(report: Report, each: NetworkInterface): readonly ConfigProblem[] {
  const { path, value, mac } = each;
  const state = textOf(value['state']) ?? 'up';
  return [
    ...checkName(report, each),
    ...(STATES.includes(state) ? [] : [report(`${path}.state`, unsupported(state, STATES))]),
    ...(mac === undefined || MAC.test(mac)
      ? []
      : [report(`${path}.mac-address`, invalid(mac, 'this is no MAC address'))]),
    ...checkNumber(report, `${path}.mtu`, { value: value['mtu'], least: 0, most: 0xffff_ffff }),
    ...([4, 6] as const).flatMap((family) => checkFamily(report, each, family)),
    ...(each.isUp ? checkType(report, each) : []),
  ];
}

function checkName(
  report: Report,
  { path, name, type }: NetworkInterface,
): readonly ConfigProblem[] {
  if (name === '') return [report(path, required('an interface needs a name'))];
  if (LONG_NAMED.has(type)) return [];
  const isBad = name.length > LONGEST_NAME || /[\s/]/.test(name) || name === '.' || name === '..';
  const why = `a name has at most ${LONGEST_NAME} characters, without blanks and slashes`;
  return isBad ? [report(`${path}.name`, invalid(name, why))] : [];
}

type Bounds = { readonly value: unknown; readonly least: number; readonly most: number };

function checkNumber(
  report: Report,
  path: string,
  { value, least, most }: Bounds,
): readonly ConfigProblem[] {
  if (value === undefined || value === null) return [];
  const number = Number(value);
  if (Number.isInteger(number) && number >= least && number <= most) return [];
  return [report(path, invalid(JSON.stringify(value), `this must be from ${least} to ${most}`))];
}

function checkFamily(
  report: Report,
  { path, value }: NetworkInterface,
  family: Family,
): readonly ConfigProblem[] {
  const at = `${path}.ipv${family}`;
  const settings = value[`ipv${family}`];
  if (settings === undefined || settings === null) return [];
  if (!isMapping(settings)) return [report(at, 'this must be an object')];
  const flags = ['enabled', 'dhcp', 'autoconf'].filter(
    (name) => settings[name] !== undefined && typeof settings[name] !== 'boolean',
  );
  return [
    ...flags.map((name) => report(`${at}.${name}`, 'this must be true or false')),
    ...listOf(settings['address']).flatMap((item, index) =>
      checkAddress(report, `${at}.address[${index}]`, { address: mapOf(item), family }),
    ),
  ];
}

function checkAddress(
  report: Report,
  path: string,
  { address, family }: { readonly address: FreeMap; readonly family: Family },
): readonly ConfigProblem[] {
  const text = textOf(address['ip']);
  const length = address['prefix-length'];
  const isAddress = text !== undefined && parseAddress(text)?.family === family;
  const missing = `a length from 0 to ${widthOf(family)} is needed`;
  return [
    ...(isAddress
      ? []
      : [report(`${path}.ip`, invalid(text ?? '', `this is no IPv${family} address`))]),
    ...(length === undefined
      ? [report(`${path}.prefix-length`, required(missing))]
      : checkNumber(report, `${path}.prefix-length`, {
          value: length,
          least: 0,
          most: widthOf(family),
        })),
  ];
}

function checkType(report: Report, each: NetworkInterface): readonly ConfigProblem[] {
  const { type, value, path } = each;
  if (type === 'vlan') return checkVlan(report, `${path}.vlan`, value);
  if (type === 'bond') return checkBond(report, `${path}.link-aggregation`, value);
  return [];
}

function checkVlan(report: Report, path: string, value: FreeMap): readonly ConfigProblem[] {
  const vlan = mapOf(value['vlan']);
  const base = textOf(vlan['base-iface']) ?? '';
  const lowest = { value: vlan['id'], least: 0, most: 4094 };
  return [
    ...(base === '' ? [report(`${path}.base-iface`, required('a VLAN needs its interface'))] : []),
    ...(vlan['id'] === undefined
      ? [report(`${path}.id`, required('a VLAN needs a number'))]
      : checkNumber(report, `${path}.id`, lowest)),
  ];
}

function checkBond(report: Report, path: string, value: FreeMap): readonly ConfigProblem[] {
  const bond = mapOf(value['link-aggregation']);
  const mode = textOf(bond['mode']) ?? '';
  if (mode === '') return [report(`${path}.mode`, required('a bond needs a mode'))];
  const isMode = BOND_MODES.includes(mode) || /^[0-6]$/.test(mode);
  return isMode ? [] : [report(`${path}.mode`, unsupported(mode, BOND_MODES))];
}

/** An interface is the port of one bond or bridge, never of two. */
export function checkPorts(
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly ConfigProblem[] {
  const owners = new Map<string, string>();
  return interfaces
    .filter(({ isUp }) => isUp)
    .flatMap((each) =>
      listPorts(each).flatMap(({ name, path }) => {
        const owner = owners.get(name);
        owners.set(name, each.name);
        if (name === each.name && each.type !== 'ovs-bridge') {
          return [report(path, invalid(name, 'an interface cannot be its own port'))];
        }
        return owner === undefined
          ? []
          : [report(path, invalid(name, `this is a port of ${owner} already`))];
      }),
    );
}

/** Ports of bonds stand as names, those of bridges as objects; older names are still read. */
function listPorts({
  value,
  path,
}: NetworkInterface): readonly { readonly name: string; readonly path: string }[] {
  return ['link-aggregation', 'bridge'].flatMap((member) => {
    const settings = mapOf(value[member]);
    const key = ['port', 'ports', 'slaves'].find((each) => Array.isArray(settings[each])) ?? 'port';
    return listOf(settings[key]).flatMap((port, index) => {
      const name = textOf(port) ?? textOf(mapOf(port)['name']);
      return name === undefined ? [] : [{ name, path: `${path}.${member}.${key}[${index}]` }];
    });
  });
}
