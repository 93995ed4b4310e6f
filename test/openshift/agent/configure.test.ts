import { execFileSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { withoutUndefined } from '../../../src/base/lists.ts';
import { decodeEmbedded, encodeEmbedded } from '../../../src/media/areas.ts';
import { parseIgnition } from '../../../src/ignition/config.ts';
import { textFile } from '../../../src/ignition/index.ts';
import { decodeFileContent } from '../../../src/ignition/resource.ts';
import { configure } from '../../../src/openshift/agent/configure.ts';
import { INFRA_ENV } from '../../../src/openshift/agent/live-manifest.ts';
import { listWithoutPlace } from '../../../src/openshift/agent/install-overrides.ts';
import { findHost, readRendezvousIp } from '../../../src/openshift/agent/rendezvous.ts';
import { renderKeyfiles } from '../../support/render-profiles.ts';
import type { CustomValues } from '../../../src/openshift/agent/values.ts';
import {
  standInForInstaller,
  type InstallerEra,
  type InstallerInputs,
} from '../../support/installer-stand-in.ts';
import { runs } from '../../support/properties.ts';
import { requireTool } from '../../support/tools.ts';

const PRISTINE: InstallerInputs = {
  metadata: { name: 'appliance' },
  spec: { pullSecretRef: { name: 'appliance-pull-secret' } },
  secretName: 'appliance-pull-secret',
  pullSecret: '{\n  "auths": {\n    "": {\n      "auth": "dXNlcjpwYXNz"\n    }\n  }\n}',
};

const KEY = 'ssh-ed25519 AAAA somebody';
const SECRET = '{"auths":{"quay.io":{"email":"a@b","auth":"PHg+"}}}';
/** As Go's encoder writes it: sorted, two spaces. */
const GO_SECRET =
  '{\n  "auths": {\n    "quay.io": {\n      "auth": "PHg+",\n      "email": "a@b"\n    }\n  }\n}';
const NETWORK =
  'interfaces:\n  - name: eth0\n    type: ethernet\n    ipv4: { enabled: true, dhcp: true }\n';
const LABELS = { matchLabels: { 'agent-install.openshift.io/infraenv-id': '1' } };

const VALUES: CustomValues = {
  sshKeys: [KEY],
  pullSecret: SECRET,
  ntpSources: ['ntp.example'],
  proxy: {
    httpProxy: 'http://u:p%20@p.example:1',
    httpsProxy: 'http://p.example:1',
    noProxy: '.example,100%',
  },
  hosts: [
    { networkConfig: NETWORK, interfaces: [{ name: 'eth0', macAddress: '52:54:00:00:00:01' }] },
  ],
  infraEnv: {
    metadata: { name: 'site' },
    spec: { nmStateConfigLabelSelector: LABELS, pullSecretRef: { name: 'pull-secret' } },
  },
};

const GIVEN: InstallerInputs = {
  metadata: { name: 'site' },
  spec: {
    pullSecretRef: { name: 'pull-secret' },
    sshAuthorizedKey: KEY,
    additionalNTPSources: ['ntp.example'],
    proxy: VALUES.proxy,
    nmStateConfigLabelSelector: LABELS,
  },
  secretName: 'pull-secret',
  pullSecret: GO_SECRET,
  hosts: [
    {
      profiles: Object.fromEntries(
        renderKeyfiles(NETWORK).map(({ name, content }) => [name, content]),
      ),
      map: '52:54:00:00:00:01=eth0',
    },
  ],
};

/** Pull secrets, and as Go's encoder writes them. */
const SECRETS = [
  [SECRET, GO_SECRET],
  ['{}', '{}'],
  [
    '{"b":[1,{"d":"<&>","c":null}],"a":"é"}',
    '{\n  "a": "é",\n  "b": [\n    1,\n    {\n      "c": null,\n      "d": "\\u003c\\u0026\\u003e"\n    }\n  ]\n}',
  ],
] as const;

const networkOf = (name: string): string =>
  `interfaces:\n  - name: ${name}\n    type: ethernet\n    ipv4: { enabled: true, dhcp: true }\n`;

const PROXIES = [
  { httpProxy: 'http://u:p%20@p.example:1' },
  { httpsProxy: 'https://p.example', noProxy: '.example,100%' },
  { httpProxy: 'http://a', httpsProxy: 'http://b', noProxy: 'c' },
] as const;

const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });

