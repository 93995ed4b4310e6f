/** nmstate documents with members of one interface, or beside one. */
export const eth0 = (...members: readonly string[]): string =>
  ['interfaces:', '- name: eth0', ...members.map((member) => `  ${member}`), ''].join('\n');
export const ipv4 = (members: string): string => eth0(`ipv4: {enabled: true, ${members}}`);
export const ipv6 = (members: string): string => eth0(`ipv6: {enabled: true, ${members}}`);
export const address = (members: string): string => ipv4(`address: [{${members}}]`);
export const bond = (members: string): string =>
  `interfaces: [{name: bond0, type: bond, link-aggregation: {${members}}}]`;
export const vlan = (members: string): string =>
  `interfaces: [{name: eth0.5, type: vlan, vlan: {${members}}}]`;
export const bridge = (members: string): string =>
  `interfaces: [{name: br0, type: linux-bridge, bridge: {${members}}}]`;
export const STATIC = 'address: [{ip: 192.0.2.10, prefix-length: 24}]';
export const route = (members: string): string =>
  `${ipv4(STATIC)}routes: {config: [{next-hop-interface: eth0, ${members}}]}\n`;
export const names = (members: string): string =>
  `${ipv4(STATIC)}dns-resolver: {config: {${members}}}\n`;

/** Text, and lines of the first profile. */
export const TAKEN: readonly (readonly [string, readonly string[]])[] = [
  [address('ip: 192.0.2.10, prefix-length: "24"'), ['address0=192.0.2.10/24', 'method=manual']],
  [address('ip: 192.0.2.10, prefix-length: 0x18'), ['address0=192.0.2.10/24']],
  [eth0('type: Ethernet', 'ipv4: null', 'mtu: "9000"'), ['mtu=9000', 'type=802-3-ethernet']],
  [eth0('state: down', 'ipv4: {enabled: "yes", dhcp: on}'), ['method=auto']],
  [eth0('mac-address: aa:bb:cc:dd:ee:ff'), ['cloned-mac-address=AA:BB:CC:DD:EE:FF']],
  [
    eth0('identifier: mac-address', 'mac-address: AA:BB:CC:DD:EE:FF', 'profile-name: null'),
    ['mac-address=AA:BB:CC:DD:EE:FF'],
  ],
  [eth0('description: "to the; [spine] \\\\ #1 ü"'), ['[user]']],
  [ipv4('dhcp: true, dhcp-client-id: ll'), ['dhcp-client-id=mac', 'dhcp-send-hostname=true']],
  [ipv4('dhcp: true, dhcp-client-id: iaid+duid'), ['dhcp-client-id=duid']],
  [ipv4('dhcp: true, dhcp-client-id: "01:02"'), ['dhcp-client-id=01:02']],
  [ipv4('dhcp: true, dhcp-send-hostname: false'), ['dhcp-send-hostname=false']],
  [ipv4('dhcp: true, auto-route-metric: 7'), ['route-metric=7']],
  [ipv4('dhcp: true, auto-route-table-id: 7'), ['route-table=7']],
  [ipv4('dhcp: true, auto-dns: false'), ['ignore-auto-dns=true', 'never-default=false']],
  [ipv6('dhcp: true, autoconf: true, dhcp-duid: LLT'), ['dhcp-duid=llt', 'dhcp-iaid=mac']],
  [ipv6('dhcp: true'), ['method=dhcp']],
  [ipv6('dhcp: true, autoconf: "off", addr-gen-mode: stable-privacy'), ['addr-gen-mode=1']],
  [
    vlan('base-iface: eth0, id: "5", protocol: 802.1q'),
    ['id=5', 'parent=eth0', 'flags=1', 'protocol=802.1Q'],
  ],
  [
    bond('mode: 4, port: [eth1], options: {miimon: 100, lacp_rate: 1, use_carrier: yes}'),
    ['mode=802.3ad', 'miimon=100', 'lacp_rate=fast', 'use_carrier=1'],
  ],
  [
    bond('mode: active-backup, options: {all_slaves_active: dropped, fail_over_mac: "1"}'),
    ['all_slaves_active=0', 'fail_over_mac=active'],
  ],
  [bridge('port: [{name: eth1, vlan: {}}], options: {stp: {enabled: false}}'), ['stp=false']],
  [route('destination: 198.51.100.9'), ['route0=198.51.100.9/32,,0', 'route0_options=table=254']],
  [
    route('destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, metric: -1, weight: 3'),
    ['route0=0.0.0.0/0,192.0.2.1,0', 'route0_options=table=254,weight=3'],
  ],
  [route('state: absent, destination: garbage'), ['method=manual']],
  [
    names('server: [192.0.2.1], search: [a.example, ~.]'),
    ['dns=192.0.2.1', 'dns-search=a.example;~.'],
  ],
  [
    `${ipv6('dhcp: true, autoconf: true')}dns-resolver: {config: {server: ["fe80::1%eth0"]}}`,
    ['dns=fe80::1'],
  ],
  [`${eth0()}routes: {running: [], config: null}\ndescription: a`, ['id=eth0']],
  ['interfaces: [{name: eth0}, {name: v0, type: vxlan, state: absent}]', ['id=eth0']],
];
