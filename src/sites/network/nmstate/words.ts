// What nmstate reads in its documents (nmstate 2.2, nmstate.io): names of members and what stands there.

/**
 * A list of words: one of them. A flag and a number may be written as text, too. Nothing may stand for
 * texts, lists and mappings, but not where they must be present.
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

/** Of interfaces of every type. */
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

const BRIDGE: Words = { options: 'map', port: 'list', ports: 'list' };

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

/** The settings that interfaces of one type have; undefined where their members are not looked at. */
export type Sections = Readonly<Record<string, Words | undefined>>;

/** By type of interface. */
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
  'linux-bridge': { bridge: BRIDGE },
  'loopback': {},
  'mac-vlan': { 'mac-vlan': MAC_VLAN },
  'mac-vtap': { 'mac-vtap': MAC_VLAN },
  'macsec': { macsec: undefined },
  'ovs-bridge': { bridge: { ...BRIDGE, 'allow-extra-patch-ports': 'flag' } },
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

/** Words of other tools and of other types, which nmstate refuses wherever they stand; and what helps. */
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
