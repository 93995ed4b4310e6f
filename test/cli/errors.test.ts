import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { ConfigError, RegistryError } from '../../src/base/errors.ts';
import { createProgram, runProgram } from '../../src/cli/program.ts';
import { describeError } from '../../src/cli/terminal/errors.ts';
import { writeInstallationConfig } from '../support/installation-iso.ts';

const redaction = createRedaction();

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-errors-'));
  await writeFile(join(directory, 'wrong.yaml'), 'apiVersion: v1\n');
  await writeInstallationConfig(directory);
});
afterAll(() => rm(directory, { recursive: true }));

function createHost() {
  const streams = {
    stdout: new PassThrough({ highWaterMark: 1 << 20 }),
    stderr: new PassThrough({ highWaterMark: 1 << 20 }),
  };
  const { signal } = new AbortController();
  return { ...streams, env: {}, cwd: directory, redaction, isTTY: false, signal, now: () => 0 };
}

async function run(...args: readonly string[]) {
  const host = createHost();
  const exitCode = await runProgram(args, host);
  const read = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? '';
  return { exitCode, stdout: read(host.stdout), stderr: read(host.stderr) };
}

it('a failure inside another ends with the exit code of the outer one', () => {
  const inner = new RegistryError('registry.unreachable', 'no answer', { found: 'inner' });
  const outer = new ConfigError('config.file', 'a file', { cause: inner, hint: 'look at it' });
  expect(describeError(outer, redaction)).toEqual({
    exitCode: 3,
    text: 'error: a file: no answer [config.file]\n  hint: look at it\n',
  });
  expect(describeError(new Error('a bug', { cause: inner }), redaction).exitCode).toBe(4);
});

describe('a failure with JSON output', () => {
  it.each([
    [['validate', 'absent.yaml', '-o', 'json'], 'config.missing', 3],
    [['validate', 'absent.yaml', '-ojson'], 'config.missing', 3],
    [['validate', 'absent.yaml', '--output-format=json'], 'config.missing', 3],
    [['build', '--log-format', 'json', 'absent.yaml'], 'config.missing', 3],
    [['inspect', 'absent.iso', '-o', 'json'], 'iso.unreadable', 3],
    [['plan', '-o', 'json', '--outptu', 'x'], 'usage.unknown-option', 2],
    [['vlidate', '-o', 'json'], 'usage.unknown-command', 2],
    [['inspect', '-o', 'json'], 'usage.missing-argument', 2],
    [['ls', 'a', 'b', 'c', '-o', 'json'], 'usage.excess-arguments', 2],
    [['plan', '-o', 'json', '--ignition', 'other'], 'usage.invalid-argument', 2],
    [['plan', '-o', 'json', '--concurrency', '0'], 'usage.concurrency', 2],
    [['catalog', '-o', 'json'], 'usage.unknown-option', 2],
  ])('is one object on one line of stderr: %j', async (args, code, exitCode) => {
    const outcome = await run(...args);
    expect(outcome).toMatchObject({ exitCode, stdout: '' });
    expect(outcome.stderr.match(/\n/g)).toHaveLength(1);
    const error = JSON.parse(outcome.stderr) as Record<string, unknown>;
    expect(error).toMatchObject({ type: 'error', code, exitCode });
    expect(error['message']).toMatch(/^(?!error:)./);
    expect(error['causes']).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ code, message: expect.any(String) as string }),
      ]),
    );
  });

  it('has the problems of a configuration, with the result on stdout', async () => {
    const { exitCode, stdout, stderr } = await run('validate', 'wrong.yaml', '-o', 'json');
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([3, { valid: false }]);
    expect(JSON.parse(stderr)).toMatchObject({
      code: 'config.problems',
      problems: expect.arrayContaining([
        expect.objectContaining({ path: 'apiVersion' }),
      ]) as unknown,
    });
  });

  it('of an option of "plan" names the product that the option is for', async () => {
    const embedded = await run('plan', '--embed-seed', 'wrong.yaml', '-o', 'json');
    expect(JSON.parse(embedded.stderr)).toMatchObject({
      code: 'usage.other-product',
      exitCode: 2,
      found: 'that of an appliance',
      hint: 'leave --embed-seed out',
    });
  });

  it('has both values and the hint as members', async () => {
    const { stderr } = await run('plan', '-o', 'json', '--concurrency', '257');
    expect(JSON.parse(stderr)).toMatchObject({
      expected: 'a whole number from 1 to 256',
      found: '257',
    });
    const mistyped = await run('vlidate', '-o', 'json');
    expect(JSON.parse(mistyped.stderr)).toMatchObject({ hint: 'did you mean "validate"?' });
  });

  it('is printed as text if -ojson is only an argument after a double dash', async () => {
    const { stderr } = await run('validate', '--', '-ojson');
    expect(stderr).toMatch(/^error: configuration .*-ojson does not exist \[config\.missing\]\n/);
  });
});

it('a mistyped command line has a code and a hint without JSON output, too', async () => {
  expect((await run('vlidate')).stderr).toBe(
    'error: unknown command \'vlidate\' [usage.unknown-command]\n  hint: did you mean "validate"?\n',
  );
  const { exitCode, stderr } = await run();
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('Usage: sealift')]);
});