/** Values in any combination, and the same as they stand in the files that the installer reads. */
const anyValues = fc
  .record({
    keys: optional(fc.constantFrom([KEY], [KEY, 'ssh-rsa BBBB other'])),
    secret: optional(fc.constantFrom(...SECRETS)),
    proxy: optional(fc.constantFrom(...PROXIES)),
    sources: optional(fc.constantFrom(['ntp.example'], ['192.0.2.1', 'fd2e::1'])),
    names: fc.shuffledSubarray(['eth0', 'eth1', 'eth2']),
    rendezvousIp: optional(fc.constantFrom('192.0.2.10', 'fd2e::50')),
    metadata: optional(fc.constantFrom({ name: 'site' }, { name: 'b', namespace: 'c' })),
    architecture: optional(fc.constant('x86_64')),
  })
  .map(({ keys, secret, proxy, sources, names, rendezvousIp, metadata, architecture }) => {
    const hosts = names.map((name, at) => ({
      networkConfig: networkOf(name),
      interfaces: [{ name, macAddress: `52:54:00:00:00:0${at}` }],
    }));
    const others = withoutUndefined({ cpuArchitecture: architecture });
    const values: CustomValues = withoutUndefined({
      sshKeys: keys,
      pullSecret: secret?.[0],
      proxy,
      ntpSources: sources,
      rendezvousIp,
      hosts: hosts.length === 0 ? undefined : hosts,
      infraEnv: {
        metadata: metadata ?? {},
        spec: { ...others, nmStateConfigLabelSelector: LABELS },
      },
    });
    const spec = withoutUndefined({
      sshAuthorizedKey: keys?.join('\n'),
      proxy,
      additionalNTPSources: sources,
    });
    const given: Partial<InstallerInputs> = withoutUndefined({
      metadata: metadata && { ...PRISTINE.metadata, ...metadata },
      spec: { ...PRISTINE.spec, ...spec, ...others, nmStateConfigLabelSelector: LABELS },
      pullSecret: secret?.[1],
      rendezvousIp,
      hosts: hosts
        .toSorted((a, b) => (a.networkConfig < b.networkConfig ? -1 : 1))
        .map(
          ({
            networkConfig,
            interfaces: [{ name, macAddress } = { name: '', macAddress: '' }],
          }) => ({
            profiles: Object.fromEntries(
              renderKeyfiles(networkConfig).map((file) => [file.name, file.content]),
            ),
            map: `${macAddress}=${name}`,
          }),
        ),
    });
    return { values, given };
  });

/** Files with mode and meaning, users, and names of units. */
function describeConfig(text: string): object {
  const { storage, passwd, systemd } = parseIgnition(text, 'a config');
  const files = (storage?.files ?? []).map((file) => {
    const content = decodeFileContent(file)?.toString() ?? '';
    return [
      file.path,
      {
        mode: file.mode,
        content: file.path.endsWith('.yaml') ? (parse(content) as unknown) : content,
      },
    ] as const;
  });
  return {
    files: new Map(files),
    passwd,
    units: systemd?.units?.map(({ name, enabled }) => [name, enabled]),
  };
}

