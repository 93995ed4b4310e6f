import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { checkSite } from '../../../src/sites/check.ts';
import {
  checkImageBased,
  createSiteInput,
  eth0,
  network,
  TEST_EPOCH,
  tell,
  writeImageBasedConfig,
  writeInstallConfig,
} from '../../support/site-inputs.ts';

type Row = readonly [what: string, lines: readonly string[], ...problems: readonly string[]];

const AT = 'networkConfig.interfaces[0]';
const ROUTE = 'networkConfig.routes.config[0]';

const route = (members: string): readonly string[] => [
  ...eth0(),
  `routes: {config: [{${members}}]}`,
];

const FORM: readonly Row[] = [
  [
    'a word that nmstate does not know',
    ['interface: []'],
    '4:14 networkConfig.interface: unknown field "interface"',
  ],
  [
    'interfaces that are not a list',
    ['interfaces: {eth0: {}}'],
    '4:15 networkConfig.interfaces: an object is not a list',
  ],
  [
    'an interface without a name',
    ['interfaces:', '- type: ethernet'],
    "5:5 networkConfig.interfaces[0]: missing field 'name'",
  ],
  [
    'a name that the kernel has no room for',
    eth0('- name: abcdefghijklmnop'),
    '8:11 networkConfig.interfaces[1].name: interface "abcdefghijklmnop": a name must have at most 15 bytes',
  ],
  [
    'two interfaces of one name',
    eth0('- name: eth0', '  type: ethernet'),
    '8:11 networkConfig.interfaces[1].name: interface "eth0": another interface has the same name',
  ],
  [
    'an unknown state',
    eth0('  state: upp'),
    '8:12 networkConfig.interfaces[0].state: interface "eth0": "upp" is not one of up, down, absent, ignore, unknown',
  ],
  [
    'an invalid MAC address',
    eth0('  mac-address: 52:54:00:12:34'),
    '8:18 networkConfig.interfaces[0].mac-address: interface "eth0": "52:54:00:12:34" is not a MAC address',
  ],
  [
    'an invalid MTU',
    eth0('  mtu: large'),
    '8:10 networkConfig.interfaces[0].mtu: interface "eth0": "large" is not a whole number from 0 to 4294967295',
  ],
  [
    'an invalid address',
    eth0('  ipv6: {enabled: true, address: [{ip: 192.0.2.9, prefix-length: 64}]}'),
    '8:42 networkConfig.interfaces[0].ipv6.address[0].ip: interface "eth0": "192.0.2.9" is not an IPv6 address',
  ],
  [
    'an address without a length',
    eth0('  ipv6: {enabled: true, address: [{ip: "2001:db8::1"}]}'),
    '8:37 networkConfig.interfaces[0].ipv6.address[0]: interface "eth0": missing field \'prefix-length\'',
  ],
  [
    'a length beyond the address',
    eth0('  ipv6: {enabled: true, address: [{ip: "2001:db8::1", prefix-length: 129}]}'),
    '8:72 networkConfig.interfaces[0].ipv6.address[0].prefix-length: interface "eth0": 129 is not a whole number from 0 to 128',
  ],
  [
    'a flag that is text',
    eth0('  ipv6: {enabled: maybe}'),
    '8:21 networkConfig.interfaces[0].ipv6.enabled: interface "eth0": "maybe" is not true or false',
  ],
  [
    'a family that is not an object',
    eth0('  ipv6: yes'),
    '8:11 networkConfig.interfaces[0].ipv6: interface "eth0": true is not an object',
  ],
  [
    'a VLAN of nothing',
    eth0('- name: eth0.7', '  type: vlan', '  vlan: {id: 4095}'),
    '10:11 networkConfig.interfaces[1].vlan: interface "eth0.7": missing field \'base-iface\'',
    '10:16 networkConfig.interfaces[1].vlan.id: interface "eth0.7": 4095 is not a whole number from 0 to 4094',
  ],
  [
    'a VLAN without a number',
    eth0('- name: eth0.7', '  type: vlan', '  vlan: {base-iface: eth0}'),
    '10:11 networkConfig.interfaces[1].vlan: interface "eth0.7": missing field \'id\'',
  ],
  [
    'a bond of an unknown mode',
    eth0('- name: bond0', '  type: bond', '  link-aggregation: {mode: lacp2, port: [eth1]}'),
    '10:30 networkConfig.interfaces[1].link-aggregation.mode: interface "bond0": "lacp2" is not one of balance-rr, active-backup, balance-xor, broadcast, 802.3ad, balance-tlb, balance-alb',
  ],
  [
    'a bond without a mode',
    eth0('- name: bond0', '  type: bond'),
    '8:5 networkConfig.interfaces[1]: interface "bond0": missing field \'link-aggregation\'',
  ],
  [
    'a port of two bridges',
    eth0(
      ...['- {name: br0, type: linux-bridge, bridge: {port: [{name: eth1}]}}'],
      ...['- {name: br1, type: linux-bridge, bridge: {port: [{name: eth1}]}}'],
    ),
    '9:53 networkConfig.interfaces[2].bridge.port[0]: interface "br1": "eth1" is already a port of br0',
  ],
  [
    'a bridge that is its own port',
    eth0('- {name: br0, type: linux-bridge, bridge: {port: [{name: br0}]}}'),
    '8:53 networkConfig.interfaces[1].bridge.port[0]: interface "br0": an interface cannot be its own port',
  ],
  [
    'a route to nowhere',
    route('next-hop-interface: eth0'),
    "8:21 networkConfig.routes.config[0]: missing field 'destination'",
  ],
  [
    'a route to what is not a network',
    route('destination: default, next-hop-interface: eth0'),
    '8:35 networkConfig.routes.config[0].destination: "default" is not an IP network',
  ],
  [
    'a gateway of another family',
    route('destination: 0.0.0.0/0, next-hop-address: "2001:db8::1", next-hop-interface: eth0'),
    '8:64 networkConfig.routes.config[0].next-hop-address: 2001:db8::1 is not an IPv4 address',
  ],
  [
    'a gateway that is not an address',
    route('destination: 0.0.0.0/0, next-hop-address: gateway, next-hop-interface: eth0'),
    '8:64 networkConfig.routes.config[0].next-hop-address: "gateway" is not an IP address',
  ],
  [
    'a route over an interface that is not there',
    route('destination: 0.0.0.0/0, next-hop-interface: eth9'),
    '8:66 networkConfig.routes.config[0].next-hop-interface: no interface has the name "eth9"',
  ],
  [
    'a route over no interface',
    route('destination: 0.0.0.0/0'),
    '8:21 networkConfig.routes.config[0].next-hop-interface: the route to 0.0.0.0/0 needs an interface',
  ],
  [
    'a name server with a name',
    [...eth0(), 'dns-resolver: {config: {server: [dns.example.com]}}'],
    '8:36 networkConfig.dns-resolver.config.server[0]: "dns.example.com" is not the address of a name server',
  ],
];

