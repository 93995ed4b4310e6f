import { isIP } from 'node:net';
import { objectOrEmpty } from '../base/lists.ts';
import {
  choice,
  flag,
  integer,
  ip,
  list,
  object,
  refuse,
  strictFlag,
  text,
  unused,
  word,
  unsupported,
  type Kind as KindOfNetworkInterfaces,
  type Place,
} from './values.ts';

// The part of nmstate 2.2 (nmstate.io) that is translated here, exactly. Nothing is silently ignored: other
// members need nmstate itself, and other values are refused.

export const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]*$/;
/** IFNAMSIZ without the final zero. */
const LONGEST_NAME = 15;
/** RFC 8200 5. */
const LEAST_IPV6_MTU = 1280;
export const U32 = 2 ** 32 - 1;
const U16 = 2 ** 16 - 1;
const U8 = 2 ** 8 - 1;

export const name = text(NAME, 'the name of an interface');
/** A line break would begin another setting. */
const line = text(/^\P{Cc}+$/u, 'a string on one line');
const mac = text(/^[\da-f]{2}(?:[:-][\da-f]{2}){5}$/i, 'a MAC address');
const number = integer(0, U32);
const digit: KindOfNetworkInterfaces<number> = (value, place) => Number(flag(value, place));

const address =
  (family: 4 | 6): KindOfNetworkInterfaces<string> =>
  (value, place) => {
    const most = family === 4 ? 32 : 128;
    const explain = (found: string): string =>
      `Invalid IPv${family} network prefix length '${found}', should be in the range of 0 to ${most}`;
    const read = object({ 'ip': ip, 'prefix-length': integer(0, most, explain) }, [
      'ip',
      'prefix-length',
    ]);
    const { 'ip': found, 'prefix-length': length } = read(value, place);
    if (isIP(found) === family) return `${found}/${length}`;
    throw refuse(place, `Got IPv${isIP(found)} address ${found} in ipv${family} config section`);
  };

const FAMILY_INTERFACES = {
  'enabled': flag,
  'dhcp': flag,
  'auto-dns': flag,
  'auto-gateway': flag,
  'auto-routes': flag,
  'auto-route-metric': number,
  'auto-route-table-id': number,
  'dhcp-send-hostname': strictFlag,
  'allow-extra-address': unused,
};

const COMMON = {
  'name': name,
  'type': unused,
  'state': unused,
  'description': text(/^\P{Cc}*$/u, 'a string on one line'),
  'identifier': word(['name', 'mac-address'], ['pci-address']),
  'mac-address': mac,
  'mtu': integer(0, U16),
  'ipv4': object({
    ...FAMILY_INTERFACES,
    'address': list(address(4)),
    'dhcp-client-id': line,
    'autoconf': (_: unknown, place: Place): boolean => {
      throw refuse(place, 'autoconf is not allowed for IPv4');
    },
  }),
  'ipv6': object({
    ...FAMILY_INTERFACES,
    'address': list(address(6)),
    'autoconf': flag,
    'addr-gen-mode': word(['eui64', 'stable-privacy']),
    'dhcp-duid': line,
  }),
  // Members that nmstate shows, and ignores in its input.
  'driver': unused,
  'permanent-mac-address': unused,
  'min-mtu': unused,
  'max-mtu': unused,
};

const VLAN = object(
  { 'base-iface': name, 'id': integer(0, 4094), 'protocol': word(['802.1q'], ['802.1ad']) },
  ['base-iface', 'id'],
);

/** Modes by their number in the kernel. */
export const BOND_MODES = [
  'balance-rr',
  'active-backup',
  'balance-xor',
  'broadcast',
  '802.3ad',
  'balance-tlb',
  'balance-alb',
];

const ARP_VALIDATE = 'none active backup all filter filter_active filter_backup'.split(' ');
const HASHES = 'layer2 layer3+4 layer2+3 encap2+3 encap3+4 vlan+srcmac'.split(' ');

