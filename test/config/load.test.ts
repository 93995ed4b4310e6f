import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ApplianceConfig } from '../../src/config/appliance-config.ts';
import { checkConfig, loadConfig } from '../../src/config/load.ts';
import { ConfigProblems, formatProblem } from '../../src/base/errors.ts';
import { inputOf } from '../support/config-input.ts';
import { TEST_CERTIFICATE } from '../support/installation-iso.ts';

const PULL_SECRET = '{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIy"}}}';
const HEAD = `apiVersion: v1beta1\nocpRelease: {version: "4.21"}\npullSecret: '${PULL_SECRET}'\n`;
const KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh core@example.com';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-config-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function load(text: string, env: NodeJS.ProcessEnv = {}): Promise<ApplianceConfig> {
  const path = join(directory, 'appliance-config.yaml');
  await writeFile(path, text);
  return loadConfig(inputOf(text, path), { env });
}

function check(text: string): readonly string[] {
  const path = join(directory, 'appliance-config.yaml');
  const { problems } = checkConfig(inputOf(text, path, 'a.yaml'), { env: {} });
  return problems.map(
    ({ line, column, path: place, problem }) => `${line}:${column}: ${place}: ${problem}`,
  );
}

const EXAMPLES = '../shared/data/ove-config';
const examples = existsSync(EXAMPLES) ? readdirSync(EXAMPLES) : [];

describe.skipIf(examples.length === 0)('the published configurations of OVE', () => {
  test.each(examples)('%s loads unchanged with a release and a pull secret added', async (name) => {
    const text = readFileSync(join(EXAMPLES, name), 'utf8');
    const config = await load(
      `${text}\nocpRelease:\n  version: 4.21.3\npullSecret: '${PULL_SECRET}'\n`,
    );
    expect(config.enableInteractiveFlow).toBe(true);
    expect(config.imageRegistry).toEqual({ uri: '', port: 5005, useBinary: true });
    expect(config.diskSizeGB).toBe(200);
    expect(config.operators[0]?.packages[0]?.channels[0]?.name).toBe('stable');
  });
});

describe('an absent setting gets its default', () => {
  test('the architecture is left to the payload if the release is given by reference', async () => {
    const ofRelease = async (more: string, rest = ''): Promise<ApplianceConfig['ocpRelease']> => {
      const text = `apiVersion: v1beta1\nocpRelease: {version: "4.21"${more}}\n${rest}`;
      return (await load(`${text}pullSecret: '${PULL_SECRET}'\n`)).ocpRelease;
    };
    expect(await ofRelease(', url: q.io/r:1')).not.toHaveProperty('cpuArchitecture');
    expect(await ofRelease('', 'mirrorPath: .\n')).not.toHaveProperty('cpuArchitecture');
    expect(await ofRelease(', url: ""')).toMatchObject({ cpuArchitecture: 'x86_64' });
    const named = await ofRelease(', url: q.io/r:1, cpuArchitecture: aarch64');
    expect(named).toMatchObject({ cpuArchitecture: 'aarch64' });
  });

  test('a minimal configuration is complete after loading', async () => {
    const config = await load(HEAD);
    expect(config.ocpRelease).toEqual({
      version: '4.21',
      channel: 'stable',
      cpuArchitecture: 'x86_64',
    });
    expect(config.build).toEqual({
      concurrency: 8,
      ignition: 'installer',
      registryData: 'copy',
      kernelArguments: [],
      insecureRegistries: [],
      allArchitectures: false,
      allowUnsigned: false,
      embed: {},
    });
    expect(config.createPinnedImageSets).toBe(false);
    expect(config.additionalImages).toEqual([]);
  });

  test('a key without a value counts as absent', async () => {
    const config = await load(`${HEAD}sshKey:\noperators:\n`);
    expect(config).not.toHaveProperty('sshKey');
    expect(config.operators).toEqual([]);
  });
});