const SENSE: readonly Row[] = [
  [
    'no address in the machine network',
    [
      'interfaces:',
      '- name: eth0',
      '  ipv4: {enabled: true, address: [{ip: 198.51.100.9, prefix-length: 24}]}',
    ],
    `6:42 ${AT}.ipv4.address[0].ip: Invalid value: "198.51.100.9": no address is in machine network 192.0.2.0/24`,
  ],
  [
    'no address at all',
    ['interfaces:', '- name: eth0', '  ipv6: {enabled: true, dhcp: true, autoconf: true}'],
    '4:3 networkConfig: no interface has an IPv4 address for machine network 192.0.2.0/24',
  ],
  [
    'a subnet over the services',
    eth0('- name: eth1', '  ipv4: {enabled: true, address: [{ip: 172.30.5.9, prefix-length: 24}]}'),
    '9:42 networkConfig.interfaces[1].ipv4.address[0].ip: Invalid value: "172.30.5.9": its subnet must not overlap with service network 172.30.0.0/16',
  ],
  [
    'a subnet over the pods',
    eth0('- name: eth1', '  ipv4: {enabled: true, address: [{ip: 10.128.0.9, prefix-length: 24}]}'),
    '9:42 networkConfig.interfaces[1].ipv4.address[0].ip: Invalid value: "10.128.0.9": its subnet must not overlap with cluster network 10.128.0.0/14',
  ],
  [
    'the address of everybody in the network',
    eth0(
      '- name: eth1',
      '  ipv4: {enabled: true, address: [{ip: 198.51.100.255, prefix-length: 24}]}',
    ),
    '9:42 networkConfig.interfaces[1].ipv4.address[0].ip: interface "eth1": 198.51.100.255 is the broadcast address of 198.51.100.255/24',
  ],
  [
    'a gateway that is the node',
    route('destination: 0.0.0.0/0, next-hop-address: 192.0.2.10, next-hop-interface: eth0'),
    `8:64 ${ROUTE}.next-hop-address: 192.0.2.10 is the address of eth0 itself`,
  ],
];

