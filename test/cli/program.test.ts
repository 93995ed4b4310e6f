import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { InterruptedError } from '../../src/base/errors.ts';
import { runProcess } from '../../src/base/process.ts';
import type { CliHost } from '../../src/cli/host.ts';
import { createProgram, runProgram } from '../../src/cli/program.ts';
import { requireTool } from '../support/tools.ts';

const redaction = createRedaction();

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-cli-'));
});
afterEach(() => rm(directory, { recursive: true }));

const collect = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? '';

type Captured = CliHost & { readonly stdout: PassThrough; readonly stderr: PassThrough };

function createHost(signal = new AbortController().signal): Captured {
  // Room for all that a command says, which is read when it has ended.
  const room = { highWaterMark: 1 << 20 };
  const streams = { stdout: new PassThrough(room), stderr: new PassThrough(room) };
  return { ...streams, env: {}, cwd: directory, redaction, isTTY: false, signal, now: () => 0 };
}

async function run(
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const host = createHost();
  const code = await runProgram(args, host);
  const stdout = collect(host.stdout);
  return { code, stdout, stderr: collect(host.stderr) };
}

describe('sealift init', () => {
  test('writes a configuration of an installation ISO that lacks only its pull secret', async () => {
    expect(await run('init', '--template', 'ibi', 'site')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/next: .*sealift build installation-iso --base-iso/) as string,
    });
    const { code, stderr } = await run(
      ...['build', 'installation-iso', '--base-iso', 'absent.iso'],
      'site/image-based-installation-config.yaml',
    );
    expect(code).toBe(3);
    expect(stderr).toContain('pullSecret: there is no file');
    expect(stderr).toContain('has 1 problem [config.problems]');
  });

  test.each(['ove', 'minimal'])('writes a %s configuration that validates', async (template) => {
    expect(await run('init', '--template', template, 'site')).toMatchObject({ code: 0 });
    expect((await stat(join(directory, 'site/appliance-config.yaml'))).mode & 0o777).toBe(0o600);
    const validated = await run('validate', 'site/appliance-config.yaml');
    expect(validated.stdout).toContain('site/appliance-config.yaml is valid');
    expect(validated.code).toBe(0);
  });

  test('writes a table of sites that is valid once its pull secret is named at the line that init gives', async () => {
    const { code, stdout } = await run('init', '--template', 'sites', 'field');
    expect(code).toBe(0);
    const [, file = '', line = '', command = ''] =
      /name your pull secret in ([^:]*):(\d+), then run: sealift (.*)\n/.exec(stdout) ?? [];
    expect(command).toBe('config-iso validate field/sites.csv --template field/template');
    const refused = await run(...command.split(' '));
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain(
      `${file}:${line}:13: pullSecret: ` +
        '"<your-pull-secret>" is the placeholder of the template',
    );
    const lines = (await readFile(join(directory, file), 'utf8')).split('\n');
    lines[Number(line) - 1] = 'pullSecret: file:../pull-secret.json';
    await writeFile(join(directory, file), lines.join('\n'));
    const secret = '{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}';
    await writeFile(join(directory, 'field/pull-secret.json'), secret);
    expect(await run(...command.split(' '))).toMatchObject({
      code: 0,
      stdout: '2 sites are valid\n',
    });
  });

  test('writes none of several files if one of them exists', async () => {
    await mkdir(join(directory, 'template'));
    await writeFile(join(directory, 'template/install-config.yaml'), 'mine');
    const { code, stderr } = await run('init', '--template', 'sites');
    expect(code).toBe(2);
    expect(stderr).toMatch(/install-config\.yaml" exists .*\[output\.exists\]/);
    expect(await readdir(directory)).toEqual(['template']);
  });

  test('never overwrites a file', async () => {
    await writeFile(join(directory, 'appliance-config.yaml'), 'mine');
    const { code, stderr } = await run('init');
    expect(code).toBe(2);
    expect(stderr).toContain('[output.exists]');
    expect(await readFile(join(directory, 'appliance-config.yaml'), 'utf8')).toBe('mine');
  });
});

describe('sealift validate', () => {
  test('ends with 3 and prints every problem to stderr', async () => {
    await writeFile(join(directory, 'a.yaml'), 'apiVersion: v1\nocpRelease: {version: "4.21"}\n');
    const { code, stderr } = await run('validate', 'a.yaml');
    expect(code).toBe(3);
    expect(stderr).toContain('a.yaml:1:13: apiVersion: must be "v1beta1", but is "v1"');
    expect(stderr).toContain('a.yaml has 2 problems [config.problems]');
  });

  test('prints the problems as data with -o json', async () => {
    await writeFile(
      join(directory, 'a.yaml'),
      'apiVersion: v1beta1\nocpRelease: {version: "4.21"}\n',
    );
    const { code, stdout } = await run('validate', '-o', 'json', 'a.yaml');
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      valid: false,
      problems: [
        { file: 'a.yaml', line: 1, column: 1, path: 'pullSecret', problem: 'is required' },
      ],
    });
  });

  test('notes a secret that this machine does not have, and refuses what no machine can build', async () => {
    const text = `apiVersion: v1beta1\nocpRelease: {version: "4.21"}\npullSecret: env:ABSENT\n`;
    await writeFile(join(directory, 'a.yaml'), text);
    const { code, stdout } = await run('validate', 'a.yaml');
    expect(code).toBe(0);
    expect(stdout).toContain('note: the environment variable ABSENT is not set');
    await writeFile(join(directory, 'b.yaml'), text.replace('}', ', cpuArchitecture: s390x}'));
    const refused = await run('validate', 'b.yaml');
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain('"x86_64", "aarch64", "ppc64le"');
  });

  test('names the file that is missing', async () => {
    const { code, stderr } = await run('validate');
    expect(code).toBe(3);
    expect(stderr).toContain(`configuration ${directory}/appliance-config.yaml does not exist`);
  });
});

