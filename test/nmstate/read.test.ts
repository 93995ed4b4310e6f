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
import { renderKeyfiles } from '../../src/nmstate/profiles.ts';

/** Wrong for every nmstate: text, and what is said of it. */
const WRONG: readonly (readonly [string, RegExp])[] = [
  [address('ip: 192.0.2.10'), /"eth0": ipv4.address\[0\]: missing field 'prefix-length'$/],
  [address('prefix-length: 24'), /missing field 'ip'$/],
  [address('ip: foo, prefix-length: 24'), /invalid IP address syntax: "foo"$/],
  [address('ip: 999.0.2.10, prefix-length: 24'), /invalid IP address syntax: "999.0.2.10"$/],
  [address('ip: 192.0.02.10, prefix-length: 24'), /invalid IP address syntax/],
  [address('ip: "1.2.3.4\\nmethod=auto\\n[evil]\\nx=y", prefix-length: 24'), /invalid IP address/],
  [address('ip: 192.0.2.10, prefix-length: 33'), /length '33', should be in the range of 0 to 32$/],
  [address('ip: 192.0.2.10, prefix-length: -1'), /length '-1', should be/],
  [address('ip: 192.0.2.10, prefix-length: 24.5'), /length '24.5', should be/],
  [address('ip: 192.0.2.10, prefix-length: "24 "'), /length '24 ', should be/],
  [address('ip: 2001:db8::1, prefix-length: 24'), /Got IPv6 address 2001:db8::1 in ipv4 config/],
  [ipv6('address: [{ip: 192.0.2.1, prefix-length: 24}]'), /Got IPv4 address 192.0.2.1 in ipv6/],
  [ipv6('address: [{ip: fe80::1%eth0, prefix-length: 64}]'), /invalid IP address syntax/],
  [ipv6('address: [{ip: 2001:db8::1, prefix-length: 129}]'), /range of 0 to 128$/],
  [ipv6('autoconf: true'), /Autoconf without DHCP is not supported yet$/],
  [ipv4('autoconf: false'), /autoconf is not allowed for IPv4$/],
  [ipv4('dhcp: maybe'), /ipv4.dhcp: "maybe" is not true or false$/],
  [ipv4('dhcp: true, dhcp-send-hostname: "no"'), /dhcp-send-hostname: "no" is not true or false$/],
  [
    ipv4('dhcp: true, dhcp-client-id: "a\\nb"'),
    /dhcp-client-id: "a\\nb" is not a string on one line$/,
  ],
  [ipv4('address: foo'), /ipv4.address: "foo" is not a list$/],
  [eth0('ipv4: true'), /"eth0": ipv4: true is not a mapping$/],
  [eth0('mtu: abc'), /"eth0": mtu: "abc" is not a whole number from 0 to 65535$/],
  [
    eth0('mtu: 1279', 'ipv6: {enabled: true}'),
    /MTU should be >= 1280 when IPv6 is enabled, but got/,
  ],
  [eth0('mac-address: ZZ'), /"eth0": mac-address: "ZZ" is not a MAC address$/],
  [eth0('identifier: mac-address'), /"eth0": missing field 'mac-address'$/],
  [eth0('identifier: foo'), /identifier: "foo" is not one of name, mac-address, pci-address$/],
  [eth0('state: maybe'), /"eth0": state: "maybe" is not one of up, down, absent, ignore, unknown$/],
  [eth0('description: "a\\nb"'), /description: "a\\nb" is not a string on one line$/],
  [eth0('description: "a\\rb"'), /is not a string on one line$/],
  ['interfaces: [{type: ethernet}]', /interfaces\[0\]: missing field 'name'$/],
  ['interfaces: [{name: null}]', /missing field 'name'$/],
  ['interfaces: [{name: 7}]', /interfaces\[0\].name: 7 is not the name of an interface$/],
  ['interfaces: [{name: "eth0\\n[x]"}]', /is not the name of an interface$/],
  ['interfaces: [eth0]', /interfaces\[0\]: "eth0" is not a mapping$/],
  ['interfaces: {name: eth0}', /interfaces: an object is not a list$/],
  [`interfaces: [{name: ${'a'.repeat(32)}}]`, /"a{32}": a name must have at most 15 characters$/],
  ['interfaces: [{name: eth0}, {name: eth0}]', /"eth0": another interface has the same name$/],
  [vlan('base-iface: eth0'), /"eth0.5": vlan: missing field 'id'$/],
  [vlan('id: 5'), /vlan: missing field 'base-iface'$/],
  [vlan('base-iface: eth0, id: 99999'), /vlan.id: 99999 is not a whole number from 0 to 4094$/],
  [vlan('base-iface: eth0, id: 5, protocol: x'), /protocol: "x" is not one of 802.1q, 802.1ad$/],
  ['interfaces: [{name: a.5, type: vlan}]', /"a.5": missing field 'vlan'$/],
  ['interfaces: [{name: a, type: bond}]', /"a": missing field 'link-aggregation'$/],
  [bond('port: [eth1]'), /link-aggregation: missing field 'mode'$/],
  [bond('mode: foo'), /mode: "foo" is not one of balance-rr, active-backup, /],
  [bond('mode: 7'), /mode: 7 is not one of/],
  [bond('mode: 1, port: [7]'), /port\[0\]: 7 is not the name of an interface$/],
  [bond('mode: 1, port: [bond0]'), /"bond0" cannot be a port of it and of bond0$/],
  [bond('mode: 1, options: {miimon: x}'), /options.miimon: "x" is not a whole number/],
  [bond('mode: 1, options: {primary: "a\\n[b]"}'), /primary: "a\\n\[b\]" is not the name/],
  [bond('mode: 1, options: {arp_ip_target: "192.0.2.1,x"}'), /invalid IP address syntax: "x"$/],
  [
    'interfaces: [{name: a, type: bond, link-aggregation: {mode: 1, port: [c]}}, {name: b, type: linux-bridge, bridge: {port: [{name: c}]}}]',
    /"b": "c" cannot be a port of it and of a$/,
  ],
  [
    `${bridge('port: [{name: eth1}]').slice(0, -1)}, {name: eth1, ipv4: {enabled: true, dhcp: true}}]`,
    /"eth1": cannot have IP enabled as it is attached to a controller where IP is not allowed$/,
  ],
  [bridge('port: [eth1]'), /bridge.port\[0\]: "eth1" is not a mapping$/],
  [bridge('options: {stp: {enabled: perhaps}}'), /stp.enabled: "perhaps" is not true or false$/],
  [
    route('destination: garbage'),
    /routes.config\[0\].destination: "garbage" is not an IP network: inv/,
  ],
  [route('destination: 192.0.2.0/33'), /length '33' in '192.0.2.0\/33', should be .* 0 to 32$/],
  [route('destination: 192.0.2.0/24/8'), /invalid IP address syntax/],
  [
    route('destination: 0.0.0.0/0, next-hop-address: zzz'),
    /next-hop-address: invalid IP .* "zzz"$/,
  ],
  [route('destination: 0.0.0.0/0, next-hop-address: "::1"'), /::1 is not an IPv4 address$/],
  [route('destination: "::/0"'), /"eth0" has been marked as IPv6 disabled$/],
  [route('destination: 0.0.0.0/0, metric: x'), /metric: "x" is not a whole number/],
  [route('destination: 0.0.0.0/0, metric: "0x1"'), /metric: "0x1" is not a whole number/],
  [
    route('destination: 0.0.0.0/0, weight: 257'),
    /weight: 257 is not a whole number from 1 to 256$/,
  ],
  [route('destination: 0.0.0.0/0, state: present'), /state: "present" is not absent$/],
  [
    `${ipv4('dhcp: false')}routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: eth0}]}`,
    /next-hop-interface "eth0" has no IPv4 address$/,
  ],
  [names('server: ["fe80::1%eth0"]'), /no interface can have the IPv6 name servers$/],
  [route(''), /routes.config\[0\]: missing field 'destination'$/],
  [
    `${ipv4(STATIC)}routes: {config: [{destination: 0.0.0.0/0}]}`,
    /missing field 'next-hop-interface'$/,
  ],
  [
    `${ipv4(STATIC)}routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: eth9}]}`,
    /next-hop-interface "eth9" is not an interface with addresses$/,
  ],
  [names('server: [notanip]'), /server\[0\]: "notanip" is not the address of a name server$/],
  [names('server: ["fe80::1%e;f"]'), /is not the address of a name server$/],
  [names('server: ["192.0.2.1%eth0"]'), /is not the address of a name server$/],
  [names('server: 192.0.2.1'), /server: "192.0.2.1" is not a list$/],
  [names('search: ["a;b"]'), /search\[0\]: "a;b" is not the name of a domain$/],
  [names('server: ["2001:db8::1"]'), /no interface can have the IPv6 name servers$/],
  ['[]', /profiles: a list is not a mapping$/],
  ['', /empty NetworkManager config file content$/],
  ['interfaces: [{name: eth0, state: ignore}]', /empty NetworkManager config file content$/],
];

