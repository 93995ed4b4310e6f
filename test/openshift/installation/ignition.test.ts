import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { formatIgnition } from '../../../src/ignition/config.ts';
import {
  renderInstallationIgnition,
  type InstallationInput,
} from '../../../src/openshift/installation/ignition.ts';
import type { InstallationSettings } from '../../../src/openshift/installation/mirrors.ts';
import { renderText } from '../../../src/openshift/node/registry.ts';
import { fileText, TEST_SSH_KEY, type ShownIgnition } from '../../support/installation-iso.ts';
import { requireTool } from '../../support/tools.ts';

const SETTINGS: InstallationSettings = {
  additionalTrustBundle: '',
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
};

const EVERYTHING: InstallationSettings = {
  ...SETTINGS,
  additionalTrustBundle: '-----BEGIN CERTIFICATE-----\n',
  coreosInstallerArgs: ['--append-karg', 'a=1'],
  imageDigestSources: [{ source: 'quay.io', mirrors: ['mirror-quay.io'] }],
  networkConfig: 'interfaces: []\n',
  proxy: { httpProxy: 'http://p:1', noProxy: '"10%"\\' },
  releaseRegistry: 'registry.lab',
  shutdown: true,
  skipDiskCleanup: true,
  sshKey: TEST_SSH_KEY,
};

/** As a consumer reads it. */
const render = (
  settings: Partial<InstallationSettings>,
  more: Omit<InstallationInput, 'settings' | 'pullSecret'> = {},
): ShownIgnition =>
  JSON.parse(
    formatIgnition(
      renderInstallationIgnition({
        settings: { ...SETTINGS, ...settings },
        pullSecret: '{"auths":{}}',
        ...more,
      }),
    ),
  ) as ShownIgnition;

const listFiles = (config: ShownIgnition): readonly string[] =>
  config.storage.files.map(({ path, mode }) => `${path} ${mode.toString(8)}`);

const override = (config: object): string =>
  JSON.stringify({ ignition: { version: '3.2.0' }, ...config });

const findUnit = ({ systemd }: ShownIgnition, name: string) =>
  systemd.units.find((unit) => unit.name === name);

const REGISTRIES_CONF = '/etc/containers/registries.conf';
const LOCAL_REGISTRIES_CONF = '/etc/containers/registries.conf.d/50-local-registry.conf';

/**
 * What `lca-cli ibi` decides: mirrorRegistrySourceRegistries of lca-cli/ibi-preparation and
 * ShouldOverrideSeedRegistry of utils/client_helper.go in lifecycle-agent. A live system that no file
 * of ours replaces has a registries.conf without tables.
 */
function shouldOverrideSeedRegistry(
  conf: string | undefined,
  seed: { readonly seedMirrorRegistryConfigured: boolean; readonly seedReleaseRegistry: string },
): boolean {
  const { registry = [] } = parseToml(conf ?? '') as {
    readonly registry?: readonly { readonly location?: string }[];
  };
  const sources = registry.flatMap(({ location = '' }) =>
    location === '' ? [] : [location.split('/')[0]],
  );
  if (sources.length === 0) return seed.seedMirrorRegistryConfigured;
  return !sources.includes(seed.seedReleaseRegistry);
}

const INSTALL = 'install-rhcos-and-restore-seed';
const FIXED = [
  `/usr/local/bin/${INSTALL}.sh 555`,
  '/var/tmp/ibi-configuration.json 600',
  '/var/tmp/network-config.yaml 600',
  '/var/tmp/pull-secret.json 600',
];