describe.each<InstallerEra>(['A', 'B', 'C'])(
  'a config that an installer of era %s wrote and that is then configured',
  (era) => {
    const pristine = standInForInstaller(era, PRISTINE);

    it.each(['192.0.2.10', 'fd2e::50', undefined])(
      'equals the config that the installer writes with the values, rendezvous IP %s',
      (rendezvousIp) => {
        const ip = rendezvousIp === undefined ? {} : { rendezvousIp };
        const expected = standInForInstaller(era, { ...GIVEN, ...ip });
        expect(describeConfig(configure(pristine, { ...VALUES, ...ip }))).toEqual(
          describeConfig(expected),
        );
      },
    );

    it('equals the config of the installer for any values, at a build and afterwards', async () => {
      await fc.assert(
        fc.asyncProperty(anyValues, async ({ values, given }) => {
          const expected = standInForInstaller(era, { ...PRISTINE, ...given });
          const configured = configure(pristine, values);
          expect(describeConfig(configured)).toEqual(describeConfig(expected));
          // A build stores the values as JSON; afterwards, the config is read out of the archive on the medium.
          const stored = JSON.parse(JSON.stringify(values)) as CustomValues;
          const built = encodeEmbedded({ config: configure(pristine, stored), keyfiles: [] });
          const packed = encodeEmbedded({ config: pristine, keyfiles: [] });
          const { config } = await decodeEmbedded(packed);
          const later = encodeEmbedded({ config: configure(config, values), keyfiles: [] });
          expect(Buffer.from(later).equals(built)).toBe(true);
        }),
        { numRuns: runs(30) },
      );
    });

    it('does not change without values', () => {
      expect(describeConfig(configure(pristine, {}))).toEqual(describeConfig(pristine));
      expect(configure(pristine, {})).toBe(configure(configure(pristine, {}), {}));
    });

    it.runIf(era === 'A')('has certificates at the path that an installer of that era uses', () => {
      const trustBundle = '-----BEGIN CERTIFICATE-----\n';
      const spec = { ...PRISTINE.spec, additionalTrustBundle: trustBundle };
      const expected = standInForInstaller(era, { ...PRISTINE, spec, trustBundle });
      expect(describeConfig(configure(pristine, { trustBundle }))).toEqual(
        describeConfig(expected),
      );
    });
  },
);

describe('a configured config', () => {
  const pristine = standInForInstaller('B', PRISTINE);

  it.skipIf(!requireTool('ignition-validate'))(
    'is valid to Ignition with an override merged in',
    () => {
      const ignitionOverride = JSON.stringify({
        ignition: { version: '3.1.0' },
        storage: { files: [{ path: '/etc/motd', contents: { source: 'data:,hello' } }] },
        systemd: { units: [{ name: 'agent.service', mask: true }] },
      });
      const hostnames = [{ macAddress: '52:54:00:AA:00:01', name: 'a.example' }];
      const manifests = [{ name: 'a-0.yaml', text: 'kind: A\n' }];
      const text = configure(pristine, { ...VALUES, ignitionOverride, hostnames, manifests });
      execFileSync('ignition-validate', ['-'], { input: text, stdio: 'pipe' });
      const { storage, systemd } = parseIgnition(text, 'a config');
      const paths = storage?.files?.map(({ path }) => path);
      expect(paths).toContain('/etc/assisted/hostnames/52:54:00:aa:00:01');
      expect(paths).toContain('/etc/assisted/extra-manifests/a-0.yaml');
      expect(paths).toContain('/etc/motd');
      expect(systemd?.units?.[0]).toMatchObject({
        name: 'agent.service',
        mask: true,
        enabled: true,
      });
    },
  );

  it('is refused for invalid addresses', () => {
    const thrown = (values: CustomValues): unknown => {
      try {
        return configure(pristine, values);
      } catch (error) {
        return error;
      }
    };
    expect(thrown({ rendezvousIp: 'a.example' })).toMatchObject({
      code: 'customize.rendezvous-ip',
    });
    for (const rendezvousIp of [
      '0.0.0.0',
      '127.0.0.1',
      '224.0.0.1',
      '255.255.255.255',
      '::',
      '::1',
      'ff02::1',
      'fe80::1%eth0',
    ]) {
      expect(thrown({ rendezvousIp })).toMatchObject({ code: 'customize.rendezvous-ip' });
    }
    expect(thrown({ rendezvousIp: '223.255.0.1' })).toEqual(expect.any(String));
    expect(
      thrown({ hosts: [{ networkConfig: NETWORK, interfaces: [], source: 'nm.yaml' }] }),
    ).toMatchObject({
      message: expect.stringMatching(/^no interface in nm.yaml has a mac/) as unknown,
    });
    const interfaces = Array.from({ length: 2 }, () => ({
      name: 'eth0',
      macAddress: '52:54:00:00:00:01',
    }));
    expect(thrown({ hosts: [{ networkConfig: NETWORK, interfaces }] })).toMatchObject({
      code: 'nmstate.interfaces',
    });
    expect(thrown({ ignitionOverride: '{"ignition":{"version":"3.9.0"}}' })).toMatchObject({
      code: 'ignition.version',
    });
  });
});

