import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { readConfigIso } from '../../../src/sites/config-iso.ts';
import { TEST_CERTIFICATE } from '../../support/installation-iso.ts';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import {
  inFolder,
  siteTree,
  SSH_KEY,
  type ConfigIsoWorld,
} from '../../support/config-iso-world.ts';
import type { Tree } from '../../support/site-archives.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

const secretOf = (word: string): string =>
  JSON.stringify({
    auths: { 'quay.io': { auth: Buffer.from(`user:${word}`).toString('base64') } },
  });

/** A good site whose secrets stand elsewhere. */
function referring(
  name: string,
  number: number,
  references: Readonly<Record<string, string>>,
): Tree {
  const tree = siteTree(name, { number });
  const path = `${name}/install-config.yaml`;
  const kept = (tree[path] ?? '')
    .split('\n')
    .filter((line) => !/^(?:pullSecret|sshKey):/.test(line));
  const lines = Object.entries(references).map(([key, text]) => `${key}: ${text}\n`);
  return { ...tree, [path]: kept.join('\n') + lines.join('') };
}

const ALPHA = {
  pullSecret: 'file:../../secrets/pull.json',
  sshKey: 'env:FIELD_SSH_KEY',
  additionalTrustBundle: 'file:ca.pem',
};
const ENV = { FIELD_SSH_KEY: SSH_KEY };

const build = (env: NodeJS.ProcessEnv = ENV) =>
  world.build(keys, { sites: 'sites', out: 'out', env });

function writeAlpha(word = 'first'): void {
  world.write({
    ...inFolder('sites', referring('alpha', 1, ALPHA), siteTree('beta', { number: 2 })),
    'sites/alpha/ca.pem': TEST_CERTIFICATE,
    'secrets/pull.json': secretOf(word),
  });
}

describe('a secret of a site', () => {
  it('is read from the file or variable that install-config.yaml names', async () => {
    writeAlpha();
    const { failed } = await build();
    expect(failed).toEqual([]);
    const { manifest } = await readConfigIso(world.at('out/alpha.iso'));
    expect(manifest).toMatchObject({ pull_secret: secretOf('first'), ssh_key: SSH_KEY });
    expect(JSON.stringify(manifest)).toContain('BEGIN CERTIFICATE');
  });

  it('causes only its own site to be made again when it changes', async () => {
    writeAlpha();
    const first = await build();
    expect(await build()).toMatchObject({ made: 0, reused: 2 });
    world.write({ 'secrets/pull.json': secretOf('second') });
    const second = await build();
    expect([second.made, second.reused]).toEqual([1, 1]);
    expect(second.sites.map(({ clusterId }) => clusterId)).toEqual(
      first.sites.map(({ clusterId }) => clusterId),
    );
    const { manifest } = await readConfigIso(world.at('out/alpha.iso'));
    expect(manifest).toMatchObject({ pull_secret: secretOf('second') });
    expect(await build({ FIELD_SSH_KEY: `${SSH_KEY} changed` })).toMatchObject({ made: 1 });
  });

  it('refuses its site if this machine does not have it, in validate as in build', async () => {
    writeAlpha();
    await rm(world.at('secrets'), { recursive: true });
    const out = ['--out', 'out'];
    for (const [command, ...more] of [['validate'], ['build', ...out]] as const) {
      const { exitCode, stderr } = await world.run('config-iso', command, 'sites', ...more);
      expect(exitCode).toBe(3);
      expect(stderr).toMatch(
        /alpha\/install-config\.yaml:\d+:13: pullSecret: there is no file \S+\/secrets\/pull\.json/,
      );
      expect(stderr).toMatch(/sshKey: the environment variable FIELD_SSH_KEY is not set/);
    }
  });

  it('is checked by the rules of its key, and never shown', async () => {
    writeAlpha();
    const word = 'c29tZS1zZWNyZXQ=';
    world.write({ 'secrets/pull.json': `{"auths":{"quay.io":{"token":"${word}"}}}` });
    const { exitCode, stdout, stderr } = await world.runIn(
      { FIELD_SSH_KEY: `-----BEGIN PRIVATE KEY-----\n${word}` },
      ...['config-iso', 'validate', 'sites', '-o', 'json'],
    );
    expect(exitCode).toBe(3);
    expect(stderr).toContain('"quay.io" requires either auth or credsStore');
    expect(stderr).toContain('sshKey: Invalid value: "[redacted]": ssh: no key found');
    expect(stdout + stderr).not.toContain(word);
  });

  it('is relative to a template that a table fills, and may be named by a cell', async () => {
    const template = referring('t', 1, { pullSecret: '"{{ secret }}"' });
    const text = (template['t/install-config.yaml'] ?? '').replace(
      'name: "t"',
      'name: "{{ name }}"',
    );
    world.write({
      ...template,
      't/install-config.yaml': text,
      't/secrets/a.json': secretOf('of-a'),
      'a.csv': 'name,secret\nalpha,file:secrets/a.json\n',
    });
    const { failed } = await world.build(keys, { sites: 'a.csv', template: 't', out: 'out' });
    expect(failed).toEqual([]);
    const { manifest } = await readConfigIso(world.at('out/alpha.iso'));
    expect(manifest).toMatchObject({ pull_secret: secretOf('of-a') });
  });

  it('may be a variable in an archive, but not a file of this machine', async () => {
    writeAlpha();
    execFileSync('tar', ['-cf', world.at('sites.tar'), '-C', world.directory, 'sites']);
    const env = { FIELD_SSH_KEY: SSH_KEY, PULL: secretOf('x') };
    const { exitCode, stderr } = await world.runIn(env, 'config-iso', 'validate', 'sites.tar');
    expect(exitCode).toBe(3);
    expect(stderr).toContain('pullSecret: a file: reference cannot be used inside an archive');
    expect(stderr).toContain('hint: write env:NAME, or unpack the archive');
    expect(stderr).not.toContain('sshKey');
  });

  it('is refused without waiting if it is a pipe', async () => {
    writeAlpha();
    await rm(world.at('secrets/pull.json'));
    execFileSync('mkfifo', [world.at('secrets/pull.json')]);
    const { exitCode, stderr } = await world.runIn(ENV, 'config-iso', 'validate', 'sites');
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/pullSecret: \S+\/pull\.json is not a regular file/);
  });
});
