import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planConfigTree, type ConfiguredSite } from '../../../src/sites/compose/tree.ts';
import { formatGoJson } from '../../../src/shape/go-json.ts';
import type { SiteIdentity } from '../../../src/sites/identity/identity.ts';

const pair = (name: string) => ({ privateKey: `${name} key\n`, certificate: `${name} cert\n` });
const IDENTITY: SiteIdentity = {
  clusterId: '3c0d4d0a-6d0c-4a3f-9a55-1c6a3f8b0f11',
  infraId: 'alpha-b7x2q',
  signers: {
    loadBalancer: pair('lb'),
    localhost: pair('localhost'),
    serviceNetwork: pair('service'),
    ingress: { ...pair('ingress'), commonName: 'ingress-operator@1767323045' },
    adminKubeconfig: pair('admin'),
  },
  adminClient: pair('client'),
  password: { text: 'aaaaa-bbbbb-ccccc-ddddd', bcrypt: '$2a$10$hash' },
  madeAt: 1_767_323_045,
};
const SMALL: ConfiguredSite = {
  install: {
    clusterName: 'alpha',
    baseDomain: 'edge.example',
    sshKey: '',
    pullSecret: '{"auths":{}}',
  },
  imageBased: { additionalNTPSources: [], hostname: '', nodeLabels: {} },
  extraManifests: [],
};
const install = (more: Partial<ConfiguredSite['install']>): ConfiguredSite => ({
  ...SMALL,
  install: { ...SMALL.install, ...more },
});
const imageBased = (more: Partial<ConfiguredSite['imageBased']>): ConfiguredSite => ({
  ...SMALL,
  imageBased: { ...SMALL.imageBased, ...more },
});

const textOf = (site: ConfiguredSite, path: string): string | undefined => {
  const file = planConfigTree(site, IDENTITY).files.find((other) => other.path === path);
  return file && Buffer.from(file.bytes).toString('utf8');
};
const manifestOf = (site: ConfiguredSite): string =>
  textOf(site, '/cluster-configuration/manifest.json') ?? '';
const parse = (site: ConfiguredSite): Record<string, unknown> =>
  JSON.parse(manifestOf(site)) as Record<string, unknown>;

describe('the tree of a configuration ISO', () => {
  it('names one machine network besides the list for seeds that read no list', () => {
    const machineNetworks = ['192.0.2.0/24', '2001:db8::/64'];
    expect(parse(install({ machineNetworks }))).not.toHaveProperty('machine_network');
    const machineNetwork = '192.0.2.0/24';
    expect(parse(install({ machineNetworks, machineNetwork }))).toMatchObject({
      machine_network: machineNetwork,
      machine_networks: machineNetworks,
    });
  });

  it('has its three directories and one file for the smallest site', () => {
    const { directories, files } = planConfigTree(SMALL, IDENTITY);
    expect(directories).toEqual([
      '/cluster-configuration',
      '/cluster-configuration/manifests',
      '/extra-manifests',
    ]);
    expect(files.map(({ path, mode }) => [path, mode])).toEqual([
      ['/cluster-configuration/manifest.json', 0o600],
    ]);
  });

  it('carries extra manifests byte by byte', () => {
    const bytes = Uint8Array.of(0xff, 0, 10);
    const site = { ...SMALL, extraManifests: [{ name: 'a.yaml', bytes }] };
    const file = planConfigTree(site, IDENTITY).files.at(-1);
    expect(file?.path).toBe('/extra-manifests/a.yaml');
    expect(file?.bytes).toEqual(bytes);
  });

  it('has the mirrors of an earlier producer only for a site without its own mirrors', () => {
    const retained = { imageDigestSources: [{ source: 'quay.io/a', mirrors: ['kept.example'] }] };
    const mirrorsOf = (site: ConfiguredSite) =>
      planConfigTree(site, IDENTITY, retained)
        .files.filter(({ path }) => path.endsWith('image-digest-mirror-set.json'))
        .map(({ bytes }) => Buffer.from(bytes).toString('utf8'));
    expect(mirrorsOf(SMALL)).toEqual([expect.stringContaining('kept.example')]);
    const own = install({
      imageDigestSources: [{ source: 'quay.io/a', mirrors: ['new.example'] }],
    });
    expect(mirrorsOf(own)).toEqual([expect.not.stringContaining('kept.example')]);
  });

  it('has a mirror set if the key is present, even without entries', () => {
    const path = '/cluster-configuration/manifests/image-digest-mirror-set.json';
    expect(textOf(SMALL, path)).toBeUndefined();
    expect(textOf(install({ imageDigestSources: [] }), path)).toBe(
      '{"kind":"ImageDigestMirrorSet","apiVersion":"config.openshift.io/v1","metadata":{"name":"image-digest-mirror"},"spec":{"imageDigestMirrors":[]},"status":{}}',
    );
    const imageDigestSources = [
      {
        source: 'quay.io/b',
        mirrors: ['m.example/b', 'n.example/b'],
        sourcePolicy: 'NeverContactSource',
      },
      { source: 'quay.io/a', mirrors: [] },
    ];
    expect(textOf(install({ imageDigestSources }), path)).toBe(
      '{"kind":"ImageDigestMirrorSet","apiVersion":"config.openshift.io/v1","metadata":{"name":"image-digest-mirror"},"spec":{"imageDigestMirrors":[{"source":"quay.io/b","mirrors":["m.example/b","n.example/b"],"mirrorSourcePolicy":"NeverContactSource"},{"source":"quay.io/a"}]},"status":{}}',
    );
  });
});

