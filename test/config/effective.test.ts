import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { loadConfig, readConfigFiles } from '../../src/config/load.ts';
import { runLine } from '../support/run-line.ts';

const redaction = createRedaction();

const SECRET = '{"auths":{"quay.io":{"auth":"ZWZmZWN0aXZlOnNlY3JldA=="}}}';
const BASE = `kind: ApplianceConfig
apiVersion: v1beta1
ocpRelease:
  version: 4.20
pullSecret: '${SECRET}'
operators:
  - catalog: https://me:hunter2hunter2@registry.example.com/index
    packages: []
`;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-show-'));
  await writeFile(join(directory, 'base.yaml'), BASE);
  await writeFile(
    join(directory, 'nightly.yaml'),
    'ocpRelease: {channel: fast}\nuserCorePass: env:CORE\noperators:\n  - catalog: q.io/i:1\nbuild: {maxSize: 1GiB}\n',
  );
});
afterEach(() => rm(directory, { recursive: true }));

const show = (args: readonly string[], env: NodeJS.ProcessEnv = {}): ReturnType<typeof runLine> =>
  runLine(['config', 'show', ...args], { cwd: directory, env });

const NIGHTLY = ['base.yaml', 'nightly.yaml', '--set', 'build.maxSize=2GiB'];

describe('config show', () => {
  test.each([
    ['a pull secret without quotes', `pullSecret: ${SECRET}`],
    ['a list', 'userCorePass: [ZWZmZWN0aXZl]'],
    ['a number', 'userCorePass: 4711000815'],
    ['a mapping', 'sshKey: {private: ZWZmZWN0aXZl}'],
    ['a secret of a section', 'build: {embed: {pullSecret: [ZWZmZWN0aXZl]}}'],
    ['a misspelt key', 'pulSecret: ZWZmZWN0aXZl'],
    ['a misspelt key of a section', 'build: {embed: {pulSecret: {a: {b: ZWZmZWN0aXZl}}}}'],
  ])('masks a secret that is %s', async (_, line) => {
    await writeFile(join(directory, 'wrong.yaml'), `${line}\n`);
    for (const form of ['text', 'yaml', 'json']) {
      const { stdout, stderr, exitCode } = await show(['wrong.yaml', '-o', form]);
      expect(exitCode).toBe(3);
      expect(stdout).toContain('[redacted]');
      expect(stdout + stderr).not.toMatch(/ZWZmZWN0aXZl|4711000815/);
    }
  });

  test('prints every value with the place it comes from', async () => {
    const env = { CORE: 'x', OCP_SIGNATURE_VERIFICATION_PK: '/keys.asc' };
    const { stdout, stderr, exitCode } = await show(NIGHTLY, env);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout.split('\n').slice(0, 12)).toEqual([
      'apiVersion: v1beta1 # base.yaml:2:13',
      'kind: ApplianceConfig # base.yaml:1:7',
      'ocpRelease:',
      '  version: "4.20" # base.yaml:4:12',
      '  channel: fast # nightly.yaml:1:23',
      '  cpuArchitecture: x86_64 # default',
      'pullSecret: "[redacted]" # base.yaml:5:13',
      'userCorePass: env:CORE # nightly.yaml:2:15',
      'imageRegistry:',
      '  uri: "" # default',
      '  port: 5005 # default',
      '  useBinary: false # default',
    ]);
    expect(stdout).toContain(
      '\n  - catalog: q.io/i:1 # nightly.yaml:4:14\n    full: false # default\n',
    );
    expect(stdout).toContain('\n  maxSize: 2GiB # --set build.maxSize\n');
    expect(stdout).toContain(
      '\n  signatureKeys: /keys.asc # environment OCP_SIGNATURE_VERIFICATION_PK\n',
    );
    expect(stdout).toContain('\n  kernelArguments: [] # default\n');
    expect(stdout).not.toContain('ZWZmZ');
  });

  test('prints the same values as JSON, with their sources by path', async () => {
    const { stdout } = await show([...NIGHTLY, '-o', 'json']);
    const { configuration, sources } = JSON.parse(stdout) as {
      configuration: Record<string, unknown>;
      sources: Record<string, unknown>;
    };
    expect(configuration['ocpRelease']).toEqual({
      version: '4.20',
      channel: 'fast',
      cpuArchitecture: 'x86_64',
    });
    expect(sources).toMatchObject({
      'ocpRelease.channel': { kind: 'file', file: 'nightly.yaml', line: 1, column: 23 },
      'operators[0].catalog': { kind: 'file', file: 'nightly.yaml', line: 4, column: 14 },
      'build.maxSize': { kind: 'set', file: '--set build.maxSize', line: 1, column: 15 },
      'build.registryData': { kind: 'default' },
    });
  });

  test('prints YAML that loads as the same configuration', async () => {
    const args = [
      'nightly.yaml',
      '--set',
      'ocpRelease.version=4.20',
      '--set',
      'apiVersion=v1beta1',
    ];
    const set = ['--set', 'pullSecret=env:PULL', '--set', 'additionalImages=[{name: "q.io/no:1"}]'];
    const { stdout, exitCode } = await show([...args, ...set, '-o', 'yaml'], {
      CORE: 'x',
      PULL: SECRET,
    });
    expect(exitCode).toBe(0);
    expect(stdout).not.toContain('#');
    await writeFile(join(directory, 'shown.yaml'), stdout);
    const env = { CORE: 'x', PULL: SECRET };
    const read = (names: [string, ...string[]], set: string[]): unknown =>
      loadConfig(readConfigFiles(names, { set }, { cwd: directory, redaction }), { env });
    const given = [...args, ...set].slice(1).filter((text) => text !== '--set');
    const before = read(['nightly.yaml'], given) as { build: object };
    const build = {
      ...before.build,
      concurrency: 8,
      ignitionArea: 2 ** 20,
      retryFor: 600_000,
      ignition: 'installer',
    };
    expect(read(['shown.yaml'], [])).toEqual({ ...before, build });
  });

  test('shows a configuration with problems without its passwords, and refuses it', async () => {
    const { stdout, stderr, exitCode } = await show(['base.yaml']);
    expect([exitCode, stderr]).toEqual([
      3,
      expect.stringContaining('base.yaml:7:14: operators[0]'),
    ]);
    expect(stdout).toContain('  - catalog: https://registry.example.com/index # base.yaml:7:14\n');
    expect(stdout + stderr).not.toMatch(/hunter2|ZWZmZ/);
    await writeFile(join(directory, 'broken.yaml'), 'a: [');
    expect(await show(['base.yaml', 'broken.yaml'])).toMatchObject({ stdout: '', exitCode: 3 });
  });

  test('shows no default architecture if the payload determines it', async () => {
    const { stdout } = await show(['nightly.yaml', '--set', 'ocpRelease.url=q.io/r:1']);
    expect(stdout).not.toContain('cpuArchitecture');
  });

  test('refuses the configuration of an installation ISO', async () => {
    await writeFile(join(directory, 'i.yaml'), 'kind: ImageBasedInstallationConfig\n');
    expect(await show(['i.yaml'])).toMatchObject({ stdout: '', exitCode: 2 });
  });
});
