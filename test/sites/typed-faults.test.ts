import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { runProgram } from '../../src/cli/program.ts';

const redaction = createRedaction();

/* A sheet of sites as people type it, with a mistake in many of its rows. */

const KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHCFmLFL13SImDrNz5evDoOppu3OBQjM4xomBPUVLAd4 op@example';

type Row = Readonly<Record<string, string>>;

const two = (value: number): string => value.toString(16).padStart(2, '0');

/** The row of a site: every site has a network of 16 addresses. */
const rowOf = (site: number): Row => {
  const at = (host: number): string => `10.20.${site}.${32 + host}`;
  const name = `site-${String(site).padStart(4, '0')}`;
  return {
    name,
    baseDomain: 'edge.example.com',
    hostname: `host-${site}.edge.example.com`,
    mac: `52:54:00:00:00:${two(site)}`,
    machineNetwork: `${at(0)}/28`,
    ip: at(2),
    prefixLength: '28',
    gateway: at(1),
    dns: '198.51.100.53',
    ntp: '198.51.100.123',
    vlan: '100',
    mtu: '1500',
    httpsProxy: 'http://proxy.example.com:3128',
    noProxy: '.example.com',
    sshKey: KEY,
  };
};

const INSTALL_CONFIG = `apiVersion: v1
baseDomain: "{{ baseDomain }}"
metadata:
  name: "{{ name }}"
controlPlane: {name: master, replicas: 1}
compute: [{name: worker, replicas: 0}]
networking:
  networkType: OVNKubernetes
  machineNetwork: [{cidr: "{{ machineNetwork }}"}]
  clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}]
  serviceNetwork: [172.30.0.0/16]
platform: {none: {}}
proxy:
  httpsProxy: "{{ httpsProxy }}"
  noProxy: "{{ noProxy }}"
pullSecret: '{"auths":{"quay.io":{"auth":"dTpw"}}}'
sshKey: "{{ sshKey }}"
`;

const IMAGE_BASED_CONFIG = `apiVersion: v1beta1
kind: ImageBasedConfig
metadata:
  name: "{{ name }}"
hostname: "{{ hostname }}"
additionalNTPSources: ["{{ ntp }}"]
networkConfig:
  interfaces:
    - name: eth0
      type: ethernet
      state: up
      mac-address: "{{ mac }}"
      mtu: 1500
      ipv4:
        enabled: true
        dhcp: false
        address: [{ip: "{{ ip }}", prefix-length: {{ prefixLength }}}]
    - name: eth0.up
      type: vlan
      state: up
      mtu: {{ mtu }}
      vlan: {base-iface: eth0, id: {{ vlan }}}
  dns-resolver:
    config: {server: ["{{ dns }}"]}
  routes:
    config:
      - {destination: 0.0.0.0/0, next-hop-address: "{{ gateway }}", next-hop-interface: eth0}
`;

/** These sites are right, and some of the mistakes repeat their values. */
const [RIGHT, NAMED_TWICE] = [rowOf(1), rowOf(2)];

type Fault = readonly [column: string, type: (row: Row) => string];

const at = (row: Row, host: number): string => (row['ip'] ?? '').replace(/\d+$/, String(32 + host));