describe('manifest.json', () => {
  it('has exactly these bytes for the smallest site', () => {
    expect(manifestOf(SMALL)).toBe(
      '{"additionalTrustBundle":{"userCaBundle":"","proxyConfigmapName":"","proxyConfigmapBundle":""},' +
        '"api_version":1,"base_domain":"edge.example","cluster_id":"3c0d4d0a-6d0c-4a3f-9a55-1c6a3f8b0f11",' +
        '"cluster_name":"alpha","infra_id":"alpha-b7x2q","kubeadmin_password_hash":"$2a$10$hash",' +
        '"KubeconfigCryptoRetention":{"KubeAPICrypto":{"ServingCrypto":{' +
        '"localhost_signer_private_key":"localhost key\\n","service_network_signer_private_key":"service key\\n",' +
        '"loadbalancer_external_signer_private_key":"lb key\\n"},"ClientAuthCrypto":{"admin_ca_certificate":"admin cert\\n"}},' +
        '"IngresssCrypto":{"ingress_ca":"ingress key\\n","ingress_certificate_cn":"ingress-operator@1767323045"}},' +
        '"pull_secret":"{\\"auths\\":{}}"}',
    );
  });

  it('has every key in its place for a site with all settings', () => {
    const site: ConfiguredSite = {
      install: {
        ...SMALL.install,
        sshKey: 'ssh-ed25519 AAAA',
        machineNetworks: ['fd01::/64', '10.0.0.0/24'],
        additionalTrustBundle: 'PEM',
        additionalTrustBundlePolicy: 'Always',
        proxy: { noProxy: 'x', httpProxy: 'http://p' },
      },
      imageBased: {
        additionalNTPSources: ['n'],
        hostname: 'node',
        networkConfig: 'interfaces: []\n',
        releaseRegistry: 'r.example',
        nodeLabels: { 'b': '1', 'a': '2', '10': '', '9': '' },
      },
      extraManifests: [],
    };
    expect(Object.keys(parse(site))).toEqual([
      ...['additionalTrustBundle', 'api_version', 'base_domain', 'cluster_id', 'cluster_name'],
      ...['chrony_config', 'hostname', 'infra_id', 'kubeadmin_password_hash'],
      ...['KubeconfigCryptoRetention', 'machine_networks', 'raw_nm_state_config'],
      ...['release_registry', 'ssh_key', 'proxy', 'pull_secret', 'node_labels'],
    ]);
    expect(manifestOf(site)).toContain('"proxy":{"httpProxy":"http://p","noProxy":"x"}');
    expect(manifestOf(site)).toContain('"node_labels":{"10":"","9":"","a":"2","b":"1"}');
    expect(manifestOf(site)).toContain('"machine_networks":["fd01::/64","10.0.0.0/24"]');
    expect(manifestOf(site)).not.toMatch(/\n/);
  });

  it('keeps the base domain as written, including its last dot', () => {
    expect(parse(install({ baseDomain: 'edge.example.' }))['base_domain']).toBe('edge.example.');
  });

  it('starts the time configuration with a newline and ends it without', () => {
    const site = imageBased({ additionalNTPSources: ['10.0.0.1', 'time.example'] });
    expect(parse(site)['chrony_config']).toBe(
      '\npool 0.rhel.pool.ntp.org iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nlogdir /var/log/chrony\nserver 10.0.0.1 iburst\nserver time.example iburst',
    );
  });

  const proxy = { httpProxy: 'http://proxy.example' };
  it.each([
    ['nothing without a bundle', '', 'Always', proxy, ['', '', '']],
    ['all of it with Always', 'PEM', 'Always', undefined, ['PEM', 'user-ca-bundle', 'PEM']],
    [
      'all of it with Proxyonly and a proxy',
      'PEM',
      'Proxyonly',
      proxy,
      ['PEM', 'user-ca-bundle', 'PEM'],
    ],
    ['the bundle with Proxyonly and no proxy', 'PEM', 'Proxyonly', undefined, ['PEM', '', '']],
    ['the bundle with a proxy and no policy', 'PEM', undefined, proxy, ['PEM', '', '']],
    ['the bundle with neither', 'PEM', undefined, undefined, ['PEM', '', '']],
  ])('has the trust bundle that the node needs: %s', (...row) => {
    const [, bundle, policy, proxyOrNone, expected] = row;
    const site = install({
      additionalTrustBundle: bundle,
      ...(policy !== undefined && { additionalTrustBundlePolicy: policy }),
      ...(proxyOrNone && { proxy: proxyOrNone }),
    });
    expect(Object.values(parse(site)['additionalTrustBundle'] as object)).toEqual(expected);
  });

  it("escapes the characters that Go's encoding/json escapes", () => {
    expect(formatGoJson('<a> & \u2028\u2029 "q" \\ \n\t\u0001 ü')).toBe(
      '"\\u003ca\\u003e \\u0026 \\u2028\\u2029 \\"q\\" \\\\ \\n\\t\\u0001 ü"',
    );
  });

  it('parses back to every text it was given', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (pullSecret, label) => {
        const manifest = parse({
          ...install({ pullSecret }),
          imageBased: { ...SMALL.imageBased, nodeLabels: { [label]: pullSecret } },
        });
        expect(manifest['pull_secret'] ?? '').toBe(pullSecret);
        expect(Object.entries(manifest['node_labels'] as object)).toEqual([[label, pullSecret]]);
      }),
    );
  });
});
