import fc from 'fast-check';

/* Random documents of NMState, with faults that are as frequent as their absence. */

const NAMES = ['eth0', 'eth1', 'eno1', 'enp5s0f0', 'ens1f1'];
const FLAG = fc.constantFrom<unknown>(true, false, true, false, 'yes', 'off', 1);
const rarely = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
const often = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary });

const address4 = fc
  .tuple(fc.nat(3), fc.nat(254), fc.constantFrom<unknown>(24, 30, 32, '24', 8))
  .map(([net, host, length]) => ({ 'ip': `10.${net}.0.${host}`, 'prefix-length': length }));
const address6 = fc
  .tuple(
    fc.constantFrom('fd00:1::', '2001:DB8:0:0::', 'fe80::', 'fd00:2:0::'),
    fc.nat(99),
    fc.constantFrom(64, 128, 48),
  )
  .map(([net, host, length]) => ({ 'ip': `${net}${host}`, 'prefix-length': length }));

const FAMILY = {
  'enabled': often(FLAG),
  'dhcp': often(FLAG),
  'auto-dns': rarely(FLAG),
  'auto-gateway': rarely(FLAG),
  'auto-routes': rarely(FLAG),
  'auto-route-metric': rarely(fc.constantFrom<unknown>(0, 100, '200', -1)),
  'auto-route-table-id': rarely(fc.constantFrom(0, 100, 254)),
  'dhcp-send-hostname': rarely(fc.boolean()),
};
const family4 = fc.record({
  ...FAMILY,
  'address': often(fc.array(address4, { maxLength: 2 })),
  'dhcp-client-id': rarely(fc.constantFrom('ll', 'LL', 'iaid+duid', '01:02:03', 'foo')),
});
const family6 = fc.record({
  ...FAMILY,
  'address': often(fc.array(address6, { maxLength: 2 })),
  'autoconf': often(FLAG),
  'addr-gen-mode': rarely(fc.constantFrom('eui64', 'stable-privacy')),
  'dhcp-duid': rarely(
    fc.constantFrom('ll', 'LLT', 'en', 'uuid', 'foo', '00:03:00:01:aa:bb:cc:dd:ee:ff', 'aabbcc'),
  ),
});

const mac = fc
  .nat(0xffff)
  .map((tail) => tail.toString(16).padStart(4, '0'))
  .map((tail) => `52:54:00:00:${tail.slice(0, 2)}:${tail.slice(2)}`);

const common = {
  'state': rarely(fc.constantFrom('up', 'down', 'absent', 'ignore', 'up', 'up')),
  'mtu': rarely(fc.constantFrom<unknown>(1500, 9000, 1280, '1400', 1200, 65536)),
  'mac-address': often(mac),
  'identifier': rarely(fc.constantFrom('name', 'mac-address')),
  'description': rarely(fc.constantFrom('a', 'ünï', 'trail ', ' lead', 'a;b')),
  'ipv4': often(family4),
  'ipv6': often(family6),
};

const ethernet = fc.record({ type: often(fc.constant('ethernet')), ...common });

