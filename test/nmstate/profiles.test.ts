import { describe, expect, it } from 'vitest';
import { normaliseKeyfile } from '../../src/nmstate/keyfile.ts';
import { renderKeyfiles } from '../support/render-profiles.ts';

const render = (config: string): Readonly<Record<string, string>> =>
  Object.fromEntries(renderKeyfiles(config).map(({ name, content }) => [name, content]));

/** Identifiers as nmstate 2.2.38 printed them for these types and names. */
const MEASURED = {
  'eth0.nmconnection': 'dfd202f5-562f-5f07-8f2a-a7717756fb70',
  'eth1.nmconnection': '0523c0a1-5f5e-5603-bcf2-68155d5d322e',
  'bond0.nmconnection': '925b4a95-2de0-5b2d-bcf5-8b684a7e9cb4',
  'br0.nmconnection': '21dd2f8f-7814-535b-8225-a001da95c87e',
  'eth1.101.nmconnection': '6d0f1528-fd9c-52a9-9aa5-b825aa883bc3',
};

describe('network profiles of an nmstate configuration', () => {
  it('have the identifiers that nmstate derives from type and name', () => {
    const files = render(`interfaces:
- {name: eth0, type: ethernet}
- {name: eth1, type: ethernet}
- {name: eth1.101, type: vlan, vlan: {id: 101, base-iface: eth1}}
- {name: bond0, type: bond, link-aggregation: {mode: active-backup, port: [eth2]}}
- {name: br0, type: linux-bridge, bridge: {port: [{name: eth3}]}}
`);
    for (const [name, uuid] of Object.entries(MEASURED))
      expect(files[name]).toContain(`uuid=${uuid}\n`);
    expect(Object.keys(files)).toEqual([
      ...['bond0', 'br0', 'eth0', 'eth1', 'eth1.101', 'eth2', 'eth3'].map(
        (name) => `${name}.nmconnection`,
      ),
    ]);
    expect(files['eth2.nmconnection']).toContain('master=bond0\nslave-type=bond\n');
    expect(files['eth2.nmconnection']).not.toContain('[ipv4]');
    expect(files['eth1.101.nmconnection']).toContain('[vlan]\nflags=1\nid=101\nparent=eth1\n');
  });

  it('have addresses, routes and name servers in the keys of NetworkManager', () => {
    const files = render(`interfaces:
- name: eth0
  type: ethernet
  state: up
  mac-address: 52:54:00:aa:bb:cc
  ipv4: {enabled: true, dhcp: false, address: [{ip: 192.0.2.10, prefix-length: 24}]}
- {name: eth1, type: ethernet, ipv4: {enabled: true, dhcp: true}, ipv6: {enabled: true, dhcp: true, autoconf: true}}
routes:
  config:
  - {destination: 198.51.100.0/24, next-hop-address: 192.0.2.2, next-hop-interface: eth0, metric: 7}
  - {destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0, table-id: 254}
dns-resolver: {config: {server: [192.0.2.53, 192.0.2.54], search: [a.example]}}
`);
    expect(files['eth0.nmconnection']).toBe(`[connection]
autoconnect=true
autoconnect-slaves=-1
id=eth0
interface-name=eth0
type=802-3-ethernet
uuid=dfd202f5-562f-5f07-8f2a-a7717756fb70
autoconnect-priority=1

[ipv4]
address0=192.0.2.10/24
dhcp-timeout=2147483647
dns=192.0.2.53;192.0.2.54
dns-priority=40
dns-search=a.example
method=manual
route0=0.0.0.0/0,192.0.2.1,0
route0_options=table=254
route1=198.51.100.0/24,192.0.2.2,7
route1_options=table=254

[ipv6]
dhcp-timeout=2147483647
method=disabled

[ethernet]
cloned-mac-address=52:54:00:AA:BB:CC
`);
    expect(files['eth1.nmconnection']).toMatch(
      /\[ipv4\][^[]*dhcp-client-id=mac\n[^[]*never-default=false\n/,
    );
    expect(files['eth1.nmconnection']).toMatch(/\[ipv6\]\naddr-gen-mode=0\n[^[]*method=auto\n/);
  });

  it('are refused if only nmstate can make them', () => {
    const ovs = 'interfaces: [{name: br-ex, type: ovs-bridge}]';
    expect(() => renderKeyfiles(ovs)).toThrow(
      expect.objectContaining({ code: 'nmstate.unsupported' }),
    );
    const autoconf = 'interfaces: [{name: a, ipv6: {enabled: true, autoconf: true, dhcp: false}}]';
    expect(() => renderKeyfiles(autoconf)).toThrow(/autoconf only together with dhcp/);
    expect(() => renderKeyfiles('interfaces: [{name: a, state: absent}]')).toThrow(
      /empty NetworkManager/,
    );
    expect(() => renderKeyfiles('interfaces: [{name: ../a}]')).toThrow(
      /"..\/a" is not the name of an interface/,
    );
  });

  it('connect automatically even if nmstate made them, with a blank line between sections', () => {
    const content = '[connection]\nautoconnect = false\nid=a;b\n[ipv4]\nmethod=auto\n';
    expect(normaliseKeyfile({ name: 'a', content }).content).toBe(
      '[connection]\nautoconnect=true\nid=a;b\nautoconnect-priority=1\n\n[ipv4]\nmethod=auto\n',
    );
  });
});

describe('settings that only nmstate and NetworkManager explain', () => {
  it('have two routes if the main table has its two numbers, and one if only the metric differs', () => {
    const to =
      'destination: 198.51.100.0/24, next-hop-address: 192.0.2.1, next-hop-interface: eth0';
    const { 'eth0.nmconnection': text = '' } = render(`interfaces:
- {name: eth0, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}}
routes:
  config:
  - {${to}}
  - {${to}, table-id: 254, metric: -1}
  - {${to}, table-id: 0}
  - {${to}, metric: 5}
`);
    expect(text.match(/^route\d.*$/gm)).toEqual([
      'route0=198.51.100.0/24,192.0.2.1,0',
      'route0_options=table=254',
      'route1=198.51.100.0/24,192.0.2.1,0',
      'route1_options=table=254',
    ]);
  });

  it('have no identifier of DHCP if it is empty: NetworkManager chooses one', () => {
    const { 'eth0.nmconnection': text = '' } = render(`interfaces:
- name: eth0
  ipv4: {enabled: true, dhcp: true, dhcp-client-id: ""}
  ipv6: {enabled: true, dhcp: true, autoconf: true, dhcp-duid: ""}
`);
    expect(text).not.toMatch(/dhcp-client-id|dhcp-duid/);
    expect(text).toMatch(/^dhcp-iaid=mac$/m);
  });

  it('may be indented with spaces that do not break, as texts of web pages are', () => {
    const files = render('interfaces:\n-\u00a0name: eth0\n\u00a0 mtu: 1400\n');
    expect(files['eth0.nmconnection']).toMatch(/^mtu=1400$/m);
  });

  it('are refused for a long cycle with some of its names', () => {
    const vlans = Array.from({ length: 500 }, (_, at) => {
      return `- {name: v${at}, type: vlan, vlan: {id: 1, base-iface: v${(at + 1) % 500}}}\n`;
    });
    expect(() => render(`interfaces:\n${vlans.join('')}`)).toThrow(
      /is below itself: v0 over v1 over .* over v7 over 492 more over v0$/,
    );
  });
});
