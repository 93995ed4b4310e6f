import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import type { DocumentProblem } from '../../src/base/errors.ts';
import type { ApplianceConfig } from '../../src/config/appliance-config.ts';
import {
  checkConfig,
  loadConfig,
  readConfigFiles,
  type ConfigInput,
} from '../../src/config/load.ts';
import { runLine } from '../support/run-line.ts';
import { TEST_CERTIFICATE } from '../support/installation-iso.ts';

const redaction = createRedaction();

const PULL_SECRET = '{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIy"}}}';
const BASE = `apiVersion: v1beta1
kind: ApplianceConfig
ocpRelease:
  version: "4.21"
  channel: fast
pullSecret: env:PULL
operators:
  - catalog: registry.example.com/index:v4.21
    packages:
      - name: a
      - name: b
build:
  concurrency: 4
  maxSize: 45GiB
`;
const ENV = { PULL: PULL_SECRET };

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-overlays-'));
});
afterEach(() => rm(directory, { recursive: true }));

type Files = Readonly<Record<string, string>>;

async function read(files: Files, set: readonly string[] = []): Promise<ConfigInput> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  const [first = '', ...overlays] = Object.keys(files);
  return readConfigFiles([first, ...overlays], { set }, { cwd: directory, redaction });
}

const load = async (files: Files, set: readonly string[] = []): Promise<ApplianceConfig> =>
  loadConfig(await read(files, set), { env: ENV });

const problemsOf = async (
  files: Files,
  set: readonly string[] = [],
): Promise<readonly DocumentProblem[]> =>
  checkConfig(await read(files, set), { env: ENV }).problems;

const check = async (files: Files, set: readonly string[] = []): Promise<readonly string[]> =>
  (await problemsOf(files, set)).map(
    ({ file, line, column, path, problem }) => `${file}:${line}:${column}: ${path}: ${problem}`,
  );

describe('an overlay', () => {
  test('merges mappings by key and leaves other keys unchanged', async () => {
    const config = await load({
      'base.yaml': BASE,
      'a.yaml': 'OCPRelease: {version: 4.20.3}\nbuild: {concurrency: 8}\n',
      'b.yaml': 'build: {allowUnsigned: true}\n',
    });
    expect(config.ocpRelease).toMatchObject({ version: '4.20.3', channel: 'fast' });
    expect(config.build).toMatchObject({ concurrency: 8, maxSize: 45 * 2 ** 30 });
    expect(config.build.allowUnsigned).toBe(true);
  });

  test('replaces lists as a whole', async () => {
    const { operators } = await load({
      'base.yaml': BASE,
      'a.yaml': 'operators: [{catalog: registry.example.com/other:v1}]\n',
    });
    expect(operators.map(({ catalog, packages }) => [catalog, packages.length])).toEqual([
      ['registry.example.com/other:v1', 0],
    ]);
  });

  test('removes keys of earlier files with null, and later files may write them again', async () => {
    const files = { 'base.yaml': BASE, 'a.yaml': 'build: null\nocpRelease: {channel: ~}\n' };
    const removed = await load(files);
    expect(removed.build.concurrency).toBe(8);
    expect(removed.ocpRelease.channel).toBe('stable');
    const again = await load({ ...files, 'b.yaml': 'build: {maxSize: 1GiB}\n' });
    expect(again.build).toMatchObject({ maxSize: 2 ** 30 });
    expect(again.build.concurrency).toBe(8);
  });

  test('changes nothing if it has only comments', async () => {
    const files = { 'base.yaml': BASE, 'a.yaml': '# nothing yet\n', 'b.yaml': '' };
    expect(await load(files)).toEqual(await load({ 'base.yaml': BASE }));
  });

  test('may correct a mistake in an earlier file', async () => {
    const base = BASE.replace('concurrency: 4', 'concurrency: many');
    expect(await check({ 'base.yaml': base })).toHaveLength(1);
    expect(await check({ 'base.yaml': base, 'a.yaml': 'build: {concurrency: 2}\n' })).toEqual([]);
  });

  test('may repeat the kind, but not change it', async () => {
    const kind = 'apiVersion: v1beta1\nkind: ApplianceConfig\n';
    expect(await check({ 'base.yaml': BASE, 'a.yaml': kind })).toEqual([]);
    expect(await check({ 'base.yaml': BASE, 'a.yaml': '\nkind: Other\n' })).toEqual([
      'a.yaml:2:7: kind: is "Other", but "ApplianceConfig" in base.yaml',
    ]);
  });
});

