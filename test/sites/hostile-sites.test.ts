import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { formatProblem } from '../../src/base/errors.ts';
import { checkSite } from '../../src/sites/check.ts';
import { runs } from '../support/properties.ts';
import {
  createSiteInput,
  TEST_EPOCH,
  writeImageBasedConfig,
  writeInstallConfig,
} from '../support/site-inputs.ts';

const check = (files: Readonly<Record<string, string>>) =>
  checkSite(createSiteInput(files), { epoch: TEST_EPOCH, redaction: createRedaction() });

const show = (files: Readonly<Record<string, string>>): string => {
  const { problems, warnings } = check(files);
  return [...problems, ...warnings].map(formatProblem).join('\n');
};

const install = (section: string): Readonly<Record<string, string>> => ({
  'install-config.yaml': writeInstallConfig({ pullSecret: '', section }),
});

const imageBased = (section: string): Readonly<Record<string, string>> => ({
  'image-based-config.yaml': writeImageBasedConfig({ section }),
});

describe('a secret is not repeated by the problems of a site:', () => {
  it.each([
    ['a pull secret without quotes', install('pullSecret: {"auths":{"q":{"auth":"hunter2"}}}')],
    ['a pull secret that is not valid JSON', install(`pullSecret: '{"auths": hunter2'`)],
    ['a pull secret in plain text', install('pullSecret: hunter2')],
    ['a pull secret of another form', install(`pullSecret: '{"auths":["hunter2"]}'`)],
    ['credentials under a wrong key', install(`pullSecret: '{"auths":{"q":{"atuh":"hunter2"}}}'`)],
    ['a misspelt key', install(`pullSercet: '{"auths":{"q":{"auth":"hunter2"}}}'`)],
    ['a pull secret given twice', install(`pullSecret: '{}'\npullSecret: hunter2`)],
    [
      'a private key for SSH',
      install('sshKey: |\n  -----BEGIN OPENSSH PRIVATE KEY-----\n  hunter2\n'),
    ],
    [
      'a private key among certificates',
      install(
        'additionalTrustBundle: |\n  -----BEGIN RSA PRIVATE KEY-----\n  hunter2\n  -----END RSA PRIVATE KEY-----\n',
      ),
    ],
    ['the password of a proxy', install('proxy: {httpProxy: "https://user:hunter2@p.example"}')],
    [
      'the password of a proxy that is not a valid URL',
      install('proxy: {httpProxy: "user:hunter2@p.example"}'),
    ],
    [
      'the password of a mirror',
      install('imageDigestSources: [{source: "user:hunter2@quay.io/a"}]'),
    ],
    ['broken YAML below a secret', install('pullSecret: |\n  hunter2\n hunter2: [\n')],
    [
      'a file of one line',
      { 'install-config.yaml': '{"apiVersion":1,"pulSecret":"hunter2","sshKey":[1]}' },
    ],
    [
      'the password of an interface',
      imageBased(
        'networkConfig: {interfaces: [{name: [], 802.1x: {private-key-password: hunter2}}]}',
      ),
    ],
    [
      'the shared key of a tunnel',
      imageBased(
        'networkConfig:\n  interfaces:\n  - {name: x, state: upp, libreswan: {psk: hunter2}}',
      ),
    ],
    ['a key where a word is unknown', imageBased('networkConfig:\n  pks: hunter2')],
  ])('%s', (_, files) => {
    const shown = show(files);
    expect(shown).not.toBe('');
    expect(shown).not.toContain('hunter2');
  });

  it('at any length of a truncated file', () => {
    const whole = writeInstallConfig({
      pullSecret: `pullSecret: >-\n  {"auths": {"q":\n  {"auth": "hunter2"}}}`,
      sshKey: 'sshKey: |\n  -----BEGIN OPENSSH PRIVATE KEY-----\n  hunter3',
    });
    for (let end = 0; end <= whole.length; end++) {
      expect(show({ 'install-config.yaml': whole.slice(0, end) })).not.toContain('hunter');
    }
  });
});

