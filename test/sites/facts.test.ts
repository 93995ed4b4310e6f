import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { checkAcrossSites } from '../../src/sites/facts.ts';
import { checkSite } from '../../src/sites/check.ts';
import type { SiteFacts } from '../../src/sites/facts.ts';
import {
  createSiteInput,
  TEST_EPOCH,
  writeImageBasedConfig,
  writeInstallConfig,
} from '../support/site-inputs.ts';

const redaction = createRedaction();

const network = (mac: string, ip: string): string =>
  [
    'networkConfig:',
    '  interfaces:',
    '  - name: eth0',
    '    type: ethernet',
    `    mac-address: ${mac}`,
    `    ipv4: {enabled: true, address: [{ip: ${ip}, prefix-length: 24}]}`,
    '  - name: storage',
    '    ipv4: {enabled: true, address: [{ip: 198.51.100.7, prefix-length: 24}]}',
  ].join('\n');

type Given = {
  name: string;
  cluster?: string;
  hostname?: string;
  mac?: string;
  ip?: string;
  id?: string;
};

function factsOf({ name, cluster = name, hostname = name, ...given }: Given): SiteFacts {
  const { mac = `52:54:00:00:00:0${name.length}`, ip = `192.0.2.${name.length}`, id } = given;
  const files = {
    'install-config.yaml': writeInstallConfig({ metadata: `metadata: {name: ${cluster}}` }),
    'image-based-config.yaml': writeImageBasedConfig({
      hostname: `hostname: ${hostname}`,
      network: network(mac, ip),
      ...(id !== undefined && { id: `cluster_id: ${id}` }),
    }),
  };
  const { facts, problems } = checkSite(createSiteInput(files, name), {
    epoch: TEST_EPOCH,
    redaction,
  });
  expect(problems).toEqual([]);
  if (!facts) throw new Error(`no facts of ${name}`);
  return facts;
}

const show = (sites: readonly SiteFacts[]): readonly string[] =>
  checkAcrossSites(sites).map(
    ({ name, severity, file, line, problem }) => `${name} ${severity} ${file}:${line}: ${problem}`,
  );

const UUID = '3fd3a7a4-5d6c-4a5a-9f3e-0d3a3b6d9b11';

describe('a value that sites may share', () => {
  it('is a warning if sharing is allowed, and otherwise refused with the option that allows it', () => {
    const sites = ['a', 'bb'].map((name) => factsOf({ name, hostname: 'sno' }));
    expect(checkAcrossSites(sites)).toMatchObject([
      { severity: 'error', hint: 'if that is intended, add --allow-shared hostname' },
      { severity: 'error' },
    ]);
    const meant = checkAcrossSites(sites, new Set(['hostname']));
    expect(meant.map(({ severity, hint }) => [severity, hint])).toEqual([
      ['warning', undefined],
      ['warning', undefined],
    ]);
  });
});

describe('two sites may not have', () => {
  it.for<readonly [string, Omit<Given, 'name'>, string, string]>([
    [
      'the same cluster name and domain',
      { cluster: 'one' },
      'install-config.yaml:2',
      'cluster name and domain one.edge.example.com',
    ],
    ['the same hostname', { hostname: 'node' }, 'image-based-config.yaml:1', 'hostname node'],
    [
      'the same address of the node',
      { ip: '192.0.2.77' },
      'image-based-config.yaml:8',
      'node address 192.0.2.77',
    ],
    [
      'the same MAC address',
      { mac: '52-54-00-AA-BB-CC' },
      'image-based-config.yaml:7',
      'MAC address 52:54:00:aa:bb:cc',
    ],
    ['the same cluster id', { id: UUID }, 'image-based-config.yaml:11', `cluster id ${UUID}`],
  ])('%s', ([, given, place, what]) => {
    const sites = [factsOf({ name: 'a', ...given }), factsOf({ name: 'bb', ...given })];
    expect(show(sites)).toEqual([
      `a error a/${place}: ${what} of a is also used by bb (bb/${place})`,
      `bb error bb/${place}: ${what} of bb is also used by a (a/${place})`,
    ]);
  });
});

describe('two sites may have', () => {
  it('the same addresses outside of the machine networks', () => {
    expect(show([factsOf({ name: 'a' }), factsOf({ name: 'bb' })])).toEqual([]);
  });
});

it('names in another case and MAC addresses in another form count as the same', () => {
  const sites = [
    factsOf({ name: 'a', hostname: 'Node', mac: '52:54:00:aa:bb:cc' }),
    factsOf({ name: 'bb', hostname: 'node', mac: '52-54-00-AA-BB-CC' }),
  ];
  expect(show(sites)).toHaveLength(4);
});

it('an address in another spelling counts as the same', () => {
  const facts = (name: string, ip: string): SiteFacts => {
    const text = `networkConfig: {interfaces: [{name: eth0, ipv6: {enabled: true, address: [{ip: "${ip}", prefix-length: 64}]}}]}`;
    const input = createSiteInput(
      {
        'install-config.yaml': writeInstallConfig({
          metadata: `metadata: {name: ${name}}`,
          networking: 'networking: {machineNetwork: [{cidr: "2001:db8::/64"}]}',
        }),
        'image-based-config.yaml': writeImageBasedConfig({ hostname: `hostname: ${name}`, text }),
      },
      name,
    );
    return checkSite(input, { epoch: TEST_EPOCH, redaction }).facts ?? { name, facts: [] };
  };
  expect(show([facts('a', '2001:db8::1'), facts('b', '2001:DB8:0:0::0001')])).toHaveLength(2);
});

it('ten thousand sites with one hostname get one finding each', () => {
  const sites = Array.from({ length: 10_000 }, (_, index) => ({
    name: `s${index}`,
    facts: [{ kind: 'hostname' as const, value: 'node', file: `s${index}/i.yaml`, line: 1 }],
  }));
  const findings = checkAcrossSites(sites);
  expect(findings).toHaveLength(10_000);
  expect(findings[9_999]?.problem).toBe(
    'hostname node of s9999 is also used by s0 (s0/i.yaml:1, and 9998 more)',
  );
});
