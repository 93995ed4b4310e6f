import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import {
  formatIgnition,
  parseIgnition,
  textFile,
  type IgnitionConfig,
} from '../../../src/ignition/index.ts';
import { configure } from '../../../src/openshift/agent/configure.ts';
import {
  planInstallerInputs,
  planInstallerArgs,
} from '../../../src/openshift/installer/installer.ts';
import {
  adaptUnconfigured,
  renderEmbeddedUnconfigured,
} from '../../../src/openshift/node/bootstrap.ts';
import {
  bootstrapInput,
  findFile,
  listContents,
  readContents,
} from '../../support/node-configs.ts';

const SENTINEL = '0644 /etc/assisted/interactive-ui';

describe('planInstallerInputs', () => {
  const inputs = (extra: object): Map<string, string> =>
    new Map(
      planInstallerInputs({ arch: 'x86_64', registriesConf: 'conf\n', ...extra }).map(
        ({ path, text }) => [path, text],
      ),
    );

  it('gives the installer a dummy secret and the mirrors without other values', () => {
    const files = inputs({});
    expect([...files.keys()]).toEqual([
      'cluster-manifests/infraenv.yaml',
      'cluster-manifests/pull-secret.yaml',
      'mirror/registries.conf',
    ]);
    expect(parse(files.get('cluster-manifests/infraenv.yaml') ?? '')).toEqual({
      apiVersion: 'agent-install.openshift.io/v1beta1',
      kind: 'InfraEnv',
      metadata: { name: 'appliance' },
      spec: { cpuArchitecture: 'x86_64', pullSecretRef: { name: 'appliance-pull-secret' } },
    });
    expect(parse(files.get('cluster-manifests/pull-secret.yaml') ?? '')).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'appliance-pull-secret' },
      stringData: { '.dockerconfigjson': '{"auths":{"":{"auth":"dXNlcjpwYXNz"}}}' },
      type: 'kubernetes.io/dockerconfigjson',
    });
  });

  it('passes on the key, the secret for the hosts and the network', () => {
    const nmstate = 'kind: NMStateConfig\n';
    const files = inputs({ sshKey: 'ssh-rsa AAAA x\n', pullSecret: '{"auths":{"r":{}}}', nmstate });
    expect(parse(files.get('cluster-manifests/infraenv.yaml') ?? '')).toMatchObject({
      spec: { sshAuthorizedKey: 'ssh-rsa AAAA x' },
    });
    expect(parse(files.get('cluster-manifests/pull-secret.yaml') ?? '')).toMatchObject({
      stringData: { '.dockerconfigjson': '{"auths":{"r":{}}}' },
    });
    expect(files.get('cluster-manifests/nmstateconfig.yaml')).toBe(nmstate);
  });

  it('writes no network configuration for a blank one', () => {
    expect(inputs({ nmstate: ' \n' }).has('cluster-manifests/nmstateconfig.yaml')).toBe(false);
  });
});

describe('planInstallerArgs', () => {
  it.each([
    ['4.18.9', false],
    ['4.19.0', true],
    ['4.20.12', true],
    ['4.20.0-0.nightly-2026-01-01-000000', true],
    ['4.21.0-ec.1', false],
    ['4.2.0', false],
    ['5.0.1', false],
  ])('%s: %s', (version, expected) => {
    expect(planInstallerArgs(version, true).includes('--interactive')).toBe(expected);
  });
});

describe('adaptUnconfigured', () => {
  const config: IgnitionConfig = {
    ignition: { version: '3.2.0' },
    storage: {
      files: [
        textFile('/etc/containers/registries.conf', 'theirs', 0o644),
        textFile('/etc/assisted/interactive-ui', '', 0o600),
        textFile('/etc/motd', 'hello', 0o644),
      ],
      directories: [{ path: '/opt/agent/tls', mode: 420 }],
    },
  };

  it('drops registries.conf and leaves one sentinel in the interactive flow', () => {
    const adapted = adaptUnconfigured(config, { interactive: true });
    expect(listContents(adapted)).toEqual(['0644 /opt/agent/tls/', '0644 /etc/motd', SENTINEL]);
  });

  it('removes the sentinel in the other flow', () => {
    const adapted = adaptUnconfigured(config, { interactive: false });
    expect(listContents(adapted)).toEqual(['0644 /opt/agent/tls/', '0644 /etc/motd']);
  });

  it('adds the sentinel to a configuration without any files', () => {
    const adapted = adaptUnconfigured({ ignition: { version: '3.2.0' } }, { interactive: true });
    expect(listContents(adapted)).toEqual([SENTINEL]);
  });
});

describe('renderEmbeddedUnconfigured', () => {
  const input = { release: bootstrapInput.release, interactive: false, registriesConf: 'conf\n' };

  it('has the environment of agents and the registries, and no secret by itself', () => {
    const config = renderEmbeddedUnconfigured(input);
    expect(listContents(config)).toEqual([
      '0600 /etc/assisted/agent-installer.env',
      '0644 /etc/containers/registries.conf',
    ]);
    expect(config.passwd).toBeUndefined();
    expect(readContents(findFile(config, '/etc/assisted/agent-installer.env'))).toBe(
      `RELEASE_IMAGE=${bootstrapInput.release.digestReference}\n`,
    );
  });

  it('has the pull secret for the hosts in a file that only root can read, and the key of core', () => {
    const pristine = formatIgnition(renderEmbeddedUnconfigured({ ...input, interactive: true }));
    const values = { pullSecret: '{"auths":{}}', sshKeys: ['ssh-rsa AAAA x\n'] };
    const config = parseIgnition(configure(pristine, values), 'the config');
    expect(listContents(config)).toContain('0600 /root/.docker/config.json');
    expect(listContents(config)).toContain(SENTINEL);
    const secret: unknown = JSON.parse(readContents(findFile(config, '/root/.docker/config.json')));
    expect(secret).toEqual({ auths: {} });
    expect(config.passwd?.users).toEqual([
      { name: 'core', sshAuthorizedKeys: ['ssh-rsa AAAA x\n'] },
    ]);
  });
});
