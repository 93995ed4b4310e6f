import { describe, expect, it } from 'vitest';
import { judgeNetwork } from '../../src/nmstate/plan.ts';
import { formatFinding } from '../../src/nmstate/values.ts';
import { parse } from '../../src/shape/parse-text.ts';
import { bond, eth0, ipv4, ipv6, names, route, STATIC } from '../support/network-states.ts';
import { renderKeyfiles } from '../support/render-profiles.ts';

const options = (mode: string, text: string): string => bond(`mode: ${mode}, options: {${text}}`);
const over = (base: string, upper: string): string =>
  `interfaces: [{name: eth0, mtu: 1500}, {name: bond0, type: bond, mtu: 1500, link-aggregation: {mode: 1}}, {name: u0, mtu: 9000, ${upper.replace('BASE', base)}}]`;

/** Text, and what is said: rules of nmstate and NetworkManager 1.42 that the profile or the host would break. */
const REFUSED: readonly (readonly [string, RegExp])[] = [
  [options('802.3ad', 'primary: eth0'), /primary: is only valid for the modes active-backup/],
  [options('active-backup', 'lacp_rate: slow'), /lacp_rate: is only valid for the mode 802.3ad/],
  [options('4', 'arp_interval: 9, arp_ip_target: 192.0.2.1'), /is not valid for the mode 802.3ad/],
  [options('1', 'miimon: 9, arp_interval: 9, arp_ip_target: 192.0.2.1'), /excludes miimon/],
  [options('1', 'arp_interval: 9'), /arp_interval: needs arp_ip_target$/],
  [options('1', 'arp_ip_target: 192.0.2.1'), /arp_ip_target: needs arp_interval above 0$/],
  [options('1', 'miimon: 0, updelay: 9'), /updelay: needs miimon above 0$/],
  [options('1', 'miimon: 0, downdelay: 9'), /downdelay: needs miimon above 0$/],
  [options('1', 'num_grat_arp: 1, num_unsol_na: 2'), /num_unsol_na: must equal num_grat_arp$/],
  [options('4', 'arp_missed_max: 3'), /arp_missed_max: is not valid for the mode 802.3ad$/],
  [options('4', 'ad_actor_sys_prio: 0'), /is not a whole number from 1 to 65535$/],
  [options('4', 'ad_actor_system: "01:00:5e:00:00:01"'), /must be the MAC address of one host$/],
  [options('1', 'resend_igmp: 256'), /is not a whole number from 0 to 255$/],
  [bond('mode: 1, slaves: [eth1]'), /slaves: unknown field "slaves"$/],
  [ipv6('dhcp: true, dhcp-duid: foo'), /dhcp-duid: "foo" is not a DUID that NetworkManager knows/],
  [ipv6('dhcp: true, dhcp-duid: UUID'), /dhcp-duid: "uuid" is not a DUID/],
  [ipv6('autoconf: true'), /autoconf only together with dhcp$/],
  [names('server: ["fd00::1"]'), /no interface has an IPv6 address, so none can have this name/],
  [
    `${ipv4(STATIC)}  ipv6: {enabled: true}\ndns-resolver: {config: {server: ["fd00::1"]}}`,
    /no interface has an IPv6 address/,
  ],
  [
    `${ipv4('dhcp: true')}  ipv6: {enabled: true, dhcp: true}\ndns-resolver: {config: {server: [192.0.2.1, "fd00::1", 192.0.2.2]}}`,
    /server\[2\]: name servers of one family must not be between those of the other$/,
  ],
  [
    route('destination: 198.51.100.0/24').replace('- name: eth0', '- name: eth0\n  state: down'),
    /"eth0" has the state down$/,
  ],
  [
    `${ipv6('dhcp: true')}routes: {config: [{destination: "::/0", next-hop-interface: eth0, weight: 2}]}`,
    /routes of IPv6 have no weight$/,
  ],
  [
    over('eth0', 'type: vlan, vlan: {base-iface: BASE, id: 5}'),
    /9000 is above 1500, which the MTU 1500 of "eth0" allows$/,
  ],
  [over('bond0', 'type: vlan, vlan: {base-iface: BASE, id: 5}'), /the MTU 1500 of "bond0" allows$/],
  [over('eth0', 'type: vxlan, vxlan: {base-iface: BASE, id: 5}'), /9000 is above 1450/],
  [
    eth0('mac-address: "01:23:45:67:89:ab"'),
    /no interface can have the address 01:23:45:67:89:AB$/,
  ],
  [
    'interfaces: [{name: a, identifier: mac-address, mac-address: "52:54:00:00:00:01"}, {name: b, identifier: mac-address, mac-address: "52-54-00-00-00-01"}]',
    /interface "b": mac-address: 52:54:00:00:00:01 is also the address of "a"$/,
  ],
  [
    'interfaces: [{name: br0, type: linux-bridge, identifier: mac-address, mac-address: "52:54:00:00:00:01"}]',
    /identifier: an interface of type linux-bridge is found by its name$/,
  ],
  ...['224.0.0.1', '127.0.0.1', '0.0.0.0', '255.255.255.255'].map(
    (address) =>
      [ipv4(STATIC.replace('192.0.2.10', address)), /no interface can have the address/] as const,
  ),
  ...['ff02::1', '::1', '::'].map(
    (address) =>
      [ipv6(`address: [{ip: "${address}", prefix-length: 64}]`), /no interface can have/] as const,
  ),
  [
    ipv4('address: [{ip: 192.0.2.63, prefix-length: 26}]'),
    /the broadcast address of 192.0.2.63.26$/,
  ],
  [eth0('mac-address: 0000.0000.0000'), /no interface can have the address 00:00:00:00:00:00$/],
  [
    route('destination: 0.0.0.0/0, next-hop-address: 192.0.2.10'),
    /next-hop-address: 192.0.2.10 is the address of eth0 itself$/,
  ],
  [
    'interfaces: [{name: a, type: vlan, vlan: {base-iface: b, id: 1}}, {name: b, type: vlan, vlan: {base-iface: a, id: 2}}]',
    /interface "a": is below itself: a over b over a$/,
  ],
  [
    'interfaces: [{name: bond0, type: bond, link-aggregation: {mode: 1, port: [v]}}, {name: v, type: vlan, vlan: {base-iface: bond0, id: 2}}]',
    /interface "bond0": is below itself: bond0 over v over bond0$/,
  ],
  [
    'interfaces: [{name: c, type: vlan, vlan: {base-iface: a, id: 1}}, {name: a, type: vxlan, vxlan: {base-iface: b, id: 1}}, {name: b, type: mac-vlan, mac-vlan: {base-iface: a, mode: vepa}}]',
    /interface "c": is below itself: a over b over a$/,
  ],
  [bond('mode: 1, port: [bond0]'), /an interface cannot be its own port$/],
  ['interfaces: [{name: eth 0}]', /is not the name of an interface/],
  ['interfaces: [{name: "eth=0"}]', /is not the name of an interface$/],
];

