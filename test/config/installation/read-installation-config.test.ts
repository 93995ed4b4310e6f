import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import {
  checkInstallationConfig,
  readInstallationConfig,
} from '../../../src/config/installation/read-installation-config.ts';
import { MINIMAL_INSTALLATION, writeInstallationConfig } from '../../support/installation-iso.ts';

const read = (changes: Readonly<Record<string, unknown>>) =>
  checkInstallationConfig(stringify({ ...MINIMAL_INSTALLATION, ...changes }), 'i.yaml').config;

describe('reading the configuration of an installation', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-installation-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  it('fills in the defaults of openshift-install', async () => {
    const { pullSecret, ...config } = await readInstallationConfig(
      await writeInstallationConfig(directory),
    );
    expect(pullSecret.reveal()).toBe(MINIMAL_INSTALLATION.pullSecret);
    expect(config).toEqual({
      additionalTrustBundle: '',
      architecture: 'amd64',
      coreosInstallerArgs: [],
      extraPartitionLabel: 'var-lib-containers',
      extraPartitionNumber: 5,
      extraPartitionStart: '-40G',
      imageDigestSources: [],
      installationDisk: '/dev/vda',
      releaseRegistry: '',
      seedImage: 'quay.io/edge/seed:4.21.3',
      seedVersion: '4.21.3',
      shutdown: false,
      skipDiskCleanup: false,
      sshKey: '',
    });
  });

  it('takes what is written instead of a default, an empty text and 0 too', () => {
    expect(
      read({ extraPartitionLabel: '', extraPartitionNumber: 0, shutdown: true }),
    ).toMatchObject({ extraPartitionLabel: '', extraPartitionNumber: 0, shutdown: true });
  });

  it('keeps the written text of a version that looks like a number', () => {
    const text = stringify(MINIMAL_INSTALLATION).replace(
      'seedVersion: 4.21.3',
      'seedVersion: 4.20',
    );
    expect(checkInstallationConfig(text, 'i.yaml').config.seedVersion).toBe('4.20');
  });

  it('takes JSON, which is YAML', () => {
    const { config, problems } = checkInstallationConfig(
      JSON.stringify({ ...MINIMAL_INSTALLATION, shutdown: true }),
      'i.json',
    );
    expect(problems).toEqual([]);
    expect(config.shutdown).toBe(true);
  });

  it('gives the network configuration its normal form', () => {
    const text = `${stringify(MINIMAL_INSTALLATION)}
networkConfig:
  interfaces:
    - name: eth0
      type: ethernet
      state: up
      mac-address: 00:00:00:00:00:00
      ipv4:
        enabled: yes
        dhcp: no
        address:
          - prefix-length: 23
            ip: 192.168.122.2
`;
    expect(checkInstallationConfig(text, 'i.yaml').config.networkConfig).toBe(
      [
        'interfaces:',
        '- ipv4:',
        '    address:',
        '    - ip: 192.168.122.2',
        '      prefix-length: 23',
        '    dhcp: false',
        '    enabled: true',
        '  mac-address: "00:00:00:00:00:00"',
        '  name: eth0',
        '  state: up',
        '  type: ethernet',
        '',
      ].join('\n'),
    );
  });

  it.each([undefined, null, {}])('has no network configuration where it is %j', (networkConfig) => {
    expect(read({ networkConfig })).not.toHaveProperty('networkConfig');
  });

  it('says which file is missing, too large or cannot be read', async () => {
    const path = join(directory, 'absent.yaml');
    await expect(readInstallationConfig(path, 'a.yaml')).rejects.toMatchObject({
      code: 'config.missing',
      message: 'there is no configuration a.yaml',
    });
    await writeFile(path, Buffer.alloc((4 << 20) + 1, '#'));
    await expect(readInstallationConfig(path)).rejects.toMatchObject({ code: 'config.too-large' });
    await mkdir(join(directory, 'folder'));
    await chmod(join(directory, 'folder'), 0o700);
    await expect(readInstallationConfig(join(directory, 'folder'))).rejects.toMatchObject({
      code: 'config.unreadable',
    });
  });

  it.each([
    [
      'aliases of aliases',
      `a: &a [1,1]\n${fan('a', 'b')}${fan('b', 'c')}${fan('c', 'd')}${fan('d', 'e')}`,
    ],
    [
      'aliases below the network',
      `networkConfig:\n  a: &a [1,1,1,1,1,1,1,1,1,1]\n${fan('a', 'b', '  ')}${fan('b', 'c', '  ')}${fan('c', 'd', '  ')}${fan('d', 'e', '  ')}`,
    ],
    ['an anchor that holds itself', 'networkConfig: &a {b: *a}\n'],
    ['lists in lists', `networkConfig: {a: ${'['.repeat(5000)}${']'.repeat(5000)}}\n`],
    ['a key __proto__', '__proto__: {seedImage: a}\n'],
    ['nothing', ''],
    ['a list', '- a\n'],
  ])('ends soon, with a problem, on %s', (_what, text) => {
    const { problems } = checkInstallationConfig(text, 'i.yaml');
    expect(problems.length).toBeGreaterThan(0);
  });
});

/** `to` is a list of ten of `from`. */
function fan(from: string, to: string, indent = ''): string {
  return `${indent}${to}: &${to} [${Array<string>(10).fill(`*${from}`).join(',')}]\n`;
}
