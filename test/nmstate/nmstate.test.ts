import { describe, expect, it } from 'vitest';
import { checkImageBased, eth0, network, tell } from '../support/site-inputs.ts';

type Row = readonly [what: string, lines: readonly string[], ...problems: readonly string[]];

const route = (members: string): readonly string[] => [
  ...eth0(),
  `routes: {config: [{${members}}]}`,
];
const rule = (members: string): readonly string[] => [
  ...eth0(),
  `route-rules: {config: [{${members}}]}`,
];

const MEMBERS: readonly Row[] = [
  [
    'a misspelt member',
    eth0('  mac-adress: 52:54:00:00:00:01'),
    '8:17 networkConfig.interfaces[0].mac-adress: interface "eth0": unknown field "mac-adress"',
  ],
  [
    'another spelling of a word',
    eth0('  mac_address: 52:54:00:00:00:01'),
    '8:18 networkConfig.interfaces[0].mac_address: interface "eth0": unknown field "mac_address"',
  ],
  [
    'a word of another tool',
    eth0('  ipv6: {enabled: true, dhcp: true, autoconf: true, gateway: "fe80::1"}'),
    '8:64 networkConfig.interfaces[0].ipv6.gateway: interface "eth0": unknown field "gateway"',
  ],
  [
    'the settings of another type',
    eth0('  vlan: {base-iface: eth1, id: 7}'),
    '8:11 networkConfig.interfaces[0].vlan: interface "eth0": unknown field "vlan"',
  ],
  [
    'an option of a bond that none has',
    eth0(
      '- {name: bond0, type: bond, link-aggregation: {mode: 802.3ad, options: {mimon: 100}, port: [eth1]}}',
    ),
    '8:82 networkConfig.interfaces[1].link-aggregation.options.mimon: interface "bond0": unknown field "mimon"',
  ],
  [
    'name servers that are not below config',
    [...eth0(), 'dns-resolver: {server: [192.0.2.53]}'],
    '8:26 networkConfig.dns-resolver.server: unknown field "server"',
  ],
  [
    'a name that is a number',
    eth0('- {name: 123, type: dummy}'),
    '8:12 networkConfig.interfaces[1].name: 123 is not the name of an interface: put it in quotes',
  ],
  [
    'a flag that nobody understands',
    eth0('  ipv6: {enabled: true, dhcp: true, auto-dns: maybe}'),
    '8:49 networkConfig.interfaces[0].ipv6.auto-dns: interface "eth0": "maybe" is not true or false',
  ],
  [
    'an address without its braces',
    eth0('- name: eth1', '  ipv4: {enabled: true, address: {ip: 192.0.2.9, prefix-length: 24}}'),
    '9:36 networkConfig.interfaces[1].ipv4.address: interface "eth1": an object is not a list',
  ],
  [
    'a hostname that is not an object',
    [...eth0(), 'hostname: alpha'],
    '8:13 networkConfig.hostname: "alpha" is not an object',
  ],
  [
    'interfaces that are nothing',
    ['interfaces:'],
    '4:3 networkConfig: nmstate generated an empty NetworkManager config file content',
  ],
  [
    'a length that is a mapping',
    eth0('  mtu: {}'),
    '8:10 networkConfig.interfaces[0].mtu: interface "eth0": an object is not a whole number from 0 to 4294967295',
  ],
  [
    'a number beyond all numbers',
    eth0('  mtu: 99999999999999999999'),
    '8:10 networkConfig.interfaces[0].mtu: interface "eth0": 100000000000000000000 is not a whole number from 0 to 4294967295',
  ],
  [
    'packets too small for IPv6',
    eth0('  mtu: 1000', '  ipv6: {enabled: true, dhcp: true, autoconf: true}'),
    '8:10 networkConfig.interfaces[0].mtu: interface "eth0": IPv6 needs an MTU of at least 1280, but got 1000',
  ],
  [
    'autoconf of IPv4',
    eth0('- {name: eth1, ipv4: {enabled: true, autoconf: true}}'),
    '8:50 networkConfig.interfaces[1].ipv4.autoconf: interface "eth1": autoconf is not allowed for IPv4; write dhcp instead',
  ],
  [
    'interfaces and routes that all go away',
    [
      'interfaces: [{name: eth0, state: absent}]',
      'routes: {config: [{next-hop-interface: eth0, state: absent}]}',
    ],
    '4:3 networkConfig: nmstate generated an empty NetworkManager config file content',
  ],
  [
    'interfaces that all go away',
    ['interfaces:', '- {name: eth0, state: absent}', '- {name: eth1, state: ignore}'],
    '4:3 networkConfig: nmstate generated an empty NetworkManager config file content',
  ],
];

