import { isIP } from 'node:net';
import {
  FREE,
  LEFT_OUT,
  list,
  noted,
  optional,
  partial,
  record,
  type Shape,
  transform,
  type TypeOf,
} from '../shape/shape.ts';
import { COMMON, label, line, mac, name, U32 } from './members.ts';
import {
  choice,
  flag,
  foreign,
  foreignMembers,
  integer,
  type NetworkPlace,
  readAlong,
  parsedText,
  word,
} from './values.ts';

/*
 * This file owns the members of interfaces by their type, as nmstate 2.2.62 (nmstate.io) has them, and
 * which of them are translated.
 */

const U16 = 2 ** 16 - 1;
const U8 = 2 ** 8 - 1;

const digit = transform(flag, Number);

/** Another name of the ports of a controller. */
const PORTS = { aliases: { ports: 'port' } } as const;

const VLAN = record({
  'base-iface': name,
  'id': integer(0, 4094),
  'protocol': optional(word(['802.1q'], ['802.1ad'])),
  ...foreignMembers(
    'registration-protocol reorder-headers loose-binding ingress-qos-map egress-qos-map',
  ),
});

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

const targets = parsedText('a list of IPv4 addresses, separated by commas', (written) =>
  written === '' || written.split(',').every((each) => isIP(each) === 4) ? written : undefined,
);

/** The ranges are those of NetworkManager (nm-setting-bond.c), which drops other values. */
const MAX_INT = 2 ** 31 - 1;
const time = integer(0, MAX_INT);

const BOND_OPTIONS = record(
  {
    ...partial({
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
    }).members,
    ...foreignMembers('balance_slb lacp_active ns_ip6_target'),
  },
  { aliases: { 'balance-slb': 'balance_slb' } },
);

const BOND = record(
  {
    'mode': choice(BOND_MODES, { lacp: '802.3ad' }),
    'port': optional(list(name)),
    'ports-config': optional(foreign),
    'options': optional(BOND_OPTIONS),
  },
  PORTS,
);

const BRIDGE_PORTS = list(
  record({
    name,
    vlan: optional(
      noted(FREE, (value) =>
        Object.keys(Object(value) as object).length === 0 ? undefined : 'needs nmstate',
      ),
    ),
    ...foreignMembers('stp-hairpin-mode stp-path-cost stp-priority'),
  }),
);

const BRIDGE_OPTIONS =
  'gc-timer group-addr group-forward-mask group-fwd-mask hash-max hello-timer mac-ageing-time ' +
  'multicast-last-member-count multicast-last-member-interval multicast-membership-interval ' +
  'multicast-querier multicast-querier-interval multicast-query-interval ' +
  'multicast-query-response-interval multicast-query-use-ifaddr multicast-router ' +
  'multicast-snooping multicast-startup-query-count multicast-startup-query-interval ' +
  'vlan-protocol vlan-default-pvid';

const STP = record({
  enabled: optional(flag),
  ...foreignMembers('forward-delay hello-time max-age priority'),
});
const BRIDGE = partial(
  {
    'port': BRIDGE_PORTS,
    'allow-extra-ports': FREE,
    'options': record({ stp: optional(STP), ...foreignMembers(BRIDGE_OPTIONS) }),
  },
  PORTS,
);

const OVS_BOND = record(
  {
    port: optional(list(record({ name }))),
    ...foreignMembers('mode options bond-downdelay bond-updelay ovs-db'),
  },
  PORTS,
);
const OVS_PORT = record(
  { name, 'vlan': optional(foreign), 'link-aggregation': optional(OVS_BOND) },
  { aliases: { bond: 'link-aggregation' } },
);
const OVS_BRIDGE = record(
  {
    port: optional(list(OVS_PORT)),
    ...foreignMembers('options allow-extra-patch-ports allow-extra-ports'),
  },
  PORTS,
);
const VRF = record({ 'port': optional(list(name)), 'route-table-id': integer(1, U32) }, PORTS);
const VXLAN = record({
  'base-iface': optional(name),
  'id': integer(0, 2 ** 24 - 1),
  ...foreignMembers('learning local remote destination-port'),
});
const MAC_VLAN = record(
  { 'base-iface': name, 'mode': line, 'promiscuous': optional(foreign) },
  { aliases: { 'accept-all-mac': 'promiscuous' } },
);
const INFINIBAND = record({
  'mode': line,
  'base-iface': optional(FREE),
  'pkey': optional(foreign),
});

