import { describe, expect, it } from 'vitest';
import {
  address,
  bond,
  bridge,
  eth0,
  ipv4,
  ipv6,
  names,
  route,
  STATIC,
  TAKEN,
  vlan,
} from '../support/network-states.ts';
import { renderKeyfiles } from '../support/render-profiles.ts';

/** Wrong for every nmstate: text, and what is said of it. */
const WRONG: readonly (readonly [string, string])[] = [
  [
    'interfaces: [{name: eth0}]\ninterfaces: []\n',
    'it is not YAML: line 2: a key is written twice, first in line 1',
  ],
  [
    'interfaces:\n\t- name: eth0\n',
    'it is not YAML: line 2: a tab is used for indentation; only spaces are allowed',
  ],
  ['interfaces: *none\n', 'it is not YAML: line 1: this alias has no anchor'],
  ...['constructor', '__proto__', 'toString'].map(
    (mode) =>
      [
        `interfaces: [{name: bond0, type: bond, link-aggregation: {mode: ${mode}, port: [eth0]}}]\n`,
        `interface "bond0": link-aggregation.mode: "${mode}" is not one of balance-rr, active-backup, balance-xor, broadcast, 802.3ad, balance-tlb, balance-alb`,
      ] as const,
  ),
  [
    'interfaces: [{name: eth0%d}]\n',
    'interfaces[0].name: "eth0%d" is not the name of an interface',
  ],
  [
    'interfaces: [{name: all}]\n',
    'interfaces[0].name: "all" is a name that the kernel keeps for itself',
  ],
  [
    'interfaces: [{name: bond0, type: BOND}]\n',
    'interface "bond0": type: "BOND" is not a type of nmstate; did you mean "bond"?',
  ],
  [
    'interfaces: [{name: eth0, mtu: ~}]\n',
    'interface "eth0": mtu: null is not a whole number from 0 to 4294967295',
  ],
  [
    'interfaces: [{name: eth0, ipv4: {enabled: ~}}]\n',
    'interface "eth0": ipv4.enabled: null is not true or false',
  ],
  [address('ip: 192.0.2.10'), 'interface "eth0": ipv4.address[0]: missing field \'prefix-length\''],
  [address('prefix-length: 24'), 'interface "eth0": ipv4.address[0]: missing field \'ip\''],
  [
    address('ip: foo, prefix-length: 24'),
    'interface "eth0": ipv4.address[0].ip: "foo" is not an IP address',
  ],
  [
    address('ip: 999.0.2.10, prefix-length: 24'),
    'interface "eth0": ipv4.address[0].ip: "999.0.2.10" is not an IP address',
  ],
  [
    address('ip: 192.0.02.10, prefix-length: 24'),
    'interface "eth0": ipv4.address[0].ip: "192.0.02.10" is not an IP address',
  ],
  [
    address('ip: "1.2.3.4\\nmethod=auto\\n[evil]\\nx=y", prefix-length: 24'),
    'interface "eth0": ipv4.address[0].ip: "1.2.3.4\\nmethod=auto\\n[evil]\\nx=y" is not an IP address',
  ],
  [
    address('ip: 192.0.2.10, prefix-length: 33'),
    'interface "eth0": ipv4.address[0].prefix-length: 33 is not a whole number from 0 to 32',
  ],
  [
    address('ip: 192.0.2.10, prefix-length: -1'),
    'interface "eth0": ipv4.address[0].prefix-length: -1 is not a whole number from 0 to 32',
  ],
  [
    address('ip: 192.0.2.10, prefix-length: 24.5'),
    'interface "eth0": ipv4.address[0].prefix-length: 24.5 is not a whole number from 0 to 32',
  ],
  [
    address('ip: 192.0.2.10, prefix-length: "24 "'),
    'interface "eth0": ipv4.address[0].prefix-length: "24 " is not a whole number from 0 to 32',
  ],
  [
    address('ip: 2001:db8::1, prefix-length: 24'),
    'interface "eth0": ipv4.address[0].ip: "2001:db8::1" is not an IPv4 address',
  ],
  [
    ipv6('address: [{ip: 192.0.2.1, prefix-length: 24}]'),
    'interface "eth0": ipv6.address[0].ip: "192.0.2.1" is not an IPv6 address',
  ],
  [
    ipv6('address: [{ip: fe80::1%eth0, prefix-length: 64}]'),
    'interface "eth0": ipv6.address[0].ip: "fe80::1%eth0" is not an IP address',
  ],
  [
    ipv6('address: [{ip: 2001:db8::1, prefix-length: 129}]'),
    'interface "eth0": ipv6.address[0].prefix-length: 129 is not a whole number from 0 to 128',
  ],
  [
    ipv6('autoconf: true'),
    'interface "eth0": ipv6.autoconf: nmstate has autoconf only together with dhcp',
  ],
  [
    ipv4('autoconf: false'),
    'interface "eth0": ipv4.autoconf: autoconf is not allowed for IPv4; write dhcp instead',
  ],
  [ipv4('dhcp: maybe'), 'interface "eth0": ipv4.dhcp: "maybe" is not true or false'],
  [
    ipv4('dhcp: true, dhcp-send-hostname: "no"'),
    'interface "eth0": ipv4.dhcp-send-hostname: "no" is not true or false',
  ],
  [
    ipv4('dhcp: true, dhcp-client-id: "a\\nb"'),
    'interface "eth0": ipv4.dhcp-client-id: "a\\nb" is not a string on one line',
  ],
  [ipv4('address: foo'), 'interface "eth0": ipv4.address: "foo" is not a list'],
  [eth0('ipv4: true'), 'interface "eth0": ipv4: true is not an object'],
  [eth0('mtu: abc'), 'interface "eth0": mtu: "abc" is not a whole number from 0 to 4294967295'],
  [
    eth0('mtu: 1279', 'ipv6: {enabled: true}'),
    'interface "eth0": mtu: IPv6 needs an MTU of at least 1280, but got 1279',
  ],
  [eth0('mac-address: ZZ'), 'interface "eth0": mac-address: "ZZ" is not a MAC address'],
  [eth0('identifier: mac-address'), 'interface "eth0": missing field \'mac-address\''],
  [
    eth0('identifier: foo'),
    'interface "eth0": identifier: "foo" is not one of name, mac-address, pci-address',
  ],
  [
    eth0('state: maybe'),
    'interface "eth0": state: "maybe" is not one of up, down, absent, ignore, unknown',
  ],
  [
    eth0('description: "a\\nb"'),
    'interface "eth0": description: "a\\nb" is not a string on one line',
  ],
  [
    eth0('description: "a\\rb"'),
    'interface "eth0": description: "a\\rb" is not a string on one line',
  ],
  ['interfaces: [{type: ethernet}]', "interfaces[0]: missing field 'name'"],
  ['interfaces: [{name: null}]', "interfaces[0]: missing field 'name'"],
  [
    'interfaces: [{name: 7}]',
    'interfaces[0].name: 7 is not the name of an interface: put it in quotes',
  ],
  [
    'interfaces: [{name: "eth0\\n[x]"}]',
    'interfaces[0].name: "eth0\\n[x]" is not the name of an interface',
  ],
  ['interfaces: [eth0]', 'interfaces[0]: "eth0" is not an object'],
  ['interfaces: {name: eth0}', 'interfaces: an object is not a list'],
  [
    `interfaces: [{name: ${'a'.repeat(32)}}]`,
    'interface "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": name: a name must have at most 15 bytes',
  ],
  [
    'interfaces: [{name: eth0}, {name: eth0}]',
    'interface "eth0": name: another interface has the same name',
  ],
  [vlan('base-iface: eth0'), 'interface "eth0.5": vlan: missing field \'id\''],
  [vlan('id: 5'), 'interface "eth0.5": vlan: missing field \'base-iface\''],
  [
    vlan('base-iface: eth0, id: 99999'),
    'interface "eth0.5": vlan.id: 99999 is not a whole number from 0 to 4094',
  ],
  [
    vlan('base-iface: eth0, id: 5, protocol: x'),
    'interface "eth0.5": vlan.protocol: "x" is not one of 802.1q, 802.1ad',
  ],
  ['interfaces: [{name: a.5, type: vlan}]', 'interface "a.5": missing field \'vlan\''],
  ['interfaces: [{name: a, type: bond}]', 'interface "a": missing field \'link-aggregation\''],
  [bond('port: [eth1]'), 'interface "bond0": link-aggregation: missing field \'mode\''],
  [
    bond('mode: foo'),
    'interface "bond0": link-aggregation.mode: "foo" is not one of balance-rr, active-backup, balance-xor, broadcast, 802.3ad, balance-tlb, balance-alb',
  ],
  [
    bond('mode: 7'),
    'interface "bond0": link-aggregation.mode: 7 is not one of balance-rr, active-backup, balance-xor, broadcast, 802.3ad, balance-tlb, balance-alb',
  ],
  [
    bond('mode: 1, port: [7]'),
    'interface "bond0": link-aggregation.port[0]: 7 is not the name of an interface: put it in quotes',
  ],
  [
    bond('mode: 1, port: [bond0]'),
    'interface "bond0": link-aggregation.port[0]: an interface cannot be its own port',
  ],
  [
    bond('mode: 1, options: {miimon: x}'),
    'interface "bond0": link-aggregation.options.miimon: "x" is not a whole number from 0 to 2147483647',
  ],
  [
    bond('mode: 1, options: {primary: "a\\n[b]"}'),
    'interface "bond0": link-aggregation.options.primary: "a\\n[b]" is not the name of an interface',
  ],
  [
    bond('mode: 1, options: {arp_ip_target: "192.0.2.1,x"}'),
    'interface "bond0": link-aggregation.options.arp_ip_target: "192.0.2.1,x" is not a list of IPv4 addresses, separated by commas',
  ],
  [
    'interfaces: [{name: a, type: bond, link-aggregation: {mode: 1, port: [c]}}, {name: b, type: linux-bridge, bridge: {port: [{name: c}]}}]',
    'interface "b": bridge.port[0]: "c" is already a port of a',
  ],
  [
    `${bridge('port: [{name: eth1}]').slice(0, -1)}, {name: eth1, ipv4: {enabled: true, dhcp: true}}]`,
    'interface "eth1": ipv4: a port of br0 cannot have addresses of its own',
  ],
  [bridge('port: [eth1]'), 'interface "br0": bridge.port[0]: "eth1" is not an object'],
  [
    bridge('options: {stp: {enabled: perhaps}}'),
    'interface "br0": bridge.options.stp.enabled: "perhaps" is not true or false',
  ],
  [route('destination: garbage'), 'routes.config[0].destination: "garbage" is not an IP network'],
  [
    route('destination: 192.0.2.0/33'),
    'routes.config[0].destination: "192.0.2.0/33" is not an IP network',
  ],
  [
    route('destination: 192.0.2.0/24/8'),
    'routes.config[0].destination: "192.0.2.0/24/8" is not an IP network',
  ],
  [
    route('destination: 0.0.0.0/0, next-hop-address: zzz'),
    'routes.config[0].next-hop-address: "zzz" is not an IP address',
  ],
  [
    route('destination: 0.0.0.0/0, next-hop-address: "::1"'),
    'routes.config[0].next-hop-address: ::1 is not an IPv4 address',
  ],
  [
    route('destination: "::/0"'),
    'routes.config[0].next-hop-interface: IPv6 is not enabled on "eth0"',
  ],
  [
    route('destination: 0.0.0.0/0, metric: x'),
    'routes.config[0].metric: "x" is not a whole number from -1 to 4294967295',
  ],
  [
    route('destination: 0.0.0.0/0, metric: "0x1"'),
    'routes.config[0].metric: "0x1" is not a whole number from -1 to 4294967295',
  ],
  [
    route('destination: 0.0.0.0/0, weight: 257'),
    'routes.config[0].weight: 257 is not a whole number from 1 to 256',
  ],
  [
    route('destination: 0.0.0.0/0, state: present'),
    'routes.config[0].state: "present" is not one of absent, ignore',
  ],
  [
    `${ipv4('dhcp: false')}routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: eth0}]}`,
    'routes.config[0].next-hop-interface: "eth0" has no IPv4 address',
  ],
  [names('server: ["fe80::1%eth0"]'), 'dns-resolver.config.server[0]: "eth0" has no IPv6 address'],
  [route(''), "routes.config[0]: missing field 'destination'"],
  [
    `${ipv4(STATIC)}routes: {config: [{destination: 0.0.0.0/0}]}`,
    'routes.config[0].next-hop-interface: the route to 0.0.0.0/0 needs an interface',
  ],
  [
    `${ipv4(STATIC)}routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: eth9}]}`,
    'routes.config[0].next-hop-interface: no interface has the name "eth9"',
  ],
  [
    names('server: [notanip]'),
    'dns-resolver.config.server[0]: "notanip" is not the address of a name server',
  ],
  [
    names('server: ["fe80::1%e;f"]'),
    'dns-resolver.config.server[0]: no interface has the name "e;f"',
  ],
  [
    names('server: ["192.0.2.1%eth0"]'),
    'dns-resolver.config.server[0]: "192.0.2.1%eth0" is not the address of a name server',
  ],
  [names('server: 192.0.2.1'), 'dns-resolver.config.server: "192.0.2.1" is not a list'],
  [names('search: ["a;b"]'), 'dns-resolver.config.search[0]: "a;b" is not the name of a domain'],
  [
    names('server: ["2001:db8::1"]'),
    'dns-resolver.config.server[0]: no interface has an IPv6 address, so none can have this name server',
  ],
  ['[]', 'a list is not an object'],
  ['', 'nmstate generated an empty NetworkManager config file content'],
  [
    'interfaces: [{name: eth0, state: ignore}]',
    'nmstate generated an empty NetworkManager config file content',
  ],
];