const TYPES: readonly Row[] = [
  [
    'a VXLAN without a number',
    eth0('- {name: vx0, type: vxlan, vxlan: {base-iface: eth0}}'),
    '8:37 networkConfig.interfaces[1].vxlan: interface "vx0": missing field \'id\'',
  ],
  [
    'a MAC VTAP on nothing',
    eth0('- {name: m0, type: mac-vtap, mac-vtap: {mode: bridge}}'),
    '8:42 networkConfig.interfaces[1].mac-vtap: interface "m0": missing field \'base-iface\'',
  ],
  [
    'an InfiniBand port without a mode',
    eth0('- {name: ib0, type: infiniband, infiniband: {pkey: "0x80ff"}}'),
    '8:47 networkConfig.interfaces[1].infiniband: interface "ib0": missing field \'mode\'',
  ],
  [
    'a port of a bridge without a name',
    eth0('- {name: br0, type: linux-bridge, bridge: {port: [{stp-priority: 32}]}}'),
    '8:53 networkConfig.interfaces[1].bridge.port[0]: interface "br0": missing field \'name\'',
  ],
  [
    'a VRF without a table',
    eth0('- {name: vrf0, type: vrf, vrf: {port: [eth1]}}'),
    '8:34 networkConfig.interfaces[1].vrf: interface "vrf0": missing field \'route-table-id\'',
  ],
  [
    'a port of a bridge that has addresses',
    [
      'interfaces:',
      '- {name: br0, type: linux-bridge, bridge: {port: [{name: eth0}]}}',
      '- name: eth0',
      '  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}',
    ],
    '7:11 networkConfig.interfaces[1].ipv4: interface "eth0": a port of br0 cannot have addresses of its own',
  ],
  [
    'a port of a bond of Open vSwitch that has addresses',
    [
      'interfaces:',
      '- {name: br0, type: ovs-bridge, bridge: {port: [{name: b, link-aggregation: {mode: balance-slb, port: [{name: eth0}, {name: eth1}]}}]}}',
      '- {name: eth0, ipv4: {enabled: true, dhcp: true}}',
    ],
    '6:24 networkConfig.interfaces[1].ipv4: interface "eth0": a port of br0 cannot have addresses of its own',
  ],
  [
    'a port that a bond has twice',
    eth0('- {name: bond0, type: bond, link-aggregation: {mode: 802.3ad, port: [eth1, eth1]}}'),
    '8:78 networkConfig.interfaces[1].link-aggregation.port[1]: interface "bond0": "eth1" is already a port of bond0',
  ],
];