/** nmstate may know it: text, and what is said of it. */
const FOREIGN: readonly (readonly [string, RegExp])[] = [
  ...[
    ...['802.1x: {identity: a}', 'ethtool: {ring: {rx: 1}}', 'lldp: {enabled: true}', 'mptcp: {}'],
    ...['wait-ip: any', 'accept-all-mac-addresses: true', 'profile-name: a', 'controller: b'],
    ...['copy-mac-from: eth1', 'ovs-db: {}', 'vlan: {id: 5}', 'dispatch: {}', 'mtuu: 9000'],
  ].map((member): readonly [string, RegExp] => [
    eth0(member),
    new RegExp(`^interface "eth0": ${member.replace(/:.*/, '')} needs nmstate$`),
  ]),
  ...['speed: 1000', 'duplex: full', 'auto-negotiation: true', 'sr-iov: {total-vfs: 2}'].map(
    (member): readonly [string, RegExp] => [
      eth0(`ethernet: {${member}}`),
      new RegExp(`ethernet.${member.replace(/:.*/, '')} needs nmstate$`),
    ],
  ),
  [ipv4('dhcp: true, auto-gatewy: false'), /ipv4.auto-gatewy needs nmstate$/],
  [ipv4('dhcp: true, dhcp-custom-hostname: a'), /dhcp-custom-hostname needs nmstate$/],
  [ipv6('dhcp: true, token: "::1"'), /ipv6.token needs nmstate$/],
  [
    address('ip: 192.0.2.1, prefix-length: 24, mptcp-flags: [subflow]'),
    /\[0\].mptcp-flags needs nmstate/,
  ],
  [eth0('identifier: pci-address'), /identifier is "pci-address", which needs nmstate$/],
  [
    vlan('base-iface: eth0, id: 5, protocol: 802.1ad'),
    /protocol is "802.1ad", which needs nmstate/,
  ],
  [vlan('base-iface: eth0, id: 5, reorder-headers: false'), /vlan.reorder-headers needs nmstate/],
  [
    bridge('port: [{name: eth1, vlan: {mode: access, tag: 5}}]'),
    /port\[0\].vlan.mode needs nmstate/,
  ],
  [bridge('port: [{name: eth1, stp-priority: 5}]'), /port\[0\].stp-priority needs nmstate/],
  [bridge('options: {stp: {enabled: true, priority: 5}}'), /options.stp.priority needs nmstate/],
  [bridge('options: {group-forward-mask: 5}'), /options.group-forward-mask needs nmstate/],
  [bond('mode: 1, ports-config: [{name: eth1, priority: 1}]'), /ports-config needs nmstate/],
  [bond('mode: 1, options: {balance-slb: true}'), /options.balance-slb needs nmstate/],
  [
    names('server: [192.0.2.1], options: [rotate]'),
    /dns-resolver.config.options\[0\] needs nmstate/,
  ],
  [
    `${eth0()}route-rules: {config: [{ip-to: 192.0.2.0/24}]}`,
    /^route-rules.config\[0\] needs nmstate/,
  ],
  [`${eth0()}hostname: {config: a}`, /^hostname needs nmstate$/],
  [route('destination: 0.0.0.0/0, cwnd: 5'), /routes.config\[0\].cwnd needs nmstate/],
  [
    'interfaces: [{name: v0, type: vxlan}]',
    /^interface "v0" is of type vxlan, which needs nmstate$/,
  ],
];

describe('an nmstate configuration', () => {
  it.each(WRONG)('is refused with interface, member and reason: %j', (text, reason) => {
    expect(() => renderKeyfiles(text)).toThrow(
      expect.objectContaining({
        code: 'nmstate.malformed',
        message: expect.stringMatching(reason) as string,
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

  it('is refused for a wrong value even if another interface needs nmstate', () => {
    const text = `${eth0('mtu: x')}- {name: br-ex, type: ovs-bridge}\n`;
    expect(() => renderKeyfiles(text)).toThrow(/mtu: "x" is not a whole number/);
  });

  it('is refused with a hint to the name that was probably meant', () => {
    expect(() => renderKeyfiles(eth0('mtuu: 9000'))).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('did you mean "mtu"?') as string }),
    );
  });
});