/** nmstate may know it: text, and what is said of it. */
const FOREIGN: readonly (readonly [string, RegExp])[] = [
  ...[
    ...['802.1x: {identity: a}', 'ethtool: {ring: {rx: 1}}', 'lldp: {enabled: true}', 'mptcp: {}'],
    ...['wait-ip: any', 'accept-all-mac-addresses: true', 'profile-name: a', 'controller: b'],
    ...['copy-mac-from: eth1', 'ovs-db: {}', 'dispatch: {}', 'alt-names: []'],
  ].map((member): readonly [string, RegExp] => [
    eth0(member),
    new RegExp(`^interface "eth0": ${member.replace(/:.*/, '')}: needs nmstate$`),
  ]),
  ...['speed: 1000', 'duplex: full', 'auto-negotiation: true', 'sr-iov: {total-vfs: 2}'].map(
    (member): readonly [string, RegExp] => [
      eth0(`ethernet: {${member}}`),
      new RegExp(`ethernet.${member.replace(/:.*/, '')}: needs nmstate$`),
    ],
  ),
  [ipv4('dhcp: true, dhcp-custom-hostname: a'), /dhcp-custom-hostname: needs nmstate$/],
  [ipv6('dhcp: true, token: "::1"'), /ipv6.token: needs nmstate$/],
  [
    address('ip: 192.0.2.1, prefix-length: 24, mptcp-flags: [subflow]'),
    /\[0\].mptcp-flags: needs nmstate/,
  ],
  [eth0('identifier: pci-address'), /identifier: is "pci-address", which needs nmstate$/],
  [
    vlan('base-iface: eth0, id: 5, protocol: 802.1ad'),
    /protocol: is "802.1ad", which needs nmstate/,
  ],
  [vlan('base-iface: eth0, id: 5, reorder-headers: false'), /vlan.reorder-headers: needs nmstate/],
  [bridge('port: [{name: eth1, vlan: {mode: access, tag: 5}}]'), /port\[0\].vlan: needs nmstate/],
  [bridge('port: [{name: eth1, stp-priority: 5}]'), /port\[0\].stp-priority: needs nmstate/],
  [bridge('options: {stp: {enabled: true, priority: 5}}'), /options.stp.priority: needs nmstate/],
  [bridge('options: {group-forward-mask: 5}'), /options.group-forward-mask: needs nmstate/],
  [bond('mode: 1, ports-config: [{name: eth1, priority: 1}]'), /ports-config: needs nmstate/],
  [bond('mode: 1, options: {balance-slb: true}'), /options.balance-slb: needs nmstate/],
  [
    names('server: [192.0.2.1], options: [rotate]'),
    /dns-resolver.config.options\[0\]: needs nmstate/,
  ],
  [
    `${eth0()}route-rules: {config: [{ip-to: 192.0.2.0/24}]}`,
    /^route-rules.config\[0\]: needs nmstate/,
  ],
  [`${eth0()}hostname: {config: a}`, /^hostname.config: needs nmstate$/],
  [route('destination: 0.0.0.0/0, cwnd: 5'), /routes.config\[0\].cwnd: needs nmstate/],
  [
    'interfaces: [{name: v0, type: vxlan}]',
    /^interface "v0": type: is "vxlan", which needs nmstate$/,
  ],
];

