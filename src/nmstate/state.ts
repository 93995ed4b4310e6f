import { isIP } from 'node:net';
import { COMMON, line, mac, name, U32 } from './members.ts';
import {
  choice,
  expected,
  flag,
  foreign,
  foreignMembers,
  integer,
  type Kind,
  list,
  type Members,
  object,
  type Place,
  reportAt,
  unused,
  word,
} from './values.ts';

/*
 * This file owns the members of interfaces by their type, as nmstate 2.2.62 (nmstate.io) has them, and
 * which of them are translated.
 */

const U16 = 2 ** 16 - 1;
const U8 = 2 ** 8 - 1;

const digit: Kind<number> = (value, place) => {
  const read = flag(value, place);
  return read === null ? null : Number(read);
};

const VLAN = object(
  {
    'base-iface': name,
    'id': integer(0, 4094),
    'protocol': word(['802.1q'], ['802.1ad']),
    'registration-protocol': foreign,
    'reorder-headers': foreign,
    'loose-binding': foreign,
    'ingress-qos-map': foreign,
    'egress-qos-map': foreign,
  },
  { required: ['base-iface', 'id'] },
);

/** Modes by their number in the kernel. */
const BOND_MODES = [
  'balance-rr',
  'active-backup',
  'balance-xor',
  'broadcast',
  '802.3ad',
  'balance-tlb',
  'balance-alb',
] as const;

const ARP_VALIDATE = 'none active backup all filter filter_active filter_backup'.split(' ');
const HASHES = 'layer2 layer3+4 layer2+3 encap2+3 encap3+4 vlan+srcmac'.split(' ');

const targets: Kind<string> = (value, place) =>
  typeof value === 'string' && (value === '' || value.split(',').every((each) => isIP(each) === 4))
    ? value
    : reportAt(place, expected(value, 'a list of IPv4 addresses, separated by commas'));

/** The ranges are those of NetworkManager (nm-setting-bond.c), which drops other values. */
const MAX_INT = 2 ** 31 - 1;
const time = integer(0, MAX_INT);

const BOND_OPTIONS = object(
  {
    ad_actor_sys_prio: integer(1, U16),
    ad_actor_system: mac,
    ad_select: choice(['stable', 'bandwidth', 'count']),
    ad_user_port_key: integer(0, 1023),
    all_slaves_active: choice(['dropped', 'delivered']),
    arp_all_targets: choice(['any', 'all']),
    arp_interval: time,
    arp_ip_target: targets,
    arp_missed_max: integer(0, U8),
    arp_validate: choice(ARP_VALIDATE),
    downdelay: time,
    fail_over_mac: choice(['none', 'active', 'follow']),
    lacp_rate: choice(['slow', 'fast']),
    lp_interval: integer(1, MAX_INT),
    miimon: time,
    min_links: time,
    num_grat_arp: integer(0, U8),
    num_unsol_na: integer(0, U8),
    packets_per_slave: integer(0, U16),
    primary: name,
    primary_reselect: choice(['always', 'better', 'failure']),
    resend_igmp: integer(0, U8),
    tlb_dynamic_lb: digit,
    updelay: time,
    use_carrier: digit,
    xmit_hash_policy: choice(HASHES),
    balance_slb: foreign,
    lacp_active: foreign,
    ns_ip6_target: foreign,
  },
  { aliases: { 'balance-slb': 'balance_slb' } },
);

const BOND = object(
  {
    'mode': choice(BOND_MODES, { lacp: '802.3ad' }),
    'port': list(name),
    'ports-config': foreign,
    'options': BOND_OPTIONS,
  },
  { required: ['mode'], aliases: { ports: 'port' } },
);

const BRIDGE_PORTS = list(
  object(
    {
      'name': name,
      'vlan': (value: unknown, place: Place): null =>
        Object.keys(Object(value) as object).length === 0 ? null : foreign(value, place),
      'stp-hairpin-mode': foreign,
      'stp-path-cost': foreign,
      'stp-priority': foreign,
    },
    { required: ['name'] },
  ),
);

const BRIDGE_OPTIONS =
  'gc-timer group-addr group-forward-mask group-fwd-mask hash-max hello-timer mac-ageing-time ' +
  'multicast-last-member-count multicast-last-member-interval multicast-membership-interval ' +
  'multicast-querier multicast-querier-interval multicast-query-interval ' +
  'multicast-query-response-interval multicast-query-use-ifaddr multicast-router ' +
  'multicast-snooping multicast-startup-query-count multicast-startup-query-interval ' +
  'vlan-protocol vlan-default-pvid';

const BRIDGE = object(
  {
    'port': BRIDGE_PORTS,
    'allow-extra-ports': unused,
    'options': object({
      ...foreignMembers(BRIDGE_OPTIONS),
      stp: object({
        enabled: flag,
        ...foreignMembers('forward-delay hello-time max-age priority'),
      }),
    }),
  },
  { aliases: { ports: 'port' } },
);