describe('the Ignition config of an installation ISO', () => {
  it('has at least four files and two units', () => {
    const config = render({});
    expect(config.ignition.version).toBe('3.2.0');
    expect(listFiles(config)).toEqual(FIXED);
    expect(config.systemd.units.map(({ name, enabled }) => [name, enabled])).toEqual([
      [`${INSTALL}.service`, true],
      ['network-config.service', undefined],
    ]);
    expect(config.passwd.users).toEqual([{ name: 'core', sshAuthorizedKeys: [''] }]);
  });

  it('ends each of its values with one additional newline', () => {
    const config = render({ networkConfig: 'interfaces: []\n' });
    expect(fileText(config, '/var/tmp/pull-secret.json')).toBe('{"auths":{}}\n');
    expect(fileText(config, '/var/tmp/network-config.yaml')).toBe('interfaces: []\n\n');
    expect(fileText(render({}), '/var/tmp/network-config.yaml')).toBe('\n');
  });

  it('has files for mirrors, certificates and post.sh only if they have content', () => {
    const config = render(EVERYTHING, { postScript: Buffer.from('#!/bin/sh\n') });
    expect(listFiles(config)).toEqual([
      '/etc/containers/registries.conf 644',
      '/etc/pki/ca-trust/source/anchors/additional-trust-bundle.pem 600',
      '/var/tmp/post.sh 755',
      ...FIXED,
    ]);
    for (const file of config.storage.files) {
      expect(file).toMatchObject({ overwrite: true, user: { name: 'root' } });
      expect(file.contents.source).toMatch(/^data:text\/plain;charset=utf-8;base64,/);
    }
    expect(config.passwd.users).toEqual([{ name: 'core', sshAuthorizedKeys: [TEST_SSH_KEY] }]);
    expect(findUnit(config, 'network-config.service')?.enabled).toBe(true);
  });

  it('has the settings that are not empty in the order of lca-cli', () => {
    expect(fileText(render({}), '/var/tmp/ibi-configuration.json')).toBe(
      '{"extraPartitionLabel":"var-lib-containers","extraPartitionNumber":5,"extraPartitionStart":"-40G",' +
        '"installationDisk":"/dev/vda","seedImage":"quay.io/edge/seed:4.21.3","seedVersion":"4.21.3"}\n',
    );
    expect(fileText(render(EVERYTHING), '/var/tmp/ibi-configuration.json')).toBe(
      '{"extraPartitionLabel":"var-lib-containers","extraPartitionNumber":5,"extraPartitionStart":"-40G",' +
        '"installationDisk":"/dev/vda","releaseRegistry":"registry.lab","seedImage":"quay.io/edge/seed:4.21.3",' +
        '"seedVersion":"4.21.3","shutdown":true,"skipDiskCleanup":true,"coreosInstallerArgs":["--append-karg","a=1"]}\n',
    );
    const none = { extraPartitionLabel: '', extraPartitionNumber: 0 };
    expect(fileText(render(none), '/var/tmp/ibi-configuration.json')).not.toMatch(/Label|Number/);
  });

  it('gives the install unit its environment, with each proxy in both spellings', () => {
    const { contents = '' } = findUnit(render(EVERYTHING), `${INSTALL}.service`) ?? {};
    expect(contents.split('\n').filter((line) => line.startsWith('Environment='))).toEqual([
      'Environment="SEED_IMAGE=quay.io/edge/seed:4.21.3"',
      'Environment="IBI_CONFIGURATION_FILE=/var/tmp/ibi-configuration.json"',
      'Environment="PULL_SECRET_FILE=/var/tmp/pull-secret.json"',
      'Environment="HTTP_PROXY=http://p:1"',
      'Environment="http_proxy=http://p:1"',
      String.raw`Environment="NO_PROXY=\"10%%\"\\"`,
      String.raw`Environment="no_proxy=\"10%%\"\\"`,
    ]);
    expect(contents).toMatch(/^Description=SNO Image-based Installation$/m);
    expect(contents).toMatch(/^Wants=network-online\.target\nAfter=network-online\.target$/m);
    expect(contents).toMatch(/^Type=oneshot\nRemainAfterExit=yes$/m);
    expect(contents).toContain(
      `ExecStartPre=/usr/bin/chcon -t install_exec_t /usr/local/bin/${INSTALL}.sh\nExecStart=/usr/local/bin/${INSTALL}.sh\n`,
    );
    expect(contents).toMatch(/^WantedBy=multi-user\.target$/m);
  });

  it('has no value of the environment that begins another line', () => {
    const { contents } = findUnit(
      render({ seedImage: 'a"\nExecStart=/bin/evil' }),
      `${INSTALL}.service`,
    ) ?? { contents: '' };
    expect(contents.match(/^ExecStart=/gm)).toHaveLength(1);
    expect(contents).toContain(String.raw`SEED_IMAGE=a\"\x0aExecStart=/bin/evil"`);
  });

  describe('with an override', () => {
    it('has the files, units and keys of the override, and its content at a common path', () => {
      const config = render(
        { ...EVERYTHING },
        {
          ignitionConfigOverride: override({
            passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['more'] }] },
            storage: {
              files: [
                { path: '/etc/new', mode: 384 },
                { path: '/etc/containers/registries.conf', contents: { source: 'data:,mine' } },
              ],
            },
            systemd: { units: [{ name: 'more.service', enabled: true }] },
          }),
        },
      );
      expect(config.passwd.users[0]?.sshAuthorizedKeys).toEqual([TEST_SSH_KEY, 'more']);
      const conf = config.storage.files.find(({ path }) => path.endsWith('registries.conf'));
      expect(conf).toMatchObject({ mode: 0o644, contents: { source: 'data:,mine' } });
      expect(config.systemd.units.map(({ name }) => name)).toContain('more.service');
    });

    it('installs the same image, as the installing parts cannot be overridden', () => {
      const paths = FIXED.map((file) => file.replace(/ .*/, ''));
      const own = render({});
      const config = render(
        {},
        {
          ignitionConfigOverride: override({
            storage: {
              files: paths.slice(1).map((path) => ({ path, contents: { source: 'data:,no' } })),
              links: [{ path: paths[0], target: '/bin/true' }],
            },
            systemd: {
              units: [{ name: `${INSTALL}.service`, mask: true, dropins: [{ name: 'a.conf' }] }],
            },
          }),
        },
      );
      expect(config.storage.files).toEqual(own.storage.files);
      expect(config.storage).toMatchObject({ links: [] });
      expect(config.systemd).toEqual(own.systemd);
    });

    it.each(['3.0.0', '3.1.0', '3.2.0'])(
      'of version %s is a config of version 3.2.0',
      (version) => {
        const sha256 = `sha256-${'0'.repeat(64)}`;
        const source = { source: 'https://a.example/a', verification: { hash: sha256 } };
        const config = render(
          {},
          {
            ignitionConfigOverride: JSON.stringify({
              ignition: { version, config: null },
              storage: { files: [{ path: '/etc/a', mode: null, contents: source }] },
            }),
          },
        );
        expect(config.ignition).toEqual({ version: '3.2.0' });
        expect(config.storage.files[0]).toEqual({ path: '/etc/a', contents: source });
      },
    );

    it.each([
      ['no JSON', 'top-word'],
      ['of another version', '{"ignition":{"version":"3.4.0"}}'],
      ['without a version', '{}'],
      ['null', 'null'],
      ['of an unfinished version', '{"ignition":{"version":"3.2.0-experimental"}}'],
      [
        'wrong in itself',
        '{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"etc/a"},{"path":"etc/a"}]}}',
      ],
    ])('that is %s is refused without quoting it', (_what, text) => {
      let message = '';
      try {
        render({}, { ignitionConfigOverride: text });
      } catch (error) {
        message = `${(error as Error).message}: ${((error as Error).cause as Error).message}`;
      }
      expect(message).toMatch(
        /^failed to override ignition config: failed to parse ignition config override: ./,
      );
      expect(message).not.toContain('top-word');
    });
  });

  it('mirrors each source once, and drops those without mirrors', () => {
    const imageDigestSources = [
      { source: 'quay.io', mirrors: ['one', 'two'] },
      { source: 'none.io', mirrors: [], sourcePolicy: 'NeverContactSource' },
      { source: 'b.io', mirrors: ['m'], sourcePolicy: 'NeverContactSource' },
      { source: 'quay.io', mirrors: ['two', 'three'], sourcePolicy: 'AllowContactingSource' },
    ];
    const conf = fileText(render({ imageDigestSources }), '/etc/containers/registries.conf');
    expect(parseToml(conf ?? '')).toEqual({
      'credential-helpers': [],
      'short-name-mode': '',
      'unqualified-search-registries': [],
      'registry': [
        {
          'location': 'quay.io',
          'mirror-by-digest-only': true,
          'prefix': '',
          'mirror': [{ location: 'one' }, { location: 'two' }, { location: 'three' }],
        },
        {
          'blocked': true,
          'location': 'b.io',
          'mirror-by-digest-only': true,
          'prefix': '',
          'mirror': [{ location: 'm' }],
        },
      ],
    });
    expect(listFiles(render({ imageDigestSources: imageDigestSources.slice(1, 2) }))).toEqual(
      FIXED,
    );
  });

  it('writes the mirrors of one source as openshift-install does', () => {
    const conf = fileText(render(EVERYTHING), '/etc/containers/registries.conf');
    expect(conf).toBe(`credential-helpers = []
short-name-mode = ""
unqualified-search-registries = []

[[registry]]
  location = "quay.io"
  mirror-by-digest-only = true
  prefix = ""

  [[registry.mirror]]
    location = "mirror-quay.io"
`);
  });

  it('starts a registry on the medium before the unit that installs', () => {
    const image = { reference: 'quay.io/r@sha256:0', useDistributionEntrypoint: true };
    const mirrors = [{ source: 'quay.io/edge/seed', mirrors: ['localhost:22625/edge/seed'] }];
    const config = render(
      {
        imageDigestSources: [
          { source: 'quay.io', mirrors: ['m.io'], sourcePolicy: 'NeverContactSource' },
        ],
      },
      { localRegistry: { image, mirrors } },
    );
    expect(listFiles(config)).toEqual(
      expect.arrayContaining([
        '/usr/local/bin/setup-local-registry.sh 555',
        '/usr/local/bin/mount-agent-data.sh 555',
        '/etc/assisted/registry.env 644',
      ]),
    );
    expect(findUnit(config, 'start-local-registry.service')?.enabled).toBe(true);
    expect(findUnit(config, `${INSTALL}.service`)).toMatchObject({
      dropins: [
        { name: 'local-registry.conf', contents: expect.stringMatching(/^After=start/m) as string },
      ],
    });
    expect(parseToml(fileText(config, REGISTRIES_CONF) ?? '')).toMatchObject({
      registry: [
        {
          'location': 'quay.io',
          'mirror-by-digest-only': true,
          'blocked': true,
          'mirror': [{ location: 'm.io' }],
        },
      ],
    });
    expect(parseToml(fileText(config, LOCAL_REGISTRIES_CONF) ?? '')).toEqual({
      registry: [
        {
          location: 'quay.io/edge/seed',
          prefix: '',
          blocked: true,
          mirror: [
            { location: 'localhost:22625/edge/seed' },
            { 'location': 'm.io/edge/seed', 'pull-from-mirror': 'digest-only' },
          ],
        },
      ],
    });
  });

  describe('with images on the medium', () => {
    const localRegistry = {
      image: { reference: 'quay.io/r@sha256:0', useDistributionEntrypoint: true },
      mirrors: [
        { source: 'quay.io/edge/seed', mirrors: ['localhost:22625/edge/seed'] },
        { source: 'registry.lab/edge/seed', mirrors: ['localhost:22625/edge/seed'] },
      ],
    };

    it.each([
      ['no mirrors', [], { true: true, false: false }],
      ['mirrors of another host', ['far.io'], { true: true, false: true }],
      ['mirrors of the host of the seed', ['quay.io/ocp'], { true: false, false: false }],
    ])(
      'makes lca-cli read precached images from releaseRegistry as without them, with %s of the user',
      (_what, hosts, overrides) => {
        const settings = {
          releaseRegistry: 'registry.lab',
          imageDigestSources: hosts.map((source) => ({ source, mirrors: ['m.io'] })),
        };
        for (const more of [{}, { localRegistry }]) {
          const conf = fileText(render(settings, more), REGISTRIES_CONF);
          const [isMirrored, isDirect] = [true, false].map((seedMirrorRegistryConfigured) =>
            shouldOverrideSeedRegistry(conf, {
              seedMirrorRegistryConfigured,
              seedReleaseRegistry: 'quay.io',
            }),
          );
          expect({ true: isMirrored, false: isDirect }).toEqual(overrides);
        }
      },
    );

    it('leaves the registries.conf of the live system if the user has no mirrors', () => {
      const paths = listFiles(render({}, { localRegistry }));
      expect(paths).not.toContain(`${REGISTRIES_CONF} 644`);
      expect(paths).toContain(`${LOCAL_REGISTRIES_CONF} 644`);
    });
  });

  it.skipIf(!requireTool('ignition-validate'))('is valid to Ignition', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sealift-ignition-'));
    const path = join(directory, 'config.ign');
    for (const settings of [SETTINGS, EVERYTHING]) {
      await writeFile(path, JSON.stringify(render(settings)));
      expect(execFileSync('ignition-validate', [path], { encoding: 'utf8' })).toBe('');
    }
    await rm(directory, { recursive: true });
  });

  it.skipIf(!requireTool('shellcheck'))('has a script that passes shellcheck', () => {
    const input = renderText(`ibi/${INSTALL}.sh`);
    expect(execFileSync('shellcheck', ['-'], { input, encoding: 'utf8' })).toBe('');
  });
});