const BOND = object(
  {
    mode: choice(BOND_MODES),
    port: list(name),
    ports: list(name),
    slaves: list(name),
    options: object({
      ad_actor_sys_prio: integer(0, U16),
      ad_actor_system: (value: unknown, place: Place) => mac(value, place).toUpperCase(),
      ad_select: choice(['stable', 'bandwidth', 'count']),
      ad_user_port_key: integer(0, U16),
      all_slaves_active: (value: unknown, place: Place) =>
        Number(choice(['dropped', 'delivered'])(value, place) === 'delivered'),
      arp_all_targets: choice(['any', 'all']),
      arp_interval: number,
      arp_ip_target: (value: unknown, place: Place) =>
        typeof value === 'string' ? list(ip)(value.split(','), place).join(',') : ip(value, place),
      arp_missed_max: integer(0, U8),
      arp_validate: choice(ARP_VALIDATE),
      downdelay: number,
      fail_over_mac: choice(['none', 'active', 'follow']),
      lacp_rate: choice(['slow', 'fast']),
      lp_interval: number,
      miimon: number,
      min_links: number,
      num_grat_arp: integer(0, U8),
      num_unsol_na: integer(0, U8),
      packets_per_slave: number,
      primary: name,
      primary_reselect: choice(['always', 'better', 'failure']),
      resend_igmp: number,
      tlb_dynamic_lb: digit,
      updelay: number,
      use_carrier: digit,
      xmit_hash_policy: choice(HASHES),
    }),
  },
  ['mode'],
);

const PORTS = list(object({ name, vlan: object({}) }, ['name']));
const BRIDGE = object({
  port: PORTS,
  ports: PORTS,
  options: object({ stp: object({ enabled: flag }) }),
});

/** Members of interfaces, by type. */
const INTERFACES = {
  'ethernet': object({ ...COMMON, ethernet: object({}) }, ['name']),
  'vlan': object({ ...COMMON, vlan: VLAN }, ['name', 'vlan']),
  'bond': object({ ...COMMON, 'link-aggregation': BOND }, ['name', 'link-aggregation']),
  'linux-bridge': object({ ...COMMON, bridge: BRIDGE }, ['name']),
};

export type InterfaceType = keyof typeof INTERFACES;

export type Interface = Omit<ReturnType<(typeof INTERFACES)['ethernet']>, 'type'> & {
  readonly 'type': InterfaceType;
  readonly 'vlan'?: ReturnType<typeof VLAN>;
  readonly 'link-aggregation'?: ReturnType<typeof BOND>;
  readonly 'bridge'?: ReturnType<typeof BRIDGE>;
};

const STATE = word(['up', 'down', 'absent', 'ignore'], ['unknown']);

/** Reads an interface; undefined if it gets no profile here: its state removes it, or its type is foreign. */
export const networkInterface: KindOfNetworkInterfaces<Interface | undefined> = (value, place) => {
  const { name: found } = object({ name }, ['name'])(value, { ...place, foreign: [] });
  const inside = { ...place, owner: `interface "${found}"`, path: '' };
  const members = objectOrEmpty(value);
  const state = STATE(members['state'] ?? 'up', { ...inside, path: 'state' });
  if (state === 'absent' || state === 'ignore') return undefined;
  const type = line(members['type'] ?? 'ethernet', { ...inside, path: 'type' }).toLowerCase();
  if (isType(type)) {
    const read = { ...INTERFACES[type](value, inside), type };
    requirePossible(read, inside);
    return read;
  }
  place.foreign.push(unsupported(`${inside.owner} is of type ${type}, which needs nmstate`));
  return undefined;
};

const isType = (type: string): type is InterfaceType => Object.hasOwn(INTERFACES, type);

/**
 * True if the name fits the kernel: the script that installs the profiles at boot shortens the
 * first part of a VLAN's name if the whole is too long.
 */
const fitsKernel = (text: string, type: InterfaceType): boolean =>
  text.length <= LONGEST_NAME || (type === 'vlan' && /^[^.]{1,15}\.\d{1,4}$/.test(text));