const OVS_PORT = object(
  {
    'name': name,
    'vlan': foreign,
    'link-aggregation': object(
      {
        'mode': foreign,
        'port': list(object({ name }, { required: ['name'] })),
        'options': foreign,
        'bond-downdelay': foreign,
        'bond-updelay': foreign,
        'ovs-db': foreign,
      },
      { aliases: { ports: 'port' } },
    ),
  },
  { required: ['name'], aliases: { bond: 'link-aggregation' } },
);
const OVS_BRIDGE = object(
  { port: list(OVS_PORT), ...foreignMembers('options allow-extra-patch-ports allow-extra-ports') },
  { aliases: { ports: 'port' } },
);
const VRF = object(
  { 'port': list(name), 'route-table-id': integer(1, U32) },
  { required: ['route-table-id'], aliases: { ports: 'port' } },
);
const VXLAN = object(
  {
    'base-iface': name,
    'id': integer(0, 2 ** 24 - 1),
    ...foreignMembers('learning local remote destination-port'),
  },
  { required: ['id'] },
);
const MAC_VLAN = object(
  { 'base-iface': name, 'mode': line, 'promiscuous': foreign },
  { required: ['base-iface', 'mode'], aliases: { 'accept-all-mac': 'promiscuous' } },
);
const INFINIBAND = object(
  { 'mode': line, 'base-iface': unused, 'pkey': foreign },
  { required: ['mode'] },
);

const ETHERNET = {
  ethernet: object(foreignMembers('sr-iov auto-negotiation speed duplex')),
  veth: foreign,
};

/** Members of interfaces by type, besides those of every type. */
const SECTIONS = {
  'ethernet': ETHERNET,
  'vlan': { vlan: VLAN },
  'bond': { 'link-aggregation': BOND },
  'linux-bridge': { bridge: BRIDGE },
  'dummy': {},
  'hsr': { hsr: foreign },
  'infiniband': { infiniband: INFINIBAND },
  'ip-tunnel': { 'ip-tunnel': foreign },
  'ipsec': { libreswan: foreign },
  'ipvlan': { ipvlan: foreign },
  'loopback': {},
  'mac-vlan': { 'mac-vlan': MAC_VLAN },
  'mac-vtap': { 'mac-vtap': MAC_VLAN },
  'macsec': { macsec: foreign },
  'ovs-bridge': { bridge: OVS_BRIDGE },
  'ovs-interface': { patch: foreign, dpdk: foreign },
  'tun': { tun: foreign },
  'veth': ETHERNET,
  'vpn': {},
  'vrf': { vrf: VRF },
  'vxlan': { vxlan: VXLAN },
  'xfrm': {},
} as const;

/** True for types whose interfaces do not have their name in the kernel. */
export const isLongNamed = (type: unknown): boolean =>
  ['ovs-bridge', 'ovs-interface', 'ipsec', 'vpn'].includes(type as string);

/** Types with profiles that are written here. */
export const TRANSLATED = ['ethernet', 'vlan', 'bond', 'linux-bridge'] as const;
export type TranslatedType = (typeof TRANSLATED)[number];

export const isTranslated = (type: string): boolean =>
  type === 'unknown' || TRANSLATED.includes(type as TranslatedType);

/** A section without which an interface of the type has no meaning. */
const NEEDED: Readonly<Record<string, 'vlan' | 'link-aggregation'>> = {
  vlan: 'vlan',
  bond: 'link-aggregation',
};

/**
 * Reads the members of an interface of a type; of an unknown type, only those of every type. What an
 * interface needs nmstate for is listed once, if its whole type does.
 */
export function readMembers(type: string, value: object, place: Place): InterfaceMembers | null {
  const sections = sectionsOf(type);
  const known = sections
    ? value
    : Object.fromEntries(Object.entries(value).filter(([key]) => Object.hasOwn(COMMON, key)));
  const kinds: Readonly<Record<string, Kind<unknown>>> = { ...COMMON, ...sections };
  const needed = Object.hasOwn(NEEDED, type) ? NEEDED[type] : undefined;
  const required: readonly string[] = needed === undefined ? ['name'] : ['name', needed];
  const aliases = type === 'bond' ? { bond: 'link-aggregation' } : {};
  const inside = isTranslated(type)
    ? place
    : { ...place, found: { ...place.found, untranslated: [] } };
  return object(kinds, { required, aliases })(known, inside) as InterfaceMembers | null;
}

const sectionsOf = (type: string): Readonly<Record<string, Kind<unknown>>> | undefined =>
  isKnownType(type) ? SECTIONS[type as keyof typeof SECTIONS] : undefined;

export const isKnownType = (type: string): boolean => Object.hasOwn(SECTIONS, type);

type Read<K> = K extends Kind<infer T> ? T : never;
type Ports = { readonly port?: readonly (string | Read<typeof OVS_PORT>)[] };
type InterfaceMembers = Omit<Members<typeof COMMON, 'name'>, 'type' | 'state'> & {
  readonly 'vlan'?: Read<typeof VLAN>;
  readonly 'link-aggregation'?: Read<typeof BOND>;
  readonly 'bridge'?: Ports & Omit<Read<typeof BRIDGE>, 'port'>;
  readonly 'vrf'?: Read<typeof VRF>;
  readonly 'vxlan'?: Read<typeof VXLAN>;
  readonly 'mac-vlan'?: Read<typeof MAC_VLAN>;
  readonly 'mac-vtap'?: Read<typeof MAC_VLAN>;
};

/** An interface of any type. */
export type NetworkInterface = InterfaceMembers & {
  readonly path: string;
  readonly type: string;
  readonly state: 'up' | 'down' | 'absent' | 'ignore';
};