describe('a network configuration is refused for', () => {
  it.for([...FORM, ...SENSE])('%s', ([, lines, ...expected]) => {
    const { site, problems } = checkImageBased(network(lines));
    expect(tell(problems)).toEqual(expected);
    expect(site).toBeUndefined();
  });
});

describe('a network configuration is accepted with', () => {
  it.for<Row>([
    [
      'a static address and a gateway',
      route('destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0'),
    ],
    ['DHCP', ['interfaces:', '- {name: eth0, ipv4: {enabled: true, dhcp: true}}']],
    [
      'a gateway of the link',
      [
        ...eth0('  ipv6: {enabled: true, address: [{ip: "2001:db8::5", prefix-length: 64}]}'),
        'routes: {config: [{destination: "::/0", next-hop-address: "fe80::1", next-hop-interface: eth0}]}',
      ],
    ],
    ['a route that is taken away', route('state: absent, next-hop-interface: eth9')],
    ['a route into nothing', route('destination: 198.51.100.0/24, route-type: blackhole')],
    [
      'a bond of two ports and a VLAN on it',
      [
        'interfaces:',
        '- {name: eth0, type: ethernet}',
        '- {name: eth1, type: ethernet}',
        '- {name: bond0, type: bond, link-aggregation: {mode: 802.3ad, port: [eth0, eth1]}}',
        '- {name: bond0.7, type: vlan, vlan: {base-iface: bond0, id: 7}, ipv4: {enabled: true, address: [{ip: 192.0.2.5, prefix-length: 26}]}}',
      ],
    ],
    [
      'a bridge of Open vSwitch and its port of the same name',
      eth0(
        '- {name: br-ex, type: ovs-bridge, bridge: {port: [{name: eth1}, {name: br-ex}]}}',
        '- {name: br-ex, type: ovs-interface}',
      ),
    ],
    ['an interface of a type that nobody has heard of', eth0('- {name: x0, type: quantum}')],
    ['an interface that goes away', eth0('- {name: bond9, type: bond, state: absent}')],
    [
      'a name server of the link',
      [
        ...eth0('  ipv6: {enabled: true, dhcp: true, autoconf: true}'),
        'dns-resolver: {config: {server: ["fe80::1%eth0"], search: [a.example]}}',
      ],
    ],
    [
      'addresses of a link of two',
      eth0('- {name: p0, ipv4: {enabled: true, address: [{ip: 198.51.100.0, prefix-length: 31}]}}'),
    ],
    ['nothing in it', []],
  ])('%s', ([, lines]) => {
    expect(tell(checkImageBased(network(lines)).problems)).toEqual([]);
  });
});