describe('values are used as written', () => {
  test('an unquoted version 4.20 stays 4.20', async () => {
    const config = await load(HEAD.replace('"4.21"', '4.20'));
    expect(config.ocpRelease.version).toBe('4.20');
  });

  test('keys match without regard to case', async () => {
    const config = await load(`${HEAD}diskSizeGb: 200\nENABLEFIPS: true\n`);
    expect(config.diskSizeGB).toBe(200);
    expect(config.enableFips).toBe(true);
  });

  test('the booleans of YAML 1.1 are understood', async () => {
    const config = await load(`${HEAD}enableFips: yes\nstopLocalRegistry: Off\n`);
    expect([config.enableFips, config.stopLocalRegistry]).toEqual([true, false]);
  });

  test('sizes become bytes, and paths absolute', async () => {
    await writeFile(join(directory, 'ca.pem'), TEST_CERTIFICATE);
    const config = await load(
      `${HEAD}build:\n  maxSize: 45GiB\n  retryFor: 1h30m\n  caBundle: ca.pem\n`,
    );
    expect(config.build.maxSize).toBe(45 * 2 ** 30);
    expect(config.build.retryFor).toBe(5_400_000);
    expect(config.build.caBundle).toBe(join(directory, 'ca.pem'));
  });
});

describe('blocked images', () => {
  const checkPattern = (pattern: string) => {
    const text = `${HEAD}blockedImages: [{name: ${JSON.stringify(pattern)}}]\n`;
    return checkConfig(inputOf(text, join(directory, 'a.yaml')), { env: {} }).problems;
  };

  test.each(['(?i)MUST-gather', '[[:alnum:]]+-tools', String.raw`\A\Qquay.io/\E.*\z`])(
    'accept %j, as Go does',
    (pattern) => {
      expect(checkPattern(pattern)).toEqual([]);
    },
  );

  test.each([
    ['must-(?!gather)', '"(?!" at character 6'],
    [String.raw`(a)\1`, String.raw`"\1" at character 4`],
    ['(?<=quay)', '"(?<=quay)" at character 1'],
  ])('refuse %j, as Go does', (pattern, place) => {
    expect(checkPattern(pattern)).toMatchObject([
      { path: 'blockedImages[0].name', problem: expect.stringContaining(place) as string },
    ]);
  });
});

describe('secrets', () => {
  test('are read from files next to the configuration and from the environment', async () => {
    await mkdir(join(directory, 'secrets'));
    await writeFile(join(directory, 'secrets/pull.json'), `${PULL_SECRET}\n`);
    await writeFile(join(directory, 'key.pub'), `${KEY}\n`);
    const text = HEAD.replace(`'${PULL_SECRET}'`, 'file:secrets/pull.json');
    const config = await load(`${text}sshKey: file:key.pub\nuserCorePass: env:PASS\n`, {
      PASS: 'hunter2',
    });
    expect(config.pullSecret?.reveal()).toBe(PULL_SECRET);
    expect(config.sshKey).toBe(KEY);
    expect(config.userCorePass?.reveal()).toBe('hunter2');
  });

  test('are not shown by any way of printing a configuration', async () => {
    const config = await load(
      `${HEAD}userCorePass: hunter2\nbuild: {embed: {pullSecret: '${PULL_SECRET}'}}\n`,
    );
    const printed = [
      JSON.stringify(config),
      inspect(config, { depth: 9 }),
      String(config.pullSecret),
    ];
    expect(printed.join()).not.toMatch(/hunter2|dXNlcjpodW50ZXIy/);
  });

  test('stop loading if they are absent, and are a note when validating', async () => {
    const text = HEAD.replace(`'${PULL_SECRET}'`, 'file:absent.json');
    await expect(load(text)).rejects.toBeInstanceOf(ConfigProblems);
    const { problems, notes } = checkConfig(inputOf(text, join(directory, 'a.yaml')), { env: {} });
    expect(problems).toEqual([]);
    expect(notes[0]?.problem).toContain('there is no file');
  });

  test.each([
    ["'{'", 'is not JSON'],
    ["'[]'", 'must be a JSON object'],
    ["'{}'", 'must have at least one entry in "auths"'],
    [`'{"auths":{"q.io":{}}}'`, 'entry "q.io" has neither "auth" nor "credsStore"'],
  ])('a pull secret %s %s', (value, problem) => {
    expect(check(HEAD.replace(`'${PULL_SECRET}'`, value))).toEqual([
      `3:13: pullSecret: ${problem}`,
    ]);
  });

  test.each([
    ['ssh-ed25519', 'has no base64 text after "ssh-ed25519"'],
    [
      'ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAA',
      'says "ssh-rsa", but its base64 text contains another key type',
    ],
    [
      'AAAAC3NzaC1lZDI1NTE5AAAA',
      'has no key type such as ssh-rsa, ssh-dss, ssh-ed25519, ecdsa-sha2-nistp256, ...',
    ],
    ['-----BEGIN OPENSSH PRIVATE KEY-----', 'is a private key; give the public key'],
  ])('an SSH key "%s" %s', (value, problem) => {
    expect(check(`${HEAD}sshKey: "${value}"\n`)).toEqual([`4:9: sshKey: ${problem}`]);
  });

  test('an SSH key may have options before its type', () => {
    expect(check(`${HEAD}sshKey: 'command="echo \\"hi there\\"" ${KEY}'\n`)).toEqual([]);
  });
});

