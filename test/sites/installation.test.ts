import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { createRedaction } from '../../src/base/text/redact.ts';
import { INSTALLATION_TEMPLATE } from '../../src/config/starter.ts';
import { INSTALLATION } from '../../src/sites/installation-shape.ts';
import { checkInstallationConfig, readInstallationConfig } from '../../src/sites/installation.ts';
import {
  MINIMAL_INSTALLATION,
  TEST_SSH_KEY,
  writeInstallationConfig,
} from '../support/installation-iso.ts';

const redaction = createRedaction();

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
      { redaction },
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

  it('takes written values instead of defaults, including an empty text and 0', () => {
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

  it('accepts JSON, which is YAML', () => {
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

  it.each([undefined, null])('has no network configuration if it is %j', (networkConfig) => {
    expect(read({ networkConfig })).not.toHaveProperty('networkConfig');
  });

  it('reads secrets from the files and variables that it names', async () => {
    await writeFile(join(directory, 'secret.json'), `${MINIMAL_INSTALLATION.pullSecret}\n`);
    const path = await writeInstallationConfig(directory, {
      pullSecret: 'file:secret.json',
      sshKey: 'env:KEY',
    });
    const env = { KEY: TEST_SSH_KEY };
    const { pullSecret, sshKey } = await readInstallationConfig(path, { env, redaction });
    expect([pullSecret.reveal(), sshKey]).toEqual([MINIMAL_INSTALLATION.pullSecret, TEST_SSH_KEY]);
    await rm(join(directory, 'secret.json'));
    await expect(
      readInstallationConfig(path, { shownAs: 'i.yaml', redaction }),
    ).rejects.toMatchObject({
      problems: [
        { line: 4, path: 'pullSecret', problem: `there is no file ${directory}/secret.json` },
        { line: 5, path: 'sshKey', problem: 'the environment variable KEY is not set' },
      ],
    });
  });

  it('reports the problem that a caller finds in the network configuration', async () => {
    const path = await writeInstallationConfig(directory, {
      networkConfig: { interfaces: [{ name: 'eth0' }] },
    });
    const asked: string[] = [];
    const judgeNetwork = (text: string): Promise<string> => {
      asked.push(text);
      return Promise.resolve("failed to execute 'nmstatectl gc', error: bad");
    };
    await expect(readInstallationConfig(path, { judgeNetwork, redaction })).rejects.toMatchObject({
      problems: [
        {
          line: 6,
          path: 'networkConfig',
          problem: "Invalid value: failed to execute 'nmstatectl gc', error: bad",
        },
      ],
    });
    expect(asked).toEqual(['interfaces:\n- name: eth0\n']);
  });

  it('names a file that is missing, too large or unreadable', async () => {
    const path = join(directory, 'absent.yaml');
    await expect(readInstallationConfig(path, { redaction })).rejects.toMatchObject({
      code: 'config.missing',
      message: `configuration ${path} does not exist`,
    });
    await writeFile(path, Buffer.alloc((4 << 20) + 1, '#'));
    await expect(readInstallationConfig(path, { redaction })).rejects.toMatchObject({
      code: 'config.too-large',
    });
    await mkdir(join(directory, 'folder'));
    await chmod(join(directory, 'folder'), 0o700);
    await expect(
      readInstallationConfig(join(directory, 'folder'), { redaction }),
    ).rejects.toMatchObject({
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
    ['a hundred thousand lists in lists', '['.repeat(100_000)],
    ['a second document', 'kind: A\n---\nkind: B\n'],
  ])('ends quickly with a problem for %s', (_what, text) => {
    const { problems } = checkInstallationConfig(text, 'i.yaml');
    expect(problems.length).toBeGreaterThan(0);
  });
});

/** `to` is a list of ten of `from`. */
function fan(from: string, to: string, indent = ''): string {
  return `${indent}${to}: &${to} [${Array<string>(10).fill(`*${from}`).join(',')}]\n`;
}

describe('the template of an installation', () => {
  const text = INSTALLATION_TEMPLATE;

  it('is valid unchanged, once the pull secret exists', () => {
    const directory = join(import.meta.dirname, 'absent');
    const { problems } = checkInstallationConfig(text, 'i.yaml', {
      source: { directory, env: {}, redaction },
    });
    expect(problems.map(({ path, problem }) => `${path}: ${problem}`)).toEqual([
      expect.stringMatching(/^pullSecret: there is no file .*pull-secret\.json$/),
    ]);
  });

  it("has the members of openshift-install's", () => {
    expect(parse(text)).toEqual({
      apiVersion: 'v1beta1',
      kind: 'ImageBasedInstallationConfig',
      metadata: { name: 'example-image-based-installation-config' },
      seedImage: 'quay.io/openshift-kni/seed-image:4.16.0',
      seedVersion: '4.16.0',
      installationDisk: '/dev/vda',
      pullSecret: 'file:pull-secret.json',
    });
  });

  it('shows every other key as a comment that is valid too', () => {
    const whole = text.replace(/^.*\n/, '').replaceAll(/^# ( *(?:[\w-]+:(?: .*)?|- .*))$/gm, '$1');
    const { problems } = checkInstallationConfig(whole, 'i.yaml');
    const paths = new Set(problems.map(({ path }) => path));
    expect([...paths].sort()).toEqual(['additionalTrustBundle', 'pullSecret', 'sshKey']);
    const keys = Object.keys(INSTALLATION.members);
    expect(Object.keys(parse(whole) as object).sort()).toEqual(keys.sort());
  });
});