const options = fc.record({
  miimon: rarely(fc.constantFrom<unknown>(0, 100, '140')),
  updelay: rarely(fc.constantFrom(0, 100)),
  downdelay: rarely(fc.constantFrom(0, 100)),
  arp_interval: rarely(fc.constantFrom(0, 100)),
  arp_ip_target: rarely(fc.constantFrom('192.0.2.1', '192.0.2.1,192.0.2.2', '', 'fd00::1')),
  arp_validate: rarely(fc.constantFrom<unknown>('none', 'all', 3)),
  arp_all_targets: rarely(fc.constantFrom<unknown>('any', 1)),
  arp_missed_max: rarely(fc.constantFrom(2, 3)),
  lacp_rate: rarely(fc.constantFrom<unknown>('slow', 'fast', 1)),
  primary: rarely(fc.constantFrom('eth0', 'eno1')),
  primary_reselect: rarely(fc.constantFrom<unknown>('better', 2)),
  fail_over_mac: rarely(fc.constantFrom<unknown>('none', 'active', 2)),
  ad_select: rarely(fc.constantFrom('count', 'stable')),
  ad_actor_sys_prio: rarely(fc.constantFrom(0, 1, 65535)),
  ad_actor_system: rarely(fc.constantFrom('52:54:00:00:00:99', '01:00:5e:00:00:01')),
  ad_user_port_key: rarely(fc.constantFrom(3, 2000)),
  all_slaves_active: rarely(fc.constantFrom<unknown>('dropped', 'delivered', 1)),
  num_grat_arp: rarely(fc.constantFrom(1, 2)),
  num_unsol_na: rarely(fc.constantFrom(1, 2)),
  packets_per_slave: rarely(fc.constantFrom(1, 70_000)),
  tlb_dynamic_lb: rarely(FLAG),
  use_carrier: rarely(FLAG),
  xmit_hash_policy: rarely(fc.constantFrom<unknown>('layer2', 'layer3+4', 5)),
  resend_igmp: rarely(fc.constantFrom(1, 300)),
  lp_interval: rarely(fc.constantFrom(0, 20)),
});
const MODES = ['balance-rr', 'active-backup', '802.3ad', 'lacp', 1, '4', 'balance-xor', 6, 'foo'];
const ports = fc.subarray(NAMES, { minLength: 0, maxLength: 2 });
const bond = fc.record({
  'name': fc.constant('bond0'),
  'type': fc.constant('bond'),
  ...common,
  'link-aggregation': fc
    .tuple(
      fc.constantFrom<unknown>(...MODES),
      fc.constantFrom('port', 'port', 'port', 'ports', 'slaves'),
      ports,
      often(options),
    )
    .map(([mode, key, names, given]) => ({ mode, [key]: names, options: given })),
});
const bridge = fc.record({
  name: fc.constant('br0'),
  type: fc.constant('linux-bridge'),
  ...common,
  bridge: fc.record({
    port: often(ports.map((names) => names.map((name) => ({ name })))),
    options: rarely(fc.record({ stp: fc.record({ enabled: FLAG }) })),
  }),
});
const vlan = fc.tuple(fc.constantFrom(...NAMES, 'bond0', 'br0'), fc.constantFrom(7, '20', 4095));
const vlans = fc.record({
  ...common,
  type: fc.constant('vlan'),
  vlan: vlan.map(([base, id]) => ({ 'base-iface': base, id })),
});

const out = fc.constantFrom(...NAMES, 'bond0', 'br0', 'lo');
const route = fc.record({
  'destination': fc.constantFrom(
    ...['0.0.0.0/0', '198.51.100.0/24', '198.51.100.9', '10.9.8.7/16', '::/0', '2001:db8:9::/48'],
    '0.0.0.0/8',
  ),
  'next-hop-interface': often(out),
  'next-hop-address': often(fc.constantFrom('10.0.0.254', 'fd00:1::fe', '0.0.0.0')),
  'metric': rarely(fc.constantFrom<unknown>(-1, 0, 150, '20')),
  'table-id': rarely(fc.constantFrom(0, 100, 254)),
  'weight': rarely(fc.constantFrom(1, 256)),
  'route-type': rarely(fc.constantFrom('blackhole', 'prohibit')),
});
const resolver = fc.record({
  server: often(
    fc.array(fc.constantFrom('10.0.0.53', 'fd00::53', '8.8.8.8', 'fe80::1%eth0'), { maxLength: 4 }),
  ),
  search: rarely(fc.constant(['a.example', 'b.example'])),
});

/** JSON is YAML; undefined members are left out. */
export const anyNetwork: fc.Arbitrary<string> = fc
  .record({
    ethernets: fc.array(ethernet, { maxLength: NAMES.length }),
    bond: rarely(bond),
    bridge: rarely(bridge),
    vlan: rarely(vlans),
    routes: rarely(fc.array(route, { minLength: 1, maxLength: 3 })),
    resolver: rarely(resolver),
  })
  .map(({ ethernets, routes, resolver: names, ...more }) =>
    JSON.stringify({
      'interfaces': [
        ...ethernets.map((each, at) => ({ name: NAMES[at], ...each })),
        ...[more.bond, more.bridge].filter((each) => each !== undefined),
        ...(more.vlan ? [{ name: `v${more.vlan.vlan.id}`, ...more.vlan }] : []),
      ],
      'routes': routes && { config: routes },
      'dns-resolver': names && { config: names },
    }),
  );