describe('the command line', () => {
  test('has help with an example for every command', () => {
    const program = createProgram(createHost());
    for (const command of program.commands.filter(({ commands }) => commands.length === 0)) {
      let help = '';
      command.configureOutput({ writeOut: (text) => (help += text) });
      command.outputHelp();
      expect(help, command.name()).toContain('Example');
    }
  });

  test('ends with 2 on an unknown command, and names the nearest one', async () => {
    const { code, stderr } = await run('vlidate');
    expect(code).toBe(2);
    expect(stderr).toContain('validate');
  });

  test('ends with 0 on --version and --help', async () => {
    expect((await run('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(await run('--help')).toMatchObject({ code: 0, stderr: '' });
  });

  test('prints a failure as one line of JSON with --log-format json', async () => {
    const { code, stderr } = await run('build', '--log-format', 'json', 'absent.yaml');
    expect(JSON.parse(stderr)).toMatchObject({ type: 'error', code: 'config.missing' });
    expect(code).toBe(3);
  });

  test('ends with the code of the signal if a command fails after it', async () => {
    const signal = AbortSignal.abort(new InterruptedError('SIGTERM'));
    expect(await runProgram(['validate', 'absent.yaml'], createHost(signal))).toBe(143);
  });

  test('gives no hint if an interrupted command cannot be continued', async () => {
    const signal = AbortSignal.abort(new InterruptedError('SIGTERM'));
    const host = createHost(signal);
    await runProgram(['inspect', 'absent.iso', '-q'], host);
    expect(collect(host.stderr)).toBe('error: interrupted by SIGTERM [interrupted]\n');
  });
});

describe('sealift completion', () => {
  const complete = async (shell: string): Promise<string> =>
    (await run('completion', shell)).stdout;

  test.skipIf(!requireTool('bash'))('completes commands, options and choices in bash', async () => {
    const script = await complete('bash');
    const ask = async (...words: readonly string[]): Promise<readonly string[]> => {
      const line = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}`;
      const probe = `${script}\n${line}\n_sealift; printf '%s\\n' "\${COMPREPLY[@]}"`;
      return (await runProcess('bash', ['-c', probe])).stdout.split('\n');
    };
    expect(await ask('sealift', 'val')).toEqual(['validate']);
    expect(await ask('sealift', 'completion', '')).toEqual(expect.arrayContaining(['zsh', 'fish']));
    expect(await ask('sealift', 'init', '--template', 'o')).toEqual(['ove']);
    expect(await ask('sealift', 'validate', '--o')).toEqual(['--output-format']);
  });

  test('names every command in the scripts for zsh and fish', async () => {
    const names = createProgram(createHost()).commands.map((command) => command.name());
    for (const script of [await complete('zsh'), await complete('fish')]) {
      for (const name of names) expect(script).toContain(name);
    }
  });

  test('refuses an unknown shell as a usage error', async () => {
    expect(await run('completion', 'tcsh')).toMatchObject({ code: 2 });
  });
});

test.each([
  ['--tls-min-v1.0', /^warning: --tls-min-v1\.0 of NODE_OPTIONS is ignored: TLS 1\.2 and 1\.3/],
  ['--tls_cipher_list="ALL:@SECLEVEL=0"', /^warning: --tls-cipher-list of NODE_OPTIONS is ignored/],
  ['--use-openssl-ca', /^warning: --use-openssl-ca of NODE_OPTIONS is ignored: SSL_CERT_FILE/],
  ['--insecure-http-parser', /^warning: --insecure-http-parser of NODE_OPTIONS is ignored/],
  ['--max-old-space-size=512 --require ./agent.js', /^warning: --require of NODE_OPTIONS loads/],
  ['"--tls-min-v1.0"', /^warning: --tls-min-v1\.0 of NODE_OPTIONS is ignored/],
  [
    '--title="a\\" --require=./b" "--req"uire=./agent.js',
    /^warning: --require of NODE_OPTIONS loads/,
  ],
  ['--title="--require --tls-min-v1.0"', /^$/],
  ['--max-old-space-size=512', /^$/],
])('an option of Node that asks for less is warned of: %s', async (NODE_OPTIONS, told) => {
  const host = { ...createHost(), env: { NODE_OPTIONS } };
  expect(await runProgram(['version'], host)).toBe(0);
  expect(collect(host.stderr)).toMatch(told);
});

test.each([
  '--tls-keylog=/tmp/keys',
  '"--tls-keylog=/tmp/keys"',
  '--tls"-key"log=a',
  '--title=a "--tls\\-keylog" b',
])('the keys of connections are not written to a file: %s', async (NODE_OPTIONS) => {
  const host = { ...createHost(), env: { NODE_OPTIONS } };
  expect(await runProgram(['version', '-o', 'json'], host)).toBe(3);
  expect(collect(host.stderr)).toContain('env.node-options');
});

test.each([
  [[], /^warning: NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored: certificates are always verified/],
  [['-o', 'json'], /^\{"type":"warning","message":"NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored/],
])('the switch of Node for certificates is taken away from a run with %j', async (more, told) => {
  const env: NodeJS.ProcessEnv = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
  const host = { ...createHost(), env };
  expect(await runProgram(['version', ...more], host)).toBe(0);
  expect(env).toEqual({});
  expect(collect(host.stderr)).toMatch(told);
});
