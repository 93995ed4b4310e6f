import { describe, expect, it } from 'vitest';
import { type HostNetwork, planHosts } from '../../src/nmstate/index.ts';

const host = (at: number, ip: string, more: Partial<HostNetwork> = {}): HostNetwork => ({
  networkConfig: [
    'interfaces:',
    '- name: eth0',
    '  type: ethernet',
    '  ipv4: {enabled: true, dhcp: false, address: [{ip: ' + ip + ', prefix-length: 24}]}',
    'dns-resolver: {config: {server: [192.0.2.1]}}',
    'routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0}]}',
  ].join('\n'),
  interfaces: [{ name: 'eth0', macAddress: `02:00:00:00:00:0${at}` }],
  placeOf: (path) => `host${at}.yaml ${path}`,
  ...more,
});

const plan = async (...hosts: readonly HostNetwork[]) => {
  const warnings: string[] = [];
  const { signal } = new AbortController();
  await planHosts(hosts, { signal, warn: (text) => warnings.push(text) });
  return warnings;
};

describe('hosts of one document', () => {
  it('are planned if they differ', async () => {
    expect(await plan(host(1, '192.0.2.5'), host(2, '192.0.2.6'))).toEqual([]);
  });

  it('are refused if two have one address in the subnet of their gateway, with both places', async () => {
    await expect(plan(host(1, '192.0.2.5'), host(2, '192.0.2.5'))).rejects.toMatchObject({
      code: 'nmstate.malformed',
      message: expect.stringContaining(
        'host2.yaml interfaces[0].ipv4.address[0].ip: interface "eth0": ipv4.address[0].ip: ' +
          '192.0.2.5 is also the address of "eth0" of another host ' +
          '(host1.yaml interfaces[0].ipv4.address[0].ip)',
      ) as string,
    });
  });

  it('are warned of if two have one address elsewhere', async () => {
    const bridge =
      '- {name: br0, type: linux-bridge, bridge: {port: []}, ipv4: {enabled: true, address: [{ip: 198.51.100.1, prefix-length: 24}]}}';
    const inside = (at: number, ip: string): HostNetwork => {
      const networkConfig = host(at, ip).networkConfig.replace('\ndns', `\n${bridge}\ndns`);
      return host(at, ip, { networkConfig });
    };
    const warnings = await plan(inside(1, '192.0.2.5'), inside(2, '192.0.2.6'));
    expect(warnings).toEqual([
      expect.stringContaining('198.51.100.1 is also the address of "br0" of another host'),
    ]);
  });

  it('are refused if two have one MAC address, in any form', async () => {
    const interfaces = [{ name: 'eth0', macAddress: '02-00-00-00-00-01' }];
    await expect(plan(host(1, '192.0.2.5'), host(2, '192.0.2.6', { interfaces }))).rejects.toThrow(
      'MAC 02:00:00:00:00:01 belongs to two hosts',
    );
  });
});