describe('an option of earlier versions', () => {
  it.each([
    ['build'],
    ['build', 'upgrade-iso'],
    ['build', 'installation-iso'],
    ['plan'],
    ['plan', 'upgrade-iso'],
    ['plan', 'installation-iso'],
    ['lock', 'upgrade-iso'],
    ['reproduce', 'x.iso'],
  ])('is refused by name: %s %s --cache oci://REGISTRY/REPOSITORY', async (...words) => {
    const outcome = await run(...words, '--cache', 'oci://me@q.example/fleet/blobs', '-o', 'json');
    expect(outcome).toMatchObject({ exitCode: 2, stdout: '' });
    expect(JSON.parse(outcome.stderr)).toMatchObject({
      code: 'usage.cache',
      message: '--cache is "oci://q.example/fleet/blobs"',
      expected: 'a folder',
      found: 'oci://q.example/fleet/blobs',
      hint: 'name a folder on a shared volume, or configure a pull-through registry as a mirror',
    });
  });

  it.each([
    ['build'],
    ['build', 'upgrade-iso'],
    ['build', 'installation-iso'],
    ['lock'],
    ['lock', 'upgrade-iso'],
    ['reproduce', 'x.iso'],
  ])('is refused by name: %s %s --lock-key', async (...words) => {
    for (const key of [['--lock-key', 'env:SECRET'], ['--lock-key=file:key']]) {
      const outcome = await run(...words, ...key, '-o', 'json');
      expect(outcome).toMatchObject({ exitCode: 2, stdout: '' });
      expect(JSON.parse(outcome.stderr)).toMatchObject({
        code: 'usage.lock-key',
        message: '--lock-key was removed: a lock has no secrets',
        hint: 'leave it out, and keep sealift.lock.secrets in the secret store of your CI',
      });
    }
  });
});

describe('a missing input', () => {
  it.each([
    ['validate', 'absent.yaml'],
    ['validate', 'a'.repeat(300)],
    ['validate', 'a/'.repeat(2100)],
    ['plan', 'absent.yaml'],
    ['plan', 'live-iso', 'absent.yaml'],
    ['plan', 'installation-iso', 'absent.yaml'],
    ['build', 'absent.yaml'],
    ['build', 'live-iso', 'absent.yaml'],
    ['build', 'installation-iso', 'absent.yaml', '--base-iso', 'absent.iso'],
    ['build', 'installation-iso', '--base-iso', 'a.iso', '--ca-bundle', 'absent.pem'],
    ['why', 'sha256:1', 'absent.yaml'],
    ['resources', 'absent.yaml'],
    ['import', 'imageset', 'absent.yaml'],
    ['catalog', 'list', 'file:absent'],
    ['catalog', 'list', 'oci:absent'],
    ['catalog', 'show', 'file:absent'],
    ['catalog', 'show', 'quay.io/a/b:1', '--config', 'absent.yaml'],
    ['config-iso', 'validate', 'absent'],
    ['config-iso', 'validate', 'absent.csv', '--template', 'absent'],
    ['config-iso', 'build', 'absent'],
    ['config-iso', 'show', 'absent.iso'],
    ['config-iso', 'diff', 'absent.iso', 'absent.iso'],
    ['inspect', 'absent.iso'],
    ['ls', 'absent.iso'],
    ['cat', 'absent.iso', '/a'],
    ['ignition', 'show', 'absent.iso'],
    ['verify', 'absent.iso'],
    ['registry', 'serve', 'absent.iso'],
    ['registry', 'serve', 'a.iso', '--tls-cert', 'absent.pem', '--tls-key', 'absent.pem'],
  ])('ends the command with 3: %s %s %s', async (...args) => {
    const { exitCode, stderr } = await run(...args);
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/^error: .*\]$/m)]);
  });
});

describe('sealift build and plan', () => {
  it.each([
    ['live-isos', 'live-iso'],
    ['installation-isos', 'installation-iso'],
    ['instalation-iso', 'installation-iso'],
    ['config-iso', 'sealift config-iso build'],
  ])('take %s for a mistyped product, not for a configuration', async (word, meant) => {
    for (const command of ['build', 'plan']) {
      const { exitCode, stderr } = await run(command, word);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`did you mean "${meant}"?`)]);
      expect(stderr).toContain('[usage.product]');
    }
  });
});

it.each([
  ['0', 2],
  ['1', 3],
  ['256', 3],
  ['257', 2],
  ['1e2', 2],
])('--concurrency has the range of build.concurrency: %s', async (value, exitCode) => {
  expect(await run('plan', 'absent.yaml', '--concurrency', value)).toMatchObject({ exitCode });
});

it('every command on every level has help with an example', () => {
  const list = (command: Command): readonly Command[] => [
    command,
    ...command.commands.flatMap((child) => list(child)),
  ];
  const bare = list(createProgram(createHost())).filter((command) => {
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) });
    command.outputHelp();
    return !/\nExamples?:\n {2}\$ sealift /.test(help);
  });
  expect(bare.map((command) => command.name())).toEqual([]);
});
