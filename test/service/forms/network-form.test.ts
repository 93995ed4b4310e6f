import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planNetwork, readNetworkText } from '../../../src/nmstate/index.ts';
import { buildNetwork, EMPTY_NETWORK, fieldOfPath } from '../../../templates/page/network-form.js';
import { readNetwork } from '../../../templates/page/read-network.js';
import { formatYaml } from '../../../templates/page/yaml.js';

type Values = typeof EMPTY_NETWORK;

const FIXED: Values = { ...EMPTY_NETWORK, address: '192.0.2.10', prefix: '24' };

const roundTrip = (values: Values, ports: readonly string[]): unknown => {
  const text = formatYaml(buildNetwork(values, ports));
  const { value, problem } = readNetworkText(text);
  expect(problem, text).toBeUndefined();
  return readNetwork(value);
};

const octet = fc.nat({ max: 254 });
const VALUES: fc.Arbitrary<Values> = fc.record({
  method: fc.constantFrom('fixed', 'dhcp'),
  address: octet.map((last) => `192.0.2.${last}`),
  prefix: fc.integer({ min: 8, max: 30 }).map(String),
  gateway: fc.constantFrom('', '192.0.2.1'),
  dns: fc.constantFrom('', '192.0.2.53', '192.0.2.53, 2001:db8::53'),
  search: fc.constantFrom('', 'example.com', 'on, example.com'),
  vlan: fc.constantFrom('', '1', '100', '4094'),
  bond: fc.constantFrom('active-backup', '802.3ad', 'balance-xor'),
  mtu: fc.constantFrom('', '9000'),
  address6: fc.constantFrom('', '2001:db8::10'),
  prefix6: fc.constant('64'),
  gateway6: fc.constantFrom('', '2001:db8::1', '::1'),
  bondName: fc.constantFrom('', 'bond7'),
  vlanName: fc.constantFrom('', 'storage'),
});
const PORTS = fc.uniqueArray(fc.constantFrom('nic1', 'ens1f0np0', 'on', '1e3', 'null', '0x10'), {
  minLength: 1,
  maxLength: 4,
});

describe('the form of a network', () => {
  it('is read from the YAML that it becomes, with the same values', () => {
    fc.assert(
      fc.property(VALUES, PORTS, (values, ports) => {
        const base = ports.length > 1 ? values.bondName || 'bond0' : ports[0];
        const shown = {
          ...values,
          ...(values.method === 'dhcp' && { address: '', prefix: '' }),
          ...(values.address6 === '' && { prefix6: '' }),
          ...(ports.length === 1 && { bond: 'active-backup', bondName: '' }),
          ...(ports.length > 1 && { bondName: base }),
          vlanName: values.vlan === '' ? '' : values.vlanName || `${base}.${values.vlan}`,
        };
        expect(roundTrip(values, ports)).toEqual({ values: shown, ports });
      }),
    );
  });

  it.each([
    ['an address', FIXED, ['nic1']],
    ['DHCP', { ...EMPTY_NETWORK, method: 'dhcp' }, ['nic1']],
    ['a VLAN', { ...FIXED, vlan: '100' }, ['nic1']],
    ['a VLAN on a bond', { ...FIXED, vlan: '100', bond: '802.3ad' }, ['nic1', 'nic2']],
    ['both families', { ...FIXED, address6: '2001:db8::10/64', gateway6: '2001:db8::1' }, ['nic1']],
  ] as const)('with %s becomes a document without problems', async (_, values, ports) => {
    const networkConfig = formatYaml(buildNetwork({ ...values, mtu: '9000' }, ports));
    const interfaces = ports.map((name, at) => ({ name, macAddress: `52:54:00:00:00:0${at}` }));
    const { signal } = new AbortController();
    const { verdict } = await planNetwork({ networkConfig, interfaces }, { signal });
    expect([verdict.problems, verdict.untranslated]).toEqual([[], []]);
  });

  it.each([
    ['192.0.2.10/24', ''],
    ['192.0.2.10', '/24'],
    ['192.0.2.10', '255.255.255.0'],
  ])('takes %s with the prefix "%s"', (address, prefix) => {
    expect(buildNetwork({ ...FIXED, address, prefix }, ['nic1'])).toEqual(
      buildNetwork(FIXED, ['nic1']),
    );
  });

  it.each([
    ['ipv4.address[0].ip', { address: '192.0.2.300' }, 'address'],
    ['ipv4.address[0].prefix-length', { prefix: '255.0.255.0' }, 'prefix'],
    ['the missing prefix', { prefix: '' }, 'prefix'],
    ['the gateway', { gateway: 'here' }, 'gateway'],
    ['the IPv6 gateway alone', { gateway6: 'here' }, 'gateway6'],
    ['a name server', { dns: '192.0.2.53, x' }, 'dns'],
    ['a domain', { search: 'a\\b' }, 'search'],
    ['the VLAN', { vlan: '5000' }, 'vlan'],
    ['the MTU', { mtu: 'big' }, 'mtu'],
    ['the IPv6 address', { address6: '2001:db8::/x' }, 'prefix6'],
  ])('knows the field of a problem with %s', async (_, wrong, field) => {
    const values = { ...FIXED, ...wrong };
    const networkConfig = formatYaml(buildNetwork(values, ['nic1']));
    const interfaces = [{ name: 'nic1', macAddress: '52:54:00:00:00:01' }];
    const { signal } = new AbortController();
    const { verdict } = await planNetwork({ networkConfig, interfaces }, { signal });
    expect(verdict.problems.map(({ path }) => fieldOfPath(path, values))).toContain(field);
  });

  it.each([
    ['interfaces[0].ethtool', 'interfaces: [{name: a1, ethtool: {}}]'],
    ['interfaces[1]', 'interfaces: [{name: a1}, {name: b1}]'],
    ['routes', 'interfaces: [{name: a1}]\nroutes: {config: [{metric: 5}]}'],
    ['route-rules', 'interfaces: [{name: a1}]\nroute-rules: {config: []}'],
    ['interfaces', '{}'],
  ])('cannot show %s, and says so', (obstacle, text) => {
    const read = readNetwork(readNetworkText(text).value);
    expect(read).toEqual({ obstacle: expect.stringContaining(obstacle) as string });
  });
});