const ETHERNET = partial({
  ethernet: record(foreignMembers('sr-iov auto-negotiation speed duplex')),
  veth: foreign,
}).members;

/** Members of interfaces by type, besides those of every type. Without its own, a VLAN or a bond has no meaning. */
const SECTIONS = {
  'ethernet': ETHERNET,
  'vlan': { vlan: VLAN },
  'bond': { 'link-aggregation': BOND },
  'linux-bridge': partial({ bridge: BRIDGE }).members,
  'dummy': {},
  'hsr': foreignMembers('hsr'),
  'infiniband': partial({ infiniband: INFINIBAND }).members,
  'ip-tunnel': foreignMembers('ip-tunnel'),
  'ipsec': foreignMembers('libreswan'),
  'ipvlan': foreignMembers('ipvlan'),
  'loopback': {},
  'mac-vlan': partial({ 'mac-vlan': MAC_VLAN }).members,
  'mac-vtap': partial({ 'mac-vtap': MAC_VLAN }).members,
  'macsec': foreignMembers('macsec'),
  'ovs-bridge': partial({ bridge: OVS_BRIDGE }).members,
  'ovs-interface': foreignMembers('patch dpdk'),
  'tun': foreignMembers('tun'),
  'veth': ETHERNET,
  'vpn': {},
  'vrf': partial({ vrf: VRF }).members,
  'vxlan': partial({ vxlan: VXLAN }).members,
  'xfrm': {},
} as const;

const SHAPES = new Map(
  Object.entries(SECTIONS).map(([type, sections]) => {
    const aliases = type === 'bond' ? { bond: 'link-aggregation' } : {};
    return [type, record({ name: label, ...COMMON, ...sections }, { aliases })] as const;
  }),
);
/** The members of every type, which are all that is read of an unknown type. */
const OF_OTHER_TYPE = record({ name: label, ...COMMON }, LEFT_OUT);

/** True for types whose interfaces do not have their name in the kernel. */
export const isLongNamed = (type: unknown): boolean =>
  ['ovs-bridge', 'ovs-interface', 'ipsec', 'vpn'].includes(type as string);

/** Types with profiles that are written here. */
export const TRANSLATED = ['ethernet', 'vlan', 'bond', 'linux-bridge'] as const;
export type TranslatedType = (typeof TRANSLATED)[number];

export const isTranslated = (type: string): boolean =>
  type === 'unknown' || TRANSLATED.includes(type as TranslatedType);

/** Reads the members of a type. If a whole type needs nmstate, that is listed once. */
export function readMembers(
  type: string,
  value: unknown,
  place: NetworkPlace,
): InterfaceMembers | undefined {
  const inside = isTranslated(type)
    ? place
    : { ...place, found: { ...place.found, untranslated: [] } };
  const shape: Shape = SHAPES.get(type) ?? OF_OTHER_TYPE;
  return readAlong(shape, value, inside) as InterfaceMembers | undefined;
}

export const isKnownType = (type: string): boolean => SHAPES.has(type);

type Ports = { readonly port?: readonly (string | TypeOf<typeof OVS_PORT>)[] };
type InterfaceMembers = Omit<TypeOf<typeof OF_OTHER_TYPE>, 'type' | 'state'> & {
  readonly 'vlan'?: TypeOf<typeof VLAN>;
  readonly 'link-aggregation'?: TypeOf<typeof BOND>;
  readonly 'bridge'?: Ports & Omit<TypeOf<typeof BRIDGE>, 'port'>;
  readonly 'vrf'?: TypeOf<typeof VRF>;
  readonly 'vxlan'?: TypeOf<typeof VXLAN>;
  readonly 'mac-vlan'?: TypeOf<typeof MAC_VLAN>;
  readonly 'mac-vtap'?: TypeOf<typeof MAC_VLAN>;
};

/** An interface of any type. */
export type NetworkInterface = InterfaceMembers & {
  readonly path: string;
  readonly type: string;
  readonly state: 'up' | 'down' | 'absent' | 'ignore';
};