describe('the rendezvous host', () => {
  const pristine = standInForInstaller('B', PRISTINE);
  const withAddress = (name: string, ...addresses: readonly string[]) => ({
    networkConfig: `interfaces:\n  - name: ${name}\n    type: ethernet\n    ipv4: { enabled: true, address: [${addresses
      .map((ip) => `{ ip: ${ip}, prefix-length: 24 }`)
      .join(', ')}] }\n`,
    interfaces: [{ name, macAddress: `52:54:00:00:00:${addresses[0]?.slice(-2) ?? '99'}` }],
  });
  const addressOf = (config: string): string | undefined =>
    readRendezvousIp(parseIgnition(config, 'a config').storage?.files ?? []);

  it('is the first host with an address, in the given order', () => {
    const hosts = [
      withAddress('eth0'),
      withAddress('eth1', '192.0.2.12', '192.0.2.13'),
      withAddress('eth0', '192.0.2.11'),
    ];
    const config = configure(pristine, { hosts });
    expect(addressOf(config)).toBe('192.0.2.12');
    expect(findHost(parseIgnition(config, 'a config').storage?.files ?? [], '192.0.2.12')).toBe(
      'host1',
    );
  });

  it('is not chosen where it is given, or set and of no network that is replaced', () => {
    const hosts = [withAddress('eth0', '192.0.2.10')];
    expect(addressOf(configure(pristine, { hosts, rendezvousIp: '::ffff:192.0.2.1' }))).toBe(
      '192.0.2.1',
    );
    const set = configure(pristine, { rendezvousIp: '192.0.2.99' });
    expect(addressOf(configure(set, { hosts }, pristine))).toBe('192.0.2.99');
    const chosen = configure(pristine, { hosts: [withAddress('eth0', '192.0.2.20')] });
    expect(addressOf(configure(chosen, { hosts }, pristine))).toBe('192.0.2.10');
  });

  it('is not set for hosts without an address', () => {
    expect(addressOf(configure(pristine, { hosts: [withAddress('eth0')] }))).toBeUndefined();
  });
});

describe('time servers', () => {
  const fileOf = (config: string, path: string) =>
    parseIgnition(config, 'a config').storage?.files?.find((file) => file.path === path);
  const specOf = (config: string): unknown => {
    const file = fileOf(config, INFRA_ENV) ?? {};
    return (parse(decodeFileContent(file)?.toString() ?? '') as { readonly spec: unknown }).spec;
  };

  it('stay exclusive on a medium of agents, and replace those from before', () => {
    const pristine = standInForInstaller('B', PRISTINE);
    const added = configure(pristine, { ntpSources: ['a.example'] });
    expect(specOf(added)).toMatchObject({ additionalNTPSources: ['a.example'] });
    const exclusive = configure(added, { exclusiveNtpSources: ['b.example'] });
    expect(specOf(exclusive)).toMatchObject({ ntpSources: ['b.example'] });
    expect(specOf(exclusive)).not.toHaveProperty('additionalNTPSources');
  });

  it('are added to the configuration of chrony on other media, or replace it', () => {
    const path = '/etc/chrony.conf';
    expect(fileOf(configure(undefined, { ntpSources: ['a.example'] }), path)).toMatchObject({
      overwrite: false,
      append: [{ source: expect.stringContaining('data:') as unknown }],
    });
    const file = fileOf(configure(undefined, { exclusiveNtpSources: ['a.example'] }), path) ?? {};
    expect(decodeFileContent(file)?.toString()).toMatch(/^server a.example iburst\ndriftfile/);
  });
});

it('an InfraEnv for another architecture than that of the medium is refused', () => {
  const infraEnv = { spec: { cpuArchitecture: 'aarch64' } };
  expect(() => configure(standInForInstaller('B', PRISTINE), { infraEnv })).toThrow(
    expect.objectContaining({
      code: 'customize.architecture',
      expected: 'x86_64',
      found: 'aarch64',
    }),
  );
});