function requirePossible(found: Interface, place: Place): void {
  const { name: text, type, identifier = 'name', ipv6, mtu = LEAST_IPV6_MTU } = found;
  if (identifier === 'name' && !fitsKernel(text, type)) {
    throw refuse(place, `a name must have at most ${LONGEST_NAME} characters`);
  }
  if (identifier === 'mac-address' && found['mac-address'] === undefined) {
    throw refuse(place, "missing field 'mac-address'");
  }
  if (ipv6?.enabled !== true || mtu >= LEAST_IPV6_MTU) return;
  const least = `MTU should be >= ${LEAST_IPV6_MTU} when IPv6 is enabled`;
  throw refuse(place, `${least}, but got mtu: ${mtu}`);
}

// The members that nmstate 2.2 (nmstate.io) reads, by name, with the kinds of their values.

/**
 * A list of words means one of them. A flag and a number may also be written as a string. A null may
 * replace a string, list or mapping unless it is required (`present`).
 */
export type Kind =
  | ('text' | 'texts' | 'flag' | 'number' | 'integer' | 'any')
  | ('list' | 'map' | 'present list' | 'present map')
  | readonly string[];

export type Words = Readonly<Record<string, Kind>>;

export const DOCUMENT: Words = {
  'description': 'any',
  'hostname': 'map',
  'dns-resolver': 'map',
  'route-rules': 'present map',
  'routes': 'present map',
  'interfaces': 'present list',
  'ovs-db': 'map',
  'ovn': 'map',
};

export const HOSTNAME: Words = { running: 'any', config: 'any' };

export const RESOLVER: Words = { running: 'map', config: 'map' };

export const RESOLVER_CONFIG: Words = { server: 'list', search: 'list', options: 'list' };

export const ROUTES: Words = { running: 'list', config: 'list' };

export const ROUTE_RULES: Words = { config: 'list' };

export const ROUTE: Words = {
  'state': ['absent'],
  'destination': 'any',
  'next-hop-interface': 'any',
  'next-hop-address': 'any',
  'metric': 'integer',
  'table-id': 'number',
  'weight': 'number',
  'route-type': 'any',
  'cwnd': 'number',
  'source': 'any',
};

export const ROUTE_RULE: Words = {
  'family': 'any',
  'state': ['absent'],
  'ip-from': 'any',
  'ip-to': 'any',
  'priority': 'integer',
  'route-table': 'number',
  'fwmark': 'number',
  'fwmask': 'number',
  'action': 'any',
  'iif': 'any',
  'suppress-prefix-length': 'number',
  'suppress_prefixlength': 'number',
};

/** Members of interfaces of every type. */
export const INTERFACE: Words = {
  'name': 'text',
  'profile-name': 'text',
  'description': 'text',
  'type': 'text',
  'driver': 'text',
  'state': ['up', 'down', 'absent', 'ignore', 'unknown'],
  'identifier': 'text',
  'mac-address': 'text',
  'permanent-mac-address': 'text',
  'pci-address': 'text',
  'mtu': 'number',
  'min-mtu': 'number',
  'max-mtu': 'number',
  'wait-ip': 'text',
  'ipv4': 'map',
  'ipv6': 'map',
  'mptcp': 'map',
  'controller': 'text',
  'accept-all-mac-addresses': 'flag',
  'copy-mac-from': 'text',
  'ovs-db': 'map',
  '802.1x': 'map',
  'lldp': 'map',
  'ethtool': 'map',
  'dispatch': 'map',
};

export const FAMILY: Words = {
  'enabled': 'flag',
  'dhcp': 'flag',
  'autoconf': 'flag',
  'dhcp-client-id': 'text',
  'dhcp-duid': 'text',
  'address': 'list',
  'auto-dns': 'flag',
  'auto-gateway': 'flag',
  'auto-routes': 'flag',
  'auto-route-table-id': 'number',
  'auto-route-metric': 'number',
  'addr-gen-mode': 'text',
  'allow-extra-address': 'flag',
  'token': 'text',
  'dhcp-send-hostname': 'flag',
  'dhcp-custom-hostname': 'text',
};

export const ADDRESS: Words = {
  'ip': 'text',
  'prefix-length': 'number',
  'mptcp-flags': 'list',
  'valid-life-time': 'text',
  'valid-left': 'text',
  'valid-lft': 'text',
  'preferred-life-time': 'text',
  'preferred-left': 'text',
  'preferred-lft': 'text',
};