const FAULTS: Readonly<Record<string, Fault>> = {
  'an underscore in the name': ['name', () => 'site_0003'],
  'a name of 64 characters': ['name', () => `s${'0'.repeat(63)}`],
  'the name of another site': ['name', () => NAMED_TWICE['name'] ?? ''],
  'two dots in a domain': ['baseDomain', () => 'edge..example.com'],
  'a label of 64 characters in a domain': ['baseDomain', () => `${'d'.repeat(64)}.com`],
  'an underscore in a domain': ['baseDomain', () => 'edge_site.example.com'],
  'an underscore in a host name': ['hostname', () => 'host_9.example.com'],
  'a host name of 64 characters': ['hostname', () => 'h'.repeat(64)],
  'the host name of another site': ['hostname', () => RIGHT['hostname'] ?? ''],
  'a space in a host name': ['hostname', () => 'host 11'],
  'a MAC address of five octets': ['mac', () => '52:54:00:00:00'],
  'a letter O in a MAC address': ['mac', () => '52:54:0O:00:00:99'],
  'a MAC address of a group': ['mac', () => '01:00:5e:00:00:99'],
  'a MAC address of zeros': ['mac', () => '00:00:00:00:00:00'],
  'the MAC address of another site': ['mac', () => RIGHT['mac'] ?? ''],
  'bits of a host in a network': ['machineNetwork', (row) => `${at(row, 3)}/28`],
  'a network without a prefix': ['machineNetwork', (row) => at(row, 0)],
  'a prefix of 33 bits': ['machineNetwork', (row) => `${at(row, 0)}/33`],
  'the network of another place': ['machineNetwork', () => '192.0.2.0/28'],
  'an octet of 256': ['ip', () => '10.20.30.256'],
  'an address of three octets': ['ip', () => '10.20.30'],
  'a leading zero in an address': ['ip', () => '010.20.30.34'],
  'a letter O in an address': ['ip', () => '1O.20.30.34'],
  'an address with a prefix': ['ip', (row) => `${row['ip'] ?? ''}/28`],
  'a no-break space in an address': ['ip', (row) => (row['ip'] ?? '').replace('.', '\u00a0.')],
  'the address of the network itself': ['ip', (row) => at(row, 0)],
  'the broadcast address': ['ip', (row) => at(row, 15)],
  'the address of the gateway': ['ip', (row) => at(row, 1)],
  'the address of another site': ['ip', () => RIGHT['ip'] ?? ''],
  'a prefix length of 33': ['prefixLength', () => '33'],
  'a prefix length unlike the network': ['prefixLength', () => '24'],
  'a gateway in another network': ['gateway', () => '10.99.0.1'],
  'a gateway of three octets': ['gateway', () => '10.20.30.'],
  'the own address as name server': ['dns', (row) => row['ip'] ?? ''],
  'a name server of three octets': ['dns', () => '198.51.100.'],
  'a time server of three octets': ['ntp', () => '10.1.0.'],
  'a time server with a scheme': ['ntp', () => 'ntp://198.51.100.123'],
  'a VLAN of 4095': ['vlan', () => '4095'],
  'an MTU over that of the interface below': ['mtu', () => '9000'],
  'an exception from the proxy with a port': ['noProxy', () => 'example.com:443'],
  'a key that was cut short': ['sshKey', () => KEY.slice(0, 60)],
};

const SITES = 60;

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'typed-faults-'));
  mkdirSync(join(directory, 'template'));
  writeFileSync(join(directory, 'template/install-config.yaml'), INSTALL_CONFIG);
  writeFileSync(join(directory, 'template/image-based-config.yaml'), IMAGE_BASED_CONFIG);
});
afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

type Finding = { readonly file?: string; readonly line?: number; readonly problem: string };
type Printed = {
  readonly findings: readonly Finding[];
  readonly sites: readonly { readonly findings: readonly Finding[] }[];
};

/** The findings by the lines of the sheet. */
async function validate(rows: readonly Row[]): Promise<ReadonlyMap<number, string>> {
  const lines = [Object.keys(RIGHT), ...rows.map((row) => Object.values(row))];
  writeFileSync(join(directory, 'sites.csv'), lines.map((cells) => cells.join(',')).join('\n'));
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  const fixed = { env: {}, redaction, isTTY: false, now: () => 0 };
  const host = { ...fixed, stdout, stderr, cwd: directory, signal };
  const args = ['config-iso', 'validate', 'sites.csv', '--template', 'template', '-o', 'json'];
  const [printed] = await Promise.all([
    text(stdout),
    runProgram(args, host).then(() => stdout.end()),
  ]);
  const { findings, sites } = JSON.parse(printed) as Printed;
  const all = [...findings, ...sites.flatMap((site) => site.findings)];
  return new Map(
    all.map(({ file = '', line, problem }) => [
      Number(/^sites\.csv:(\d+)/.exec(file)?.[1] ?? line),
      problem,
    ]),
  );
}

/** Sites before the first mistake. */
const GOOD = 10;
const FIRST_LINE = 2;

describe('a sheet of 60 sites', () => {
  it('with a mistake in 41 of its rows is told of each, and of no other row', async () => {
    const faults = Object.entries(FAULTS);
    expect(faults).toHaveLength(41);
    const rows = Array.from({ length: SITES }, (_, index) => {
      const row = rowOf(index + 1);
      const fault = faults[index - GOOD]?.[1];
      return fault ? { ...row, [fault[0]]: fault[1](row) } : row;
    });
    const found = await validate(rows);
    const missed = faults.filter((_, index) => !found.has(FIRST_LINE + GOOD + index));
    expect(missed.map(([what]) => what)).toEqual([]);
    const repeated = new Set([FIRST_LINE, FIRST_LINE + 1]);
    const others = [...found].filter(
      ([line]) =>
        !repeated.has(line) &&
        (line < FIRST_LINE + GOOD || line >= FIRST_LINE + GOOD + faults.length),
    );
    expect(others).toEqual([]);
  });
});
