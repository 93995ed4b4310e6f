import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigProblems } from '../../../src/base/errors.ts';
import { checkConfig, loadConfig } from '../../../src/config/load.ts';
import { planInstallerInputs } from '../../../src/openshift/installer/installer.ts';
import {
  checkInfraEnv,
  chooseNodeRegistriesConf,
} from '../../../src/openshift/installer/overrides.ts';
import { LIVE_ISO_RULES } from '../../../src/stages/rules.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import { inputOf } from '../../support/config-input.ts';

const TEXT = `apiVersion: v1beta1
ocpRelease: {version: "4.21.3"}
pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}'
`;

const rendered = new Map(
  planInstallerInputs({
    arch: 'x86_64',
    registriesConf: 'unqualified-search-registries = []\n',
  }).map(({ path, text }) => [path, text]),
);
const INFRA_ENV = rendered.get('cluster-manifests/infraenv.yaml') ?? '';
const CONF = `[[registry]]
  location = "quay.io/a"
  [[registry.mirror]]
    location = "localhost:22625/a"
`;

describe('an override next to a configuration', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-overrides-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const options = { env: {}, rules: LIVE_ISO_RULES };
  const path = (): string => join(directory, 'appliance-config.yaml');

  async function writeOverride(name: string, content: string): Promise<void> {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), content);
    await writeFile(path(), TEXT);
  }

  it.each([...rendered])('with the rendered bytes is accepted: %s', async (name, text) => {
    await writeOverride(name, text);
    expect(checkConfig(inputOf(TEXT, path()), options).problems).toEqual([]);
    expect(loadConfig(inputOf(TEXT, path()), options).ocpRelease.version).toBe('4.21.3');
  });

  it.each([
    ['mirror/registries.conf', 'not TOML', 'mirror/registries.conf: it is not TOML'],
    ['cluster-manifests/infraenv.yaml', 'kind: Pod', 'has Pod instead of one InfraEnv'],
    ['cluster-manifests/infraenv.yaml', 'a: [', 'is not YAML'],
    ['cluster-manifests/infraenv.yaml', '', 'has nothing instead of one InfraEnv'],
    [
      'cluster-manifests/infraenv.yaml',
      INFRA_ENV.replace('spec:', 'spec:\n  sshAuthorizedKeys: a'),
      'has in line 6 spec.sshAuthorizedKeys: unknown field "sshAuthorizedKeys", did you mean "sshAuthorizedKey"?',
    ],
    [
      'cluster-manifests/infraenv.yaml',
      INFRA_ENV.replace('x86_64', 'arm64'),
      'is for aarch64, but the medium is for x86_64',
    ],
    [
      'cluster-manifests/infraenv.yaml',
      INFRA_ENV.replace('appliance-pull-secret', 'mine'),
      'names pull secret "mine", but the medium has only appliance-pull-secret',
    ],
    [
      'cluster-manifests/pull-secret.yaml',
      'kind: Secret',
      'is not the pull secret that goes on the medium',
    ],
  ])('is refused with the reason: %s with %j', async (name, text, problem) => {
    await writeOverride(name, text);
    expect(checkConfig(inputOf(TEXT, path()), options).problems).toMatchObject([
      { problem: expect.stringContaining(problem) as string },
    ]);
    expect(() => loadConfig(inputOf(TEXT, path()), options)).toThrow(ConfigProblems);
  });

  it('that is a folder is refused', async () => {
    await writeOverride('mirror/registries.conf/x', '');
    expect(checkConfig(inputOf(TEXT, path()), options).problems).toMatchObject([
      { problem: 'the override mirror/registries.conf cannot be read' },
    ]);
  });
});

describe('an InfraEnv of the user', () => {
  const own = `${INFRA_ENV}  additionalNTPSources: [ntp.example.com]\n`;

  it('is given to the installer', () => {
    const inputs = planInstallerInputs({ arch: 'x86_64', registriesConf: '', infraEnv: own });
    expect(inputs).toContainEqual({ path: 'cluster-manifests/infraenv.yaml', text: own });
    expect(() => {
      checkInfraEnv(own, { arch: 'x86_64', isRead: true });
    }).not.toThrow();
  });

  it('is refused with its members without effect if no installer runs', () => {
    const check = (text: string): void => {
      checkInfraEnv(text, { arch: 'x86_64', sshKey: 'ssh-ed25519 AAAA\n', isRead: false });
    };
    expect(() => {
      check(`${INFRA_ENV}  sshAuthorizedKey: ssh-ed25519 AAAA\n`);
    }).not.toThrow();
    const keyed = `${own}  sshAuthorizedKey: ssh-ed25519 BBBB\n`;
    expect(() => {
      check(keyed);
    }).toThrow('has spec.sshAuthorizedKey, spec.additionalNTPSources, which only the installer');
  });
});

describe('a registries.conf of the user', () => {
  const images = [`quay.io/a/b@sha256:${'0'.repeat(64)}`, 'quay.io/a/b:1'].map((text) =>
    parseReference(text),
  );
  const choose = (text: string): string => chooseNodeRegistriesConf(CONF, text, images);

  it('replaces the rendered one if it leads to all images of the medium', () => {
    const more = `${CONF}  [[registry.mirror]]\n    location = "mirror.example.com/a"\n`;
    expect(choose(more)).toBe(more);
    const wider = more.replace(
      'location = "quay.io/a"',
      'location = "quay.io/a"\n  insecure = true',
    );
    expect(choose(wider)).toBe(wider);
  });

  it.each([
    ['no entry', 'unqualified-search-registries = []\n'],
    ['another mirror', CONF.replace('22625', '5000')],
    ['a closer entry without it', `${CONF}[[registry]]\n  location = "quay.io/a/b"\n`],
    ['the mirror for tags alone', `${CONF}    pull-from-mirror = "tag-only"\n`],
  ])('is refused if it hides images of the medium: %s', (_what, text) => {
    expect(() => choose(text)).toThrow(
      expect.objectContaining({
        code: 'override.mirrors-missing',
        exitCode: 3,
        expected: expect.stringContaining('localhost:22625/a/b') as string,
      }) as Error,
    );
  });
});