describe('a problem names the place of its value', () => {
  test.each<[what: string, overlay: string, problem: string]>([
    ['in an overlay', '# x\nbuild:\n  concurrency: 0\n', 'a.yaml:3:16: build.concurrency: must be'],
    ['in a list of an overlay', 'operators:\n  - name: x\n', 'a.yaml:2:5: operators[0].name: no'],
    [
      'removed by an overlay',
      'ocpRelease:\n  version: null\n',
      'a.yaml:2:3: ocpRelease.version: is',
    ],
    ['under an unknown key', 'builds: {}\n', 'a.yaml:1:1: builds: no such key'],
    ['under a key with dots', 'x: 1\na.b: 1\n', 'a.yaml:2:1: a.b: no such key'],
    ['of another type', 'ocpRelease: 4.20\n', 'a.yaml:1:13: ocpRelease: must be a mapping'],
    ['a whole list', '- a\n', 'a.yaml:1:1: : must be a mapping'],
    ['of broken YAML', 'build: [\n', 'a.yaml:2:1: : not valid YAML'],
  ])('%s', async (_what, overlay, problem) => {
    const found = await check({ 'base.yaml': BASE, 'a.yaml': overlay });
    expect(found.map((text) => text.slice(0, problem.length))).toContain(problem);
  });

  test('in the first file, regardless of what overlays add to the same mapping', async () => {
    const base = BASE.replace('version: "4.21"', 'version: "4.2"');
    expect(await check({ 'base.yaml': base, 'a.yaml': 'ocpRelease: {channel: eus}\n' })).toEqual([
      'base.yaml:4:12: ocpRelease.version: must be at least 4.14, but is "4.2"',
    ]);
  });

  test('file by file, in the order of the command line', async () => {
    const found = await check({
      'base.yaml': BASE.replace('kind', 'kindd'),
      'a.yaml': 'b: 1\n',
      'A.yaml': 'c: 1\n',
    });
    expect(found.map((text) => text.split(':')[0])).toEqual(['base.yaml', 'a.yaml', 'A.yaml']);
  });
});

test('relative paths start at the folder of their file, and those of --set at the working directory', async () => {
  const files = {
    'base/c.yaml': `${BASE.replace('env:PULL', 'file:pull.json')}  caBundle: ca.pem\n`,
    'ci/a.yaml': 'build: {nmstate: net.yaml}\n',
  };
  for (const path of ['base/pull.json', 'base/ca.pem', 'ci/net.yaml', 'installer']) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), path.endsWith('.pem') ? TEST_CERTIFICATE : PULL_SECRET);
  }
  const { build } = await load(files, ['build.installer=installer']);
  expect([build.caBundle, build.nmstate, build.installer]).toEqual(
    ['base/ca.pem', 'ci/net.yaml', 'installer'].map((path) => join(directory, path)),
  );
});