describe('problems', () => {
  test('come all at once, in the order of the file, with their places', () => {
    const text = [
      'apiVersion: v1',
      'ocpRelease:',
      '  version: 4.2',
      '  channel: slow',
      'diskSizeGB: 100',
      'imageRegistry:',
      '  port: 80',
      'additionalImages:',
      '  - name: quay.io/a/b:1',
      '  - name: quay.io/a/b:1',
      '  - name: ubuntu',
      'enableFips: 1',
    ];
    expect(check(text.join('\n'))).toEqual([
      '1:1: pullSecret: is required',
      '1:13: apiVersion: must be "v1beta1", but is "v1"',
      '3:12: ocpRelease.version: must be at least 4.14, but is "4.2"',
      '4:12: ocpRelease.channel: must be one of "stable", "fast", "candidate", "eus", but is "slow"',
      '5:13: diskSizeGB: must be at least 150, but is 100',
      '7:9: imageRegistry.port: must be between 1024 and 65535, but is 80',
      '10:11: additionalImages[1].name: "quay.io/a/b:1" already appears at additionalImages[0].name',
      '11:11: additionalImages[2].name: "ubuntu" names no registry: write it in full, as in registry.example.com/team/app',
      '12:13: enableFips: must be true or false, but is "1"',
    ]);
  });

  test('are shown with their line, a caret and a hint', () => {
    const { problems } = checkConfig(inputOf(`${HEAD}enableFipz: true\n`, 'a.yaml'), { env: {} });
    expect(problems.map(formatProblem)).toEqual([
      'a.yaml:4:1: enableFipz: no such key\n  4 | enableFipz:\n    | ^\n  hint: did you mean "enableFips"?',
    ]);
  });

  test('say where a key at the wrong level belongs', () => {
    const { problems } = checkConfig(inputOf(`${HEAD}channel: fast\n`, 'a.yaml'), { env: {} });
    expect(problems[0]?.hint).toBe('"channel" belongs at ocpRelease.channel');
  });

  test('a key that is written twice names the first line, even in another case', () => {
    expect(check(`${HEAD}diskSizeGB: 200\ndiskSizeGb: 300\n`)).toEqual([
      '5:1: diskSizeGB: is written twice, first in line 4',
    ]);
  });

  test('an unquoted version that is too old mentions the quotes', () => {
    const { problems } = checkConfig(inputOf(HEAD.replace('"4.21"', '4.2'), 'a.yaml'), { env: {} });
    expect(problems[0]?.hint).toContain('quotes');
  });

  test('a pre-release of 4.14 is below 4.14', () => {
    expect(check(HEAD.replace('4.21', '4.14.0-rc.0'))).toHaveLength(1);
    expect(check(HEAD.replace('4.21', '4.14.0'))).toHaveLength(0);
  });

  test('a release newer than 4.22 is a note', () => {
    const text = HEAD.replace('4.21', '5.0.0-ec.1');
    const { problems, notes } = checkConfig(inputOf(text, 'a.yaml'), { env: {} });
    expect(problems).toEqual([]);
    expect(notes[0]?.problem).toContain('newer than 4.22');
  });

  test('PinnedImageSets need 4.16', () => {
    expect(check(`${HEAD.replace('4.21', '4.15')}createPinnedImageSets: true\n`)).toEqual([
      '4:24: createPinnedImageSets: needs release 4.16 or newer, but ocpRelease.version is "4.15"',
    ]);
  });

  test('a base ISO by URL needs its digest and https', () => {
    expect(check(`${HEAD}build: {baseIso: "https://example.com/a.iso"}\n`)).toHaveLength(1);
    expect(check(`${HEAD}build: {baseIso: "http://example.com/a.iso"}\n`)).toHaveLength(1);
  });

  test('files that the build needs must exist', () => {
    expect(check(`${HEAD}mirrorPath: m\nbuild: {installer: i}\n`)).toEqual([
      `4:13: mirrorPath: ${directory}/m does not exist`,
      `5:20: build.installer: ${directory}/i does not exist`,
    ]);
  });

  test('catalogs follow the rules of an image set', () => {
    const packages = '{name: p, minVersion: "1", channels: [{name: c, maxVersion: x}, {name: c}]}';
    expect(check(`${HEAD}operators: [{catalog: q.io/c:1, packages: [${packages}]}]\n`)).toEqual([
      expect.stringContaining('give them in one place only'),
      expect.stringContaining('"x" is not a valid version'),
      expect.stringContaining('"c" already appears'),
    ]);
  });

  test('minBundle excludes versions, versions of a channel, and full', () => {
    const checkPackage = (text: string, more = ''): readonly string[] =>
      check(`${HEAD}operators: [{catalog: q.io/c:1, packages: [{name: p, ${text}}]${more}}]\n`);
    expect(checkPackage('minBundle: p.v1')).toEqual([]);
    expect(checkPackage('channels: [{name: c, minBundle: p.v1}]')).toEqual([]);
    expect(checkPackage('minBundle: p.v1, maxVersion: 2.0.0')).toEqual([
      expect.stringContaining('minBundle: is given together with a range of versions'),
    ]);
    expect(checkPackage('minBundle: p.v1, channels: [{name: c, minBundle: p.v2}]')).toEqual([
      expect.stringContaining('give them in one place only'),
    ]);
    expect(checkPackage('minBundle: p.v1', ', full: true')).toEqual([
      expect.stringContaining('has versions, but "full" of its catalog keeps every version'),
    ]);
  });
});

describe('a setting that openshift/appliance and oc-mirror take in several forms is taken so', () => {
  test('images may begin with docker://, and registries without signatures be images', async () => {
    const config = await load(
      `${HEAD}additionalImages: [{name: "docker://q.io/a/b:1"}]
operators: [{catalog: "docker://q.io/a/index:v1"}]
disableSigstoreRegistries: [q.io, "docker://r.io:5000/a/b:1", " s.io "]
`,
    );
    expect(config.additionalImages).toEqual([{ name: 'q.io/a/b:1' }]);
    expect(config.operators[0]?.catalog).toBe('q.io/a/index:v1');
    expect(config.disableSigstoreRegistries).toEqual(['q.io', 'r.io:5000', 's.io']);
    expect(check(`${HEAD}disableSigstoreRegistries: [invalid/host/extra]\n`)).toHaveLength(1);
  });

  test('sshKey may have several keys', async () => {
    const config = await load(`${HEAD}sshKey: |\n  ${KEY}\n  ${KEY.replace('core', 'admin')}\n`);
    expect(config.sshKey?.split('\n')).toHaveLength(2);
    expect(check(`${HEAD}sshKey: |\n  ${KEY}\n  ssh-rsa x\n`)).toHaveLength(1);
  });
});