const ROUTES: readonly Row[] = [
  [
    'a route over an interface that goes away',
    [
      ...eth0('- {name: eth1, state: absent}'),
      'routes: {config: [{destination: 198.51.100.0/24, next-hop-interface: eth1}]}',
    ],
    '9:72 networkConfig.routes.config[0].next-hop-interface: no interface has the name "eth1"',
  ],
  [
    'a route of a family that is off',
    route('destination: "::/0", next-hop-interface: eth0'),
    '8:63 networkConfig.routes.config[0].next-hop-interface: IPv6 is not enabled on "eth0"',
  ],
  [
    'a route into nothing with a gateway',
    route('destination: 198.51.100.0/24, route-type: blackhole, next-hop-address: 192.0.2.1'),
    '8:93 networkConfig.routes.config[0].next-hop-address: a blackhole route has no next hop',
  ],
  [
    'a default route of another length',
    route('destination: 0.0.0.0/8, next-hop-interface: eth0'),
    '8:35 networkConfig.routes.config[0].destination: no host is in 0.0.0.0/8; the default route is 0.0.0.0/0',
  ],
  [
    'a metric that is not a number',
    route('destination: 0.0.0.0/0, next-hop-interface: eth0, metric: low'),
    '8:80 networkConfig.routes.config[0].metric: "low" is not a whole number from -1 to 4294967295',
  ],
  [
    'a weight beyond 256',
    route('destination: 0.0.0.0/0, next-hop-interface: eth0, weight: 300'),
    '8:80 networkConfig.routes.config[0].weight: 300 is not a whole number from 1 to 256',
  ],
  [
    'a source of another family',
    route('destination: 0.0.0.0/0, next-hop-interface: eth0, source: "2001:db8::1"'),
    '8:80 networkConfig.routes.config[0].source: 2001:db8::1 is not an IPv4 address',
  ],
  [
    'a gateway by another name',
    route('destination: 0.0.0.0/0, next-hop-interface: eth0, via: 192.0.2.1'),
    '8:77 networkConfig.routes.config[0].via: unknown field "via"',
  ],
  [
    'a rule for nothing',
    rule('route-table: 254'),
    '8:26 networkConfig.route-rules.config[0]: a rule needs ip-from, ip-to or family',
  ],
  [
    'a rule from no network',
    rule('ip-from: here, route-table: 254'),
    '8:36 networkConfig.route-rules.config[0].ip-from: "here" is not an IP network',
  ],
  [
    'a rule between two families',
    rule('ip-from: 192.0.2.0/24, ip-to: "2001:db8::/64"'),
    '8:57 networkConfig.route-rules.config[0].ip-to: 2001:db8::/64 is not an IPv4 network',
  ],
  [
    'a name server of a family that no interface has',
    [...eth0(), 'dns-resolver: {config: {server: ["2001:db8::53"]}}'],
    '8:36 networkConfig.dns-resolver.config.server[0]: no interface has an IPv6 address, so none can have this name server',
  ],
  [
    'a name server on an interface that is not there',
    [...eth0(), 'dns-resolver: {config: {server: ["fe80::1%eth9"]}}'],
    '8:36 networkConfig.dns-resolver.config.server[0]: no interface has the name "eth9"',
  ],
];

describe('a network configuration is refused for', () => {
  it.for([...MEMBERS, ...TYPES, ...ROUTES])('%s', ([, lines, ...expected]) => {
    expect(tell(checkImageBased(network(lines)).problems)).toEqual(expected);
  });
});