describe('--set', () => {
  test('is laid over all files, in the order of the command line', async () => {
    const config = await load({ 'base.yaml': BASE }, [
      'ocprelease.VERSION=4.20',
      'build.concurrency=1',
      'build.concurrency=2',
      'operators[0].packages[1].name=c',
      'operators[0].packages[2]={name: d, channels: [{name: stable}]}',
      'additionalImages=[{name: registry.example.com/x:1}]',
      'build.maxSize=null',
      'imageRegistry.useBinary=yes',
    ]);
    expect(config.ocpRelease.version).toBe('4.20');
    expect(config.build.concurrency).toBe(2);
    expect(config.build.maxSize).toBeUndefined();
    expect(config.imageRegistry.useBinary).toBe(true);
    expect(config.additionalImages).toEqual([{ name: 'registry.example.com/x:1' }]);
    expect(config.operators[0]?.packages.map(({ name }) => name)).toEqual(['a', 'c', 'd']);
  });

  test.each<[set: string, problem: string]>([
    [
      'ocpRelease.version=4.9',
      '--set ocpRelease.version:1:20: ocpRelease.version: must be at least',
    ],
    ['build.concurrency=0', '--set build.concurrency:1:19: build.concurrency: must be between'],
    ['build.concurency=2', '--set build.concurency:1:18: build.concurency: no such key'],
    [
      'operators[3].full=true',
      '--set operators[3].full:1:19: operators[3].full: [3] is past the end of the list',
    ],
    ['operators[0]=null', '--set operators[0]:1:14: operators[0]: null cannot remove an item'],
    ['operators.full=true', '--set operators.full:1:16: operators.full: no such key'],
    ['build[0]=1', '--set build[0]:1:10: build[0]: no such key'],
    [
      'build.kernelArguments=[',
      '--set build.kernelArguments:1:24: build.kernelArguments: not valid',
    ],
    [
      'sshKey=ssh-rsa AAAA me #1',
      '--set sshKey:1:8: sshKey: the text after " #" would be a comment',
    ],
    ['__proto__.polluted=1', '--set __proto__.polluted:1:20: __proto__: no such key'],
    ['constructor.prototype=1', '--set constructor.prototype:1:23: constructor: no such key'],
    ['build.__proto__={a: 1}', '--set build.__proto__:1:17: build.__proto__: no such key'],
  ])('%s is refused with its place', async (set, problem) => {
    const found = await check({ 'base.yaml': BASE }, [set]);
    expect(found.map((text) => text.slice(0, problem.length))).toContain(problem);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });

  test.each(['', '=', '=1', 'a', 'a b=1', 'a.=1', 'a[=1', 'a[-1]=1', 'a=', 'a= '])(
    'a text that is not PATH=VALUE is an error of the command line: "%s"',
    async (set) => {
      await expect(load({ 'base.yaml': BASE }, [set])).rejects.toMatchObject({
        code: 'usage.set',
        exitCode: 2,
      });
    },
  );

  test('accepts secrets only by reference, and shows none', async () => {
    const secret = '{"auths":{"quay.io":{"auth":"c2V0OnNlY3JldHRleHQ="}}}';
    const inline = [
      `pullSecret=${JSON.stringify(secret)}`,
      `build.embed={pullSecret: ${JSON.stringify(secret)}}`,
      'userCorePass=hunter-in-the-dark',
    ];
    const problems = await problemsOf({ 'base.yaml': BASE }, inline);
    const shown = JSON.stringify(problems);
    expect(problems.map(({ path }) => path)).toEqual([
      ...['pullSecret', 'build.embed.pullSecret', 'userCorePass'],
    ]);
    expect(problems.every(({ hint }) => hint === 'write env:NAME or file:PATH')).toBe(true);
    expect(shown).not.toMatch(/c2V0O|hunter-in/);
    expect(redaction.mask('hunter-in-the-dark, c2V0OnNlY3JldHRleHQ=')).toBe(
      '[redacted], [redacted]',
    );
    const config = await load({ 'base.yaml': BASE }, ['userCorePass=env:PULL']);
    expect(config.userCorePass?.reveal()).toBe(PULL_SECRET);
  });

  test('a misspelt secret is not shown', async () => {
    const problems = await problemsOf({ 'base.yaml': BASE }, ['pulSecret=hunter2hunter2']);
    expect(JSON.stringify(problems)).not.toContain('hunter2');
    expect(problems[0]?.hint).toBe('did you mean "pullSecret"?');
  });
});

describe('hostile overlays', () => {
  test('a thousand overlays are merged', async () => {
    const overlays = Array.from({ length: 1000 }, (_, index) => [
      `${index}.yaml`,
      `build: {concurrency: ${(index % 256) + 1}}\n`,
    ]);
    const config = await load({ 'base.yaml': BASE, ...(Object.fromEntries(overlays) as Files) });
    expect(config.build.concurrency).toBe((999 % 256) + 1);
  });

  test('the limit on values counts all files and settings together', async () => {
    const bomb = `metadata: [&a [${'x,'.repeat(50)}], ${'*a,'.repeat(50)}]\n`;
    const files = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`${index}.yaml`, bomb] as const),
    );
    const first = await check({ 'base.yaml': BASE, '0.yaml': bomb });
    expect(first.join()).not.toContain('unfolds');
    const found = await check({ 'base.yaml': BASE, ...files });
    expect(found.filter((text) => text.includes('expands to more than 20000 values'))).toHaveLength(
      1,
    );
    const settings = Array.from({ length: 20 }, () => bomb.trim().replace(': ', '='));
    expect((await check({ 'base.yaml': BASE }, settings)).join()).toContain('expands to more than');
  });

  test('the limit on text counts all files together', async () => {
    const files = { 'base.yaml': BASE, 'a.yaml': `#${'x'.repeat(3 << 20)}\n` };
    await read(files);
    await expect(read({ ...files, 'b.yaml': files['a.yaml'] })).rejects.toMatchObject({
      code: 'config.too-large',
    });
  });

  test('a key called __proto__ is a key like any other, in each of the files', async () => {
    const overlay = '__proto__: {polluted: true}\nmetadata: {__proto__: {polluted: true}}\n';
    expect(await check({ 'base.yaml': BASE, 'a.yaml': overlay })).toEqual([
      'a.yaml:1:1: __proto__: no such key',
    ]);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});