describe('an nmstate configuration', () => {
  it.each(WRONG)('is refused with interface, member and reason: %j', (text, reason) => {
    expect(() => renderKeyfiles(text)).toThrow(
      expect.objectContaining({
        code: 'nmstate.malformed',
        message: `network configuration has no valid profiles: ${reason}`,
      }),
    );
  });

  it.each(FOREIGN)('needs nmstate, with interface and member in the error: %j', (text, reason) => {
    expect(() => renderKeyfiles(text)).toThrow(
      expect.objectContaining({
        code: 'nmstate.unsupported',
        message: expect.stringMatching(reason) as string,
        hint: expect.stringContaining('install nmstate') as string,
      }),
    );
  });

  it.each(TAKEN)('is translated: %j', (text, lines) => {
    const [{ content } = { content: '' }] = renderKeyfiles(text);
    expect(content.split('\n')).toEqual(expect.arrayContaining([...lines]));
  });

  it('is refused for every wrong value at once, even if another interface needs nmstate', () => {
    const text = `${eth0('mtu: x', 'ipv4: 5')}- {name: br-ex, type: ovs-bridge}\n`;
    expect(() => renderKeyfiles(text)).toThrow(
      /mtu: "x" is not a whole number from 0 to 4294967295; interface "eth0": ipv4: 5 is not an object$/,
    );
  });

  it('is refused with a hint to the name that was probably meant', () => {
    expect(() => renderKeyfiles(eth0('mtuu: 9000'))).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('did you mean "mtu"?') as string }),
    );
  });
});