describe('a network configuration may have', () => {
  it.for<Row>([
    ['routes that are nothing', [...eth0(), 'routes:']],
    [
      'flags and numbers as text',
      [
        'interfaces:',
        '- {name: eth0, mtu: "9000", ipv4: {enabled: "yes", dhcp: 0, address: [{ip: 192.0.2.5, prefix-length: "24"}]}}',
      ],
    ],
    ['a MAC address with dashes', eth0('  mac-address: 52-54-00-12-34-56')],
    [
      'the address of an InfiniBand port',
      eth0(
        `- {name: ib0, type: infiniband, infiniband: {mode: datagram, pkey: "0x80ff"}, mac-address: "${Array.from({ length: 20 }, () => 'a0').join(':')}"}`,
      ),
    ],
    [
      'any name of an interface that is found by its address',
      eth0(
        '- {name: the first port of the card, identifier: mac-address, mac-address: "52:54:00:12:34:56"}',
      ),
    ],
    [
      'any former settings of an interface that is removed',
      eth0(
        '- {name: bond9, type: bond, state: absent, mac-address: none, mtu: none, link-aggregation: {mode: none}}',
      ),
    ],
    [
      'an interface that is removed twice',
      eth0('- {name: eth1, state: absent}', '- {name: eth1, state: absent}'),
    ],
    [
      'settings that are left empty',
      eth0('  ipv6:', '  lldp:', '  mac-address: ""', '  description:'),
    ],
    [
      'settings of DHCP',
      [
        'interfaces:',
        '- {name: eth0, ipv4: {enabled: true, dhcp: true, auto-dns: false, auto-routes: true, auto-gateway: true, auto-route-table-id: 100, auto-route-metric: 5, dhcp-client-id: ll, dhcp-send-hostname: true}, ipv6: {enabled: true, dhcp: true, autoconf: true, addr-gen-mode: eui64}, wait-ip: ipv4, lldp: {enabled: true}, 802.1x: {eap-methods: [tls]}, accept-all-mac-addresses: false, ethtool: {ring: {rx: 256}}, ethernet: {speed: 1000, duplex: full, auto-negotiation: false, sr-iov: {total-vfs: 2}}}',
      ],
    ],
    [
      'a link-local name server with its interface',
      [
        'interfaces:',
        '- {name: eth0, ipv4: {enabled: true, dhcp: true}, ipv6: {enabled: true, dhcp: true, autoconf: true}}',
        'dns-resolver: {config: {server: ["fe80::1%eth0"], search: [a.example], options: [rotate, "ndots:2"]}}',
      ],
    ],
    [
      'a route without an interface that drops packets',
      route('destination: 198.51.100.0/24, route-type: unreachable, metric: "-1"'),
    ],
    ['a route over the loopback', route('destination: 198.51.100.0/24, next-hop-interface: lo')],
    [
      'an own route table with its rules',
      [
        ...route(
          'destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0, table-id: 200, metric: 150, weight: 7, cwnd: 20, source: 192.0.2.10',
        ),
        'route-rules: {config: [{ip-from: 192.0.2.10, route-table: 200, priority: 100}, {family: ipv6, action: prohibit, iif: eth0, fwmark: "0x30", fwmask: 0x10}, {route-table: 9, state: absent}]}',
      ],
    ],
    [
      'a gateway outside a subnet of one address',
      [
        'interfaces:',
        '- {name: eth0, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 32}]}}',
        'routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 198.51.100.1, next-hop-interface: eth0}]}',
      ],
    ],
    [
      'a gateway that another route reaches',
      [
        ...eth0(),
        'routes: {config: [{destination: 198.51.100.1/32, next-hop-interface: eth0}, {destination: 0.0.0.0/0, next-hop-address: 198.51.100.1, next-hop-interface: eth0}]}',
      ],
    ],
    [
      'the same address in two VRFs',
      eth0(
        '- {name: vrf0, type: vrf, vrf: {port: [eth1], route-table-id: 100}}',
        '- {name: eth1, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}}',
      ),
    ],
    [
      'interfaces of every type',
      eth0(
        '- {name: dummy0, type: dummy, ipv4: {enabled: true, address: [{ip: 198.51.100.1, prefix-length: 32}]}}',
        '- {name: veth1, type: veth, veth: {peer: veth2}}',
        '- {name: m0, type: mac-vtap, mac-vtap: {base-iface: eth0, mode: passthru, promiscuous: true}}',
        '- {name: m1, type: mac-vlan, mac-vlan: {base-iface: eth0, mode: bridge}}',
        '- {name: vx0, type: vxlan, vxlan: {base-iface: eth0, id: 43, remote: 198.51.100.9, destination-port: 4789}}',
        '- {name: eth0.7, type: vlan, vlan: {base-iface: eth0, id: "7", protocol: 802.1q, reorder-headers: false}}',
        '- {name: lo, type: loopback, ipv4: {enabled: true, address: [{ip: 127.0.0.1, prefix-length: 8}]}}',
        '- {name: hsr0, type: hsr, hsr: {port1: eth5, port2: eth6, multicast-spec: 40, protocol: prp}}',
        '- {name: macsec0, type: macsec, macsec: {encrypt: true, base-iface: eth0, port: 0}}',
        '- {name: a connection with a long name, type: ipsec, libreswan: {left: 192.0.2.10, right: 198.51.100.2}}',
        '- {name: iv0, type: ipvlan, ipvlan: {base-iface: eth0, mode: l2}}',
        '- {name: bond0, type: bond, link-aggregation: {mode: 1, options: {miimon: "140", primary: eth3}, ports: [eth3, eth4], ports-config: [{name: eth3, priority: 2}]}}',
        '- {name: br0, type: linux-bridge, bridge: {options: {stp: {enabled: false}}, port: [{name: bond0, vlan: {mode: trunk, trunk-tags: [{id: 101}]}}]}}',
        '- {name: br-ex, type: ovs-bridge, bridge: {allow-extra-patch-ports: true, options: {stp: false}, port: [{name: eth8}, {name: br-ex}]}}',
        '- {name: br-ex, type: ovs-interface, ipv4: {enabled: true, dhcp: true}}',
      ),
    ],
  ])('%s', ([, lines]) => {
    expect(tell(checkImageBased(network(lines)).problems)).toEqual([]);
  });
});