const TEMPLATES = '../shared/data/ove-config';
const templates = existsSync(TEMPLATES) ? readdirSync(TEMPLATES) : [];

describe.skipIf(templates.length === 0)('the templates of OVE', () => {
  test.each(templates)(
    '%s needs no text processing for the settings that a pipeline adds',
    async (name) => {
      const files = {
        [name]: readFileSync(join(TEMPLATES, name), 'utf8'),
        'pipeline.yaml': [
          'pullSecret: env:PULL',
          'ocpRelease: {channel: candidate, cpuArchitecture: x86_64}',
          'mirrorPath: mirror',
        ].join('\n'),
      };
      await mkdir(join(directory, 'mirror'));
      const set = [
        'ocpRelease.version=4.22.0-ec.3',
        'sshKey=ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh ci',
        'mirrorPath=null',
        'ocpRelease.url=registry.ci.openshift.org/ocp/release:4.22.0-ec.3',
      ];
      const config = await load(files, set);
      const text = [
        files[name],
        'ocpRelease:',
        '  version: 4.22.0-ec.3',
        '  channel: candidate',
        '  cpuArchitecture: x86_64',
        '  url: registry.ci.openshift.org/ocp/release:4.22.0-ec.3',
        'pullSecret: env:PULL',
        (set[1] ?? '').replace('=', ': '),
        '',
      ].join('\n');
      expect(config).toEqual(await load({ 'appended.yaml': text }));
      expect(config.operators[0]?.packages.length).toBeGreaterThan(5);
    },
  );
});

describe('on the command line', () => {
  const run = (...args: readonly string[]): ReturnType<typeof runLine> =>
    runLine(args, { cwd: directory, env: ENV });

  test('validate takes several files and --set, and names the file of each problem', async () => {
    await read({ 'base.yaml': BASE, 'nightly.yaml': 'build: {concurrency: 999}\n' });
    const wrong = await run(
      'validate',
      'base.yaml',
      'nightly.yaml',
      '--set',
      'ocpRelease.version=3',
    );
    expect(wrong.exitCode).toBe(3);
    expect(wrong.stderr).toContain('nightly.yaml:1:22: build.concurrency: must be between');
    expect(wrong.stderr).toContain('--set ocpRelease.version:1:20: ocpRelease.version: must be');
    expect(wrong.stderr).toContain('error: base.yaml with 1 overlay and --set has 2 problems');
    const right = await run(
      'validate',
      'base.yaml',
      'nightly.yaml',
      '--set',
      'build.concurrency=9',
    );
    expect([right.exitCode, right.stdout]).toEqual([
      0,
      'base.yaml with 1 overlay and --set is valid\n',
    ]);
  });

  test('the configuration of an installation ISO is one file', async () => {
    await read({ 'a.yaml': 'kind: ImageBasedInstallationConfig\n', 'b.yaml': '' });
    for (const command of ['validate', 'plan']) {
      const { stderr, exitCode } = await run(command, 'a.yaml', 'b.yaml');
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.overlays]')]);
    }
  });

  test('every command that takes the configuration of an appliance takes overlays', async () => {
    await read({ 'base.yaml': BASE, 'a.yaml': 'builds: 1\n' });
    const commands = [
      ['build'],
      ['build', 'live-iso'],
      ['build', 'upgrade-iso'],
      ['plan'],
      ['plan', 'live-iso'],
      ['plan', 'upgrade-iso'],
      ['why', 'sha256:00'],
      ['resources'],
      ['validate'],
    ];
    const files = ['base.yaml', 'a.yaml', '--set', 'builds=1'];
    for (const args of [
      ...commands.map((command) => [...command, ...files]),
      ['catalog', 'show', '--config', 'base.yaml', '--config', 'a.yaml', '--set', 'builds=1'],
    ]) {
      const { stderr, exitCode } = await run(...args);
      expect([args, exitCode]).toEqual([args, 3]);
      expect(stderr).toContain('a.yaml:1:1: builds: no such key');
      expect(stderr).toContain('--set builds:1:8: builds: no such key');
    }
  });
});