/** Text, and lines of any profile. */
const TAKEN: readonly (readonly [string, readonly string[]])[] = [
  ['interfaces: [{name: eth+0, mtu: 65536}]', ['interface-name=eth+0', 'mtu=65536']],
  ['interfaces: [{name: ethä}]', ['interface-name=ethä']],
  ...[
    '52-54-00-AA-BB-01',
    '5254.00aa.bb01',
    '5254-00aa-bb01',
    '525400-aabb01',
    '"525400aabb01"',
  ].map((mac) => [eth0(`mac-address: ${mac}`), ['cloned-mac-address=52:54:00:AA:BB:01']] as const),
  [bond('mode: lacp'), ['mode=802.3ad']],
  [
    bond('mode: 1, options: {fail_over_mac: active}').replace(
      'link-',
      'mac-address: "52:54:00:00:00:01", link-',
    ),
    ['fail_over_mac=active'],
  ],
  [route('destination: 10.9.8.7/16'), ['route0=10.9.0.0/16,,0']],
  [route('destination: 10.9.0.0/16, next-hop-address: 0.0.0.0'), ['route0=10.9.0.0/16,,0']],
  [
    `${eth0()}routes: {config: [{destination: 198.51.100.0/24, route-type: blackhole}]}`,
    ['interface-name=lo', 'route0=198.51.100.0/24,,0', 'route0_options=table=254,type=blackhole'],
  ],
  [
    `${ipv6('address: [{ip: "FD00:0::A1", prefix-length: 64}, {ip: "fe80::1", prefix-length: 64}]')}routes: {config: [{destination: "::/0", next-hop-address: "fd00:0::1", next-hop-interface: eth0}]}`,
    ['address0=fd00::a1/64', 'route0=::/0,fd00::1,1024'],
  ],
];