describe('a hostile file gives problems in bounded time:', () => {
  const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]'];
  for (let at = 1; at < 20; at++) {
    const name = String.fromCharCode(97 + at);
    const before = String.fromCharCode(96 + at);
    bomb.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${before}`).join(', ')}]`);
  }
  it.each([
    ['aliases of aliases', `networkConfig:\n  interfaces: []\n  ovn:\n    ${bomb.join('\n    ')}`],
    ['an alias of itself', 'networkConfig: &a {ovn: *a}'],
    ['a mapping that merges itself', 'networkConfig: &a {<<: *a, ovn: {}}'],
    ['a list of a hundred thousand levels', `networkConfig: ${'['.repeat(100_000)}`],
    ['a mapping of ten thousand levels', `networkConfig: ${'{a: '.repeat(10_000)}`],
    ['thirty thousand interfaces', `networkConfig: {interfaces: [${'{name: a},'.repeat(30_000)}]}`],
    ['a value of a million characters', `hostname: ${'a'.repeat(1_000_000)}`],
    ['a hostname of colons and signs', `hostname: "${':@'.repeat(2_000)}"`],
  ])('%s', { timeout: 20_000 }, (_, section) => {
    const { site, problems } = check({ 'image-based-config.yaml': `${section}\n` });
    expect(site).toBeUndefined();
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.map(formatProblem).join('\n').length).toBeLessThan(100_000);
  });

  it('thousands of networks', () => {
    const list = '{cidr: 10.0.0.0/8, hostPrefix: 23},'.repeat(3_000);
    const { problems } = check({
      'install-config.yaml': writeInstallConfig({
        networking: `networking: {clusterNetwork: [${list}]}`,
      }),
    });
    expect(problems.map(({ problem }) => problem)).toContain(
      'Too many: 3002: must have at most 100 items',
    );
  });

  it('thousands of certificates that never end', () => {
    const text = '-----BEGIN CERTIFICATE-----\n'.repeat(30_000);
    const { problems } = check(install(`additionalTrustBundle: ${JSON.stringify(text)}`));
    expect(problems.map(({ path }) => path)).toContain('additionalTrustBundle');
  });
});

it('control characters in a site file are escaped', () => {
  const clear = '\u001b[2J';
  const shown = show({
    'install-config.yaml': writeInstallConfig({
      metadata: `metadata: {name: "a${clear}"}`,
      [clear]: `"key${clear}": 1`,
      pullSecret: `pullSecret: '{"auths":{"q${clear}":{}}}'`,
    }),
    'image-based-config.yaml': writeImageBasedConfig({ hostname: `hostname: a${clear}` }),
  });
  expect(shown).toContain(String.raw`key\u001b[2J`);
  expect(shown).not.toContain('\u001b');
});

it('a key may have the name of a member that every object has', () => {
  const { site, problems } = check(
    imageBased('nodeLabels: {__proto__: a, constructor: b, toString: c}'),
  );
  expect(problems).toEqual([]);
  expect(Object.keys(site?.imageBased.nodeLabels ?? {})).toEqual([
    '__proto__',
    'constructor',
    'toString',
  ]);
});

it('no text makes the check of a site throw', () => {
  const words = fc.constantFrom(
    ...[
      'networkConfig',
      'interfaces',
      'ipv4',
      'address',
      'ip',
      'networking',
      'machineNetwork',
      'cidr',
    ],
    ...[
      'platform',
      'compute',
      'proxy',
      ': ',
      ':\n  ',
      '\n',
      '- ',
      '{',
      '}',
      '[',
      ']',
      '&a ',
      '*a',
      '<<: ',
    ],
    ...[
      '!!',
      '"',
      "'",
      '|',
      '>',
      '#',
      '?',
      '%',
      '---',
      '1',
      'true',
      '~',
      '192.0.2.1/24',
      '\t',
      ',',
    ],
  );
  const text = fc.oneof(
    fc.array(words, { maxLength: 40 }).map((list) => list.join('')),
    fc.string(),
  );
  fc.assert(
    fc.property(text, text, (a, b) => {
      const { problems, warnings } = check({
        'install-config.yaml': a,
        'image-based-config.yaml': b,
      });
      expect(problems.length).toBeGreaterThan(0);
      for (const { line, column } of [...problems, ...warnings]) {
        expect(Math.min(line, column)).toBeGreaterThan(0);
      }
    }),
    { numRuns: runs(300) },
  );
});