export const BOND_OPTIONS: Words = Object.fromEntries(
  [
    'ad_actor_sys_prio ad_actor_system ad_select ad_user_port_key all_slaves_active arp_all_targets',
    'arp_interval arp_ip_target arp_missed_max arp_validate balance_slb balance-slb downdelay',
    'fail_over_mac lacp_rate lp_interval miimon min_links num_grat_arp num_unsol_na',
    'packets_per_slave primary primary_reselect resend_igmp tlb_dynamic_lb updelay use_carrier',
    'xmit_hash_policy',
  ]
    .join(' ')
    .split(' ')
    .map((name) => [name, 'any']),
);

const BRIDGE_WORDS: Words = { options: 'map', port: 'list', ports: 'list' };

const MAC_VLAN: Words = {
  'base-iface': 'text',
  'mode': 'text',
  'promiscuous': 'flag',
  'accept-all-mac': 'flag',
};

const ETHERNET: Sections = {
  ethernet: { 'sr-iov': 'map', 'auto-negotiation': 'flag', 'speed': 'number', 'duplex': 'text' },
  veth: { peer: 'text' },
};

/** The settings of interfaces of one type; undefined if their members are not checked. */
export type Sections = Readonly<Record<string, Words | undefined>>;

/** Settings by type of interface. */
export const SECTIONS: Readonly<Record<string, Sections>> = {
  'bond': {
    'link-aggregation': {
      'mode': 'any',
      'options': 'map',
      'port': 'texts',
      'ports': 'texts',
      'ports-config': 'list',
    },
  },
  'dummy': {},
  'ethernet': ETHERNET,
  'hsr': { hsr: undefined },
  'infiniband': { infiniband: { 'mode': 'text', 'base-iface': 'text', 'pkey': 'any' } },
  'ipsec': { libreswan: undefined },
  'ipvlan': { ipvlan: undefined },
  'linux-bridge': { bridge: BRIDGE_WORDS },
  'loopback': {},
  'mac-vlan': { 'mac-vlan': MAC_VLAN },
  'mac-vtap': { 'mac-vtap': MAC_VLAN },
  'macsec': { macsec: undefined },
  'ovs-bridge': { bridge: { ...BRIDGE_WORDS, 'allow-extra-patch-ports': 'flag' } },
  'ovs-interface': { patch: undefined, dpdk: undefined },
  'veth': ETHERNET,
  'vlan': {
    vlan: {
      'base-iface': 'text',
      'id': 'number',
      'protocol': 'text',
      'registration-protocol': 'text',
      'reorder-headers': 'flag',
      'loose-binding': 'flag',
    },
  },
  'vrf': { vrf: { 'port': 'texts', 'ports': 'texts', 'route-table-id': 'number' } },
  'vxlan': {
    vxlan: {
      'base-iface': 'text',
      'id': 'number',
      'learning': 'flag',
      'local': 'text',
      'remote': 'text',
      'destination-port': 'number',
    },
  },
  'xfrm': { xfrm: undefined },
};

/** Words of other tools and of other types, which nmstate refuses at any place, with a hint for each. */
export const FOREIGN: ReadonlyMap<string, string> = new Map([
  ...spread('gateway gateway4 gateway6 via', 'write it as the next-hop-address of a route'),
  ...spread('dns nameserver nameservers', 'write it below dns-resolver.config.server'),
  ...spread('to dst', 'write it as the destination of a route'),
  ...spread('dev', 'write it as the next-hop-interface of a route'),
  ...spread('netmask', 'write prefix-length instead'),
  ...spread('addresses', 'write address instead'),
  ...spread('from', 'write ip-from instead'),
  ...spread('slaves', 'write port instead'),
  ...Object.entries(SECTIONS).flatMap(([type, sections]) =>
    Object.keys(sections).map(
      (name) => [name, `only interfaces of a type like ${type} have this`] as const,
    ),
  ),
]);

function spread(words: string, hint: string): readonly (readonly [string, string])[] {
  return words.split(' ').map((word) => [word, hint] as const);
}