/** Text, and a warning: the host has a network, perhaps not the one that is meant. */
const WARNED: readonly (readonly [string, string])[] = [
  [
    ipv4('address: [{ip: 192.0.2.64, prefix-length: 26}]'),
    'interface "eth0": ipv4.address[0].ip: 192.0.2.64 is the network address of 192.0.2.64/26',
  ],
  [
    `interfaces: [{name: a, ipv4: {enabled: true, ${STATIC}}}, {name: b, ipv4: {enabled: true, ${STATIC}}}]`,
    'interface "b": ipv4.address[0].ip: 192.0.2.10 is also an address of "a"',
  ],
  [
    route('destination: 0.0.0.0/0, next-hop-address: 192.0.3.1'),
    'routes.config[0].next-hop-address: 192.0.3.1 is in no subnet of interface eth0',
  ],
];

/** Text whose next hop is reached: by a route of its link, by an address alone in its subnet, by DHCP, over the link. */
const REACHED: readonly string[] = [
  `${ipv4(STATIC)}routes: {config: [{next-hop-interface: eth0, destination: 192.0.3.1/32}, {next-hop-interface: eth0, destination: 0.0.0.0/0, next-hop-address: 192.0.3.1}]}`,
  route('destination: 0.0.0.0/0, next-hop-address: 192.0.3.1').replace('24', '32'),
  route('destination: 0.0.0.0/0, next-hop-address: 192.0.3.1').replace(
    'address:',
    'dhcp: true, address:',
  ),
  route('destination: 0.0.0.0/0, next-hop-address: 192.0.2.1'),
];

const render = (text: string): string =>
  renderKeyfiles(text)
    .map(({ content }) => content)
    .join('');

describe('a network', () => {
  it.each(REFUSED)('is refused, with the reason: %s', (text, reason) => {
    expect(() => renderKeyfiles(text)).toThrow(reason);
  });

  it.each(TAKEN)('is written as nmstate writes it: %s', (text, lines) => {
    expect(render(text).split('\n')).toEqual(expect.arrayContaining([...lines]));
  });

  it.each(WARNED)('is written with a warning: %s', (text, warning) => {
    const { problems, warnings } = judgeNetwork(parse(text));
    expect(problems).toEqual([]);
    expect(warnings.map((each) => formatFinding(each, ''))).toContain(warning);
  });

  it.each(REACHED)('is not warned of a next hop that is reached: %s', (text) => {
    const { problems, warnings } = judgeNetwork(parse(text));
    expect(problems).toEqual([]);
    expect(warnings.filter(({ problem }) => problem.includes('in no subnet'))).toEqual([]);
  });

  it('names the parent of a VLAN by its UUID if the parent is found by its MAC address', () => {
    const text =
      'interfaces: [{name: uplink, identifier: mac-address, mac-address: "52:54:00:aa:bb:01"}, {name: uplink.20, type: vlan, vlan: {base-iface: uplink, id: 20}}]';
    expect(render(text)).toContain('parent=337e60e5-0e64-50c3-af89-71f8725c8cff\n');
  });

  it('has its name servers on the first interface with an address, not on the first that is enabled', () => {
    const text =
      'interfaces: [{name: a, ipv4: {enabled: true}}, {name: b, ipv4: {enabled: true, address: [{ip: 192.0.2.5, prefix-length: 24}]}}]\ndns-resolver: {config: {server: [192.0.2.1]}}';
    const [a, b] = renderKeyfiles(text);
    expect([a?.content.includes('dns='), b?.content.includes('dns=192.0.2.1')]).toEqual([
      false,
      true,
    ]);
  });

  it.each(['ignore', 'absent'])('has no profile for a port with the state %s', (state) => {
    const text = `interfaces: [{name: bond0, type: bond, link-aggregation: {mode: 1, port: [eth0, eth1]}}, {name: eth1, state: ${state}}]`;
    expect(renderKeyfiles(text).map(({ name }) => name)).toEqual([
      'bond0.nmconnection',
      'eth0.nmconnection',
    ]);
  });
});