describe('a config whose parts lie inside configs that it merges', () => {
  const inside = standInForInstaller('C', PRISTINE);
  const source = `data:;base64,${gzipSync(inside).toString('base64')}`;
  const later = { source: 'https://example.com/later.ign' };
  const outside = JSON.stringify({
    ignition: { version: '3.3.0', config: { merge: [{ source, compression: 'gzip' }, later] } },
  });

  it('is configured as if they were its own, and then is one config', () => {
    const { ignition, ...flat } = parseIgnition(configure(outside, VALUES), 'flat');
    const alone = parseIgnition(configure(inside, VALUES), 'alone');
    const paths = (files: readonly { readonly path: string }[] = []): readonly string[] =>
      files.map(({ path }) => path).toSorted();
    expect(ignition).toEqual({ version: '3.3.0', config: { merge: [later] } });
    expect(paths(flat.storage?.files)).toEqual(paths(alone.storage?.files));
    const [text, expected] = [flat, alone].map(({ storage }) =>
      decodeFileContent(storage?.files?.find(({ path }) => path === INFRA_ENV) ?? {})?.toString(),
    );
    expect(text).toBe(expected);
  });

  it('stays as it is written where no value is inside them', () => {
    const { ignition, storage } = parseIgnition(configure(outside, { trustBundle: 'PEM' }), 'kept');
    const hostnames = [{ macAddress: '52:54:00:00:00:01', name: 'a' }];
    const kept = parseIgnition(configure(outside, { hostnames }), 'kept');
    expect(kept.ignition.config?.merge).toEqual([{ source, compression: 'gzip' }, later]);
    expect(kept.storage?.files?.map(({ path }) => path)).toEqual([
      '/etc/assisted/hostnames/52:54:00:00:00:01',
    ]);
    // The InfraEnv inside has the certificates too, so they become one config.
    expect(ignition.config?.merge).toEqual([later]);
    expect(storage?.files?.length).toBeGreaterThan(2);
  });
});

describe('overrides of install-config', () => {
  const path = '/etc/assisted/manifests/agent-cluster-install.yaml';
  const medium = (text?: string): string => {
    const config = parseIgnition(standInForInstaller('B', PRISTINE), 'a config');
    const files = text === undefined ? [] : [textFile(path, text, 0o600)];
    return JSON.stringify({
      ...config,
      storage: { ...config.storage, files: [...(config.storage?.files ?? []), ...files] },
    });
  };
  const install = (annotations = ''): string =>
    `apiVersion: extensions.hive.openshift.io/v1beta1\nkind: AgentClusterInstall\nmetadata:\n${annotations}  name: edge\nspec:\n  sshPublicKey: key\n`;
  const annotate = (json: string): string =>
    install(`  annotations:\n    agent-install.openshift.io/install-config-overrides: '${json}'\n`);
  const put = (text: string, installOverrides: string): string | undefined => {
    const { storage } = parseIgnition(configure(medium(text), { installOverrides }), 'a config');
    const file = storage?.files?.find((each) => each.path === path);
    return file && decodeFileContent(file)?.toString('utf8');
  };

  it('become the annotation of the AgentClusterInstall of a medium', () => {
    expect(put(install(), '{"fips": true}')).toBe(annotate('{"fips": true}'));
  });

  it('are merged over those that the medium has', () => {
    const own = '{"fips":true,"networking":{"networkType":"A","clusterNetwork":[]}}';
    const given = '{"networking":{"networkType":"B"},"featureGates":["C"]}';
    expect(put(annotate(own), given)).toBe(
      annotate(
        '{"fips":true,"networking":{"networkType":"B","clusterNetwork":[]},"featureGates":["C"]}',
      ),
    );
  });

  it('are named on a medium that does not describe its cluster', () => {
    const values = { installOverrides: '{"fips":true}' };
    for (const text of [undefined, '']) {
      const config = configure(medium(text), values);
      expect(config).toBe(configure(medium(text), {}));
      expect(listWithoutPlace(config, values)).toEqual([
        expect.stringMatching(
          /install-config-overrides has no place on the medium and is ignored:/,
        ),
      ]);
    }
    expect(listWithoutPlace(configure(medium(install()), values), values)).toEqual([]);
    expect(listWithoutPlace(undefined, {})).toEqual([]);
  });
});