describe('an image-based-config.yaml is refused for', () => {
  it.each<readonly [string, Readonly<Record<string, string>>, string]>([
    [
      'a time server that is not a name',
      { additionalNTPSources: 'additionalNTPSources: [a.example, "b c"]' },
      '2:35 AdditionalNTPSources: Invalid value: "b c": NTP server is not a valid IP or domain name',
    ],
    [
      'a hostname with a blank',
      { hostname: 'hostname: a b' },
      `1:11 hostname: Invalid value: "a b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`,
    ],
    [
      'a hostname of 65 characters',
      { hostname: `hostname: ${'a'.repeat(65)}` },
      `1:11 hostname: Invalid value: "${'a'.repeat(65)}": must be no more than 63 characters, because Kubernetes writes it into a label`,
    ],
    [
      'an id in the wrong spelling',
      { id: 'clusterId: x' },
      '3:1 clusterId: unknown field "clusterId"',
    ],
    [
      'labels that are a list',
      { l: 'nodeLabels: [a]' },
      '3:13 nodeLabels: cannot unmarshal array into a field of type map',
    ],
    [
      'a network with nothing in it',
      { n: 'networkConfig: {}' },
      '3:16 networkConfig: nmstate generated an empty NetworkManager config file content',
    ],
    [
      'a network that is text',
      { n: 'networkConfig: dhcp' },
      '3:16 networkConfig: cannot unmarshal it into an object',
    ],
  ])('%s', (_, sections, expected) => {
    expect(tell(checkImageBased(sections).problems)).toEqual([expected]);
  });

  it('machine networks of two families and addresses of one', () => {
    const networking =
      'networking: {machineNetwork: [{cidr: 192.0.2.0/24}, {cidr: "2001:db8::/64"}]}';
    const input = createSiteInput({
      'install-config.yaml': writeInstallConfig({ networking }),
      'image-based-config.yaml': writeImageBasedConfig(network(eth0())),
    });
    expect(
      tell(checkSite(input, { epoch: TEST_EPOCH, redaction: createRedaction() }).problems),
    ).toEqual([
      '4:3 networkConfig: no interface has an IPv6 address for machine network 2001:db8::/64',
    ]);
  });
});

describe('a network configuration gets a warning for', () => {
  const complete = (server: string): readonly string[] => [
    'routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0}]}',
    `dns-resolver: {config: {server: [${server}]}}`,
  ];
  it.for<Row>([
    ['nothing, when it is complete', [...eth0(), ...complete('198.51.100.53')]],
    [
      'nothing, when DHCP tells the rest',
      ['interfaces:', '- {name: a, ipv4: {enabled: true, dhcp: true}}'],
    ],
    [
      'an interface of a type that nobody has heard of',
      [...eth0('- {name: x0, type: quantum}'), ...complete('192.0.2.53')],
      '8:22 networkConfig.interfaces[1].type: interface "x0": interfaces of type "quantum" are not checked here',
    ],
    [
      'the address of the network itself',
      [
        ...eth0(
          '- {name: b, ipv4: {enabled: true, address: [{ip: 198.51.100.0, prefix-length: 24}]}}',
        ),
        ...complete('192.0.2.53'),
      ],
      '8:52 networkConfig.interfaces[1].ipv4.address[0].ip: interface "b": 198.51.100.0 is the network address of 198.51.100.0/24',
    ],
    [
      'an address that two interfaces have',
      [
        ...eth0(
          '- {name: b, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}}',
        ),
        ...complete('192.0.2.53'),
      ],
      '8:52 networkConfig.interfaces[1].ipv4.address[0].ip: interface "b": 192.0.2.10 is also an address of "eth0"',
    ],
    [
      'a missing default route',
      [...eth0(), 'dns-resolver: {config: {server: [192.0.2.53, 198.51.100.53]}}'],
      '4:3 networkConfig.routes.config: there is no default route for IPv4',
      '8:48 networkConfig.dns-resolver.config.server[1]: no route leads to the name server 198.51.100.53',
    ],
    [
      'a missing name server',
      [...eth0(), ...complete('')],
      '9:35 networkConfig.dns-resolver.config.server: no name server is configured',
    ],
  ])('%s', ([, lines, ...expected]) => {
    const { problems, warnings } = checkImageBased(network(lines));
    expect(tell(problems)).toEqual([]);
    expect(tell(warnings)).toEqual(expected);
  });
});