it('a hint names the member to write instead of that of another tool', () => {
  const { problems } = checkImageBased(
    network(eth0('  gateway: 192.0.2.1', '  bridge: {port: []}', '  mac-adress: x')),
  );
  expect(problems.map(({ hint }) => hint)).toEqual([
    'write it as the next-hop-address of a route',
    'set the type of the interface that has it',
    'did you mean "mac-address"?',
  ]);
});

describe('a network configuration brings a warning for', () => {
  it.for<Row>([
    [
      'a VLAN over an interface that is not defined',
      eth0('- {name: eth9.5, type: vlan, vlan: {base-iface: eth9, id: 5}}'),
      '8:51 networkConfig.interfaces[1].vlan.base-iface: interface "eth9.5": vlan eth9.5 needs "eth9", which is not defined',
    ],
    [
      'an option of a bond that NetworkManager drops',
      eth0(
        '- {name: bond0, type: bond, link-aggregation: {mode: 802.3ad, options: {tlb_dynamic_lb: 1}}}',
      ),
      '8:91 networkConfig.interfaces[1].link-aggregation.options.tlb_dynamic_lb: interface "bond0": has an effect only in the mode balance-tlb or balance-alb',
    ],
    [
      'a delay of a bond without miimon',
      eth0('- {name: bond0, type: bond, link-aggregation: {mode: 802.3ad, options: {updelay: 5}}}'),
      '8:84 networkConfig.interfaces[1].link-aggregation.options.updelay: interface "bond0": has an effect only with miimon, which is not given',
    ],
    [
      'a link-local address, which nmstate leaves out',
      eth0('  ipv6: {enabled: true, address: [{ip: "fe80::1", prefix-length: 64}]}'),
      '8:42 networkConfig.interfaces[0].ipv6.address[0].ip: interface "eth0": nmstate leaves out the link-local address fe80::1',
    ],
    [
      'a name server that is the host itself',
      [...eth0(), 'dns-resolver: {config: {server: [192.0.2.10]}}'],
      '8:36 networkConfig.dns-resolver.config.server[0]: the name server 192.0.2.10 is the address of the host itself',
    ],
  ])('%s', ([, lines, expected]) => {
    const { problems, warnings } = checkImageBased(network(lines));
    expect(tell(problems)).toEqual([]);
    expect(tell(warnings)).toEqual(expect.arrayContaining([expected]));
  });
});
