import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import {
  type ConfigIsoWorld,
  inFolder,
  manifestOf,
  siteTree,
} from '../../support/config-iso-world.ts';
import {
  AS_HOSTS,
  AS_INSTANCE,
  buildAgain,
  findResource,
  HOST_TABLE,
  readResources,
} from '../../support/exports.ts';
import type { Tree } from '../../support/site-archives.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

const exportSites = async (
  ...args: readonly string[]
): Promise<{ readonly exitCode: number; readonly told: string }> => {
  const { exitCode, stderr: told } = await world.run('config-iso', 'export', 'sites', ...args);
  return { exitCode, told };
};

const ALPHA = siteTree('alpha', {
  number: 1,
  install: ['proxy: {httpProxy: "http://proxy.example:3128", noProxy: ".example"}'],
  imageBased: ['nodeLabels: {example.com/zone: "on"}'],
  manifests: {
    'a.yaml': manifestOf('A'),
    'b.yml': `# "on", \u00e9 and a tab:\t\r\n${manifestOf('B')}---\n${manifestOf('C')}  \n`,
  },
});

/** A release registry has no place in a ClusterInstance. */
const withoutRegistry = (tree: Tree): Tree =>
  Object.fromEntries(
    Object.entries(tree).map(([path, text]) => [
      path,
      text.replace('releaseRegistry: quay.io\n', ''),
    ]),
  );

describe('config-iso export --as clusterinstance of a site from a seed', () => {
  it('writes what gives the same ISO again, byte by byte', async () => {
    world.write({ ...inFolder('sites', withoutRegistry(ALPHA)), 'hosts.csv': HOST_TABLE });
    await world.build(keys, { sites: 'sites', out: 'out' });
    expect(await exportSites(...AS_INSTANCE)).toMatchObject({ exitCode: 0 });
    expect(await buildAgain({ world, keys }, { from: 'exported', to: 'other' })).toEqual(
      readFileSync(world.at('out/alpha.iso')),
    );
  });

  it('names what a ClusterInstance has no place for, where it is written', async () => {
    world.write({ ...inFolder('sites', ALPHA), 'hosts.csv': HOST_TABLE });
    const { exitCode, told } = await exportSites(...AS_INSTANCE);
    expect([exitCode, told]).toEqual([
      0,
      expect.stringMatching(
        /sites\/alpha\/image-based-config.yaml:4:\d+: releaseRegistry: warning: releaseRegistry has no place in a ClusterInstance/,
      ),
    ]);
  });

  it('refuses a host whose controller nobody names, and writes the other sites', async () => {
    world.write({
      ...inFolder('sites', ALPHA, siteTree('beta', { number: 2 })),
      'hosts.csv': HOST_TABLE,
    });
    const { exitCode, told } = await exportSites(...AS_INSTANCE);
    expect([exitCode, told]).toEqual([
      3,
      expect.stringMatching(
        /hostname: a node of a ClusterInstance has the address of its controller/,
      ),
    ]);
    expect(readdirSync(world.at('exported'))).toEqual(['alpha']);
  });
});

const SITE = { ...inFolder('sites', ALPHA), 'hosts.csv': HOST_TABLE };

describe('the files of config-iso export', () => {
  it('are readable by their owner alone, and stay as they are when they are written again', async () => {
    world.write(SITE);
    const listed = await world.run('config-iso', 'export', 'sites', ...AS_INSTANCE, '-o', 'json');
    const { sites } = JSON.parse(listed.stdout) as {
      sites: { name: string; files: string[]; written: number }[];
    };
    const names = ['namespace', 'secrets', 'extra-manifests', 'clusterinstance', 'kustomization'];
    const files = names.map((name) => `alpha/${name}.yaml`);
    expect(sites).toMatchObject([{ name: 'alpha', files, written: files.length }]);
    const stats = files.map((file) => statSync(world.at('exported', file)));
    expect(stats.map(({ mode }) => mode & 0o777)).toEqual(files.map(() => 0o600));
    expect(readdirSync(world.at('exported/alpha')).sort()).toEqual(
      names.map((name) => `${name}.yaml`).sort(),
    );
    const again = await world.run('config-iso', 'export', 'sites', ...AS_INSTANCE);
    expect(again.stdout).toContain(
      '1 of 1 sites are in exported as clusterinstance: 5 files, 0 of them written',
    );
    expect(files.map((file) => statSync(world.at('exported', file)).ino)).toEqual(
      stats.map(({ ino }) => ino),
    );
  });

  it('replace another file with --force only, and none of a site is written before all of them may be', async () => {
    world.write({ ...SITE, 'exported/alpha/kustomization.yaml': 'mine' });
    const refused = await exportSites(...AS_INSTANCE);
    expect([refused.exitCode, refused.told]).toEqual([3, expect.stringContaining('output.exists')]);
    expect(readdirSync(world.at('exported/alpha'))).toEqual(['kustomization.yaml']);
    expect(await exportSites(...AS_INSTANCE, '--force')).toMatchObject({ exitCode: 0 });
    expect(findResource(world, 'exported/alpha/kustomization.yaml', 'Kustomization')).toMatchObject(
      {
        resources: [
          'namespace.yaml',
          'secrets.yaml',
          'extra-manifests.yaml',
          'clusterinstance.yaml',
        ],
      },
    );
  });

  it('never replace a link, nor what is read', async () => {
    world.write({ ...SITE, 'exported/alpha/note': '' });
    writeFileSync(world.at('target'), 'mine');
    symlinkSync(world.at('target'), world.at('exported/alpha/secrets.yaml'));
    const { exitCode, told } = await exportSites(...AS_INSTANCE, '--force');
    expect([exitCode, told]).toEqual([3, expect.stringContaining('output.link')]);
    expect(readFileSync(world.at('target'), 'utf8')).toBe('mine');
    const inside = await exportSites(...AS_INSTANCE, '--out', 'sites/alpha');
    expect([inside.exitCode, inside.told]).toEqual([
      2,
      expect.stringContaining('usage.out-inside'),
    ]);
  });

  it('need the release of the hub, but for an import', async () => {
    world.write(SITE);
    const { exitCode, told } = await exportSites('--as', 'bmh');
    expect([exitCode, told]).toEqual([2, expect.stringContaining('usage.cluster-image-set')]);
  });
});

describe('the table of --hosts', () => {
  it.each([
    ['names a host twice', 'host\nalpha\nalpha\n', /hosts.csv:3:1: has the host of line 2 again/],
    [
      'has one controller for two hosts',
      'host,bmcAddress\na,redfish://192.0.2.1\nb,redfish://192.0.2.1\n',
      /hosts.csv:3:1: has the controller of line 2 again/,
    ],
    ['names no host', 'host,bmcAddress\n,redfish://192.0.2.1\n', /hosts.csv:2:1: names no host/],
    [
      'has no MAC address',
      'host,bootMACAddress\na,zz\n',
      /hosts.csv:2:1: bootMACAddress is not a MAC/,
    ],
  ])('is refused by its line if it %s', async (_, table, expected) => {
    world.write({ ...SITE, 'hosts.csv': table });
    const { exitCode, told } = await exportSites(...AS_INSTANCE);
    expect([exitCode, told]).toEqual([3, expect.stringMatching(expected)]);
    expect(readdirSync(world.directory)).not.toContain('exported');
  });

  it('goes before the files of a site, and the row of a site before that of any', async () => {
    const rows = [
      'site;host;bmcAddress;bootMACAddress;rack',
      ';alpha;redfish://192.0.2.1;;',
      'alpha;ALPHA;redfish://192.0.2.2;5254.0000.00ff;7',
    ];
    world.write({ ...SITE, 'hosts.csv': rows.join('\n') });
    const { exitCode, told } = await exportSites(...AS_INSTANCE);
    expect([exitCode, told]).toEqual([
      0,
      expect.stringContaining('user and password of the controller of alpha are not known'),
    ]);
    const { spec } = findResource(world, 'exported/alpha/clusterinstance.yaml', 'ClusterInstance');
    expect(spec['nodes']).toMatchObject([
      { bmcAddress: 'redfish://192.0.2.2', bootMACAddress: '52:54:00:00:00:ff' },
    ]);
  });
});

describe('config-iso export --as bmh of a site from a seed', () => {
  it('writes the host, its network and its installation, joined by their names', async () => {
    world.write({
      ...inFolder(
        'sites',
        siteTree('alpha', {
          install: ['imageDigestSources: [{source: quay.io/a, mirrors: [mirror.example/a]}]'],
        }),
      ),
      'hosts.csv': HOST_TABLE,
    });
    const { exitCode, told } = await exportSites(...AS_HOSTS);
    expect([exitCode, told]).toEqual([0, expect.not.stringContaining('imageDigestSources has')]);
    const [host, network] = readResources(world, 'exported/alpha/hosts.yaml');
    expect(host).toMatchObject({
      kind: 'BareMetalHost',
      metadata: { name: 'alpha', namespace: 'alpha' },
      spec: {
        bmc: {
          address: 'redfish+https://192.0.2.200/redfish/v1',
          credentialsName: 'alpha-bmc-secret',
        },
        bootMACAddress: '52:54:00:00:00:01',
        externallyProvisioned: true,
        online: false,
        preprovisioningNetworkDataName: 'alpha',
      },
    });
    const { nmstate } = network?.['data'] as { nmstate: string };
    expect(Buffer.from(nmstate, 'base64').toString()).toContain('- ip: 192.168.0.1');
    const [deployment, install] = readResources(world, 'exported/alpha/cluster.yaml');
    expect(deployment?.spec).toMatchObject({
      clusterInstallRef: { kind: 'ImageClusterInstall', name: 'alpha' },
      pullSecretRef: { name: 'alpha-pull-secret' },
    });
    expect(install?.spec).toMatchObject({
      bareMetalHostRef: { name: 'alpha', namespace: 'alpha' },
      imageSetRef: { name: 'img4.21.3' },
      imageDigestSources: [{ source: 'quay.io/a', mirrors: ['mirror.example/a'] }],
    });
    const secrets = readResources(world, 'exported/alpha/secrets.yaml');
    expect(secrets.map(({ metadata }) => metadata['name'])).toEqual([
      'alpha-pull-secret',
      'alpha-bmc-secret',
    ]);
    expect(secrets[1]?.['data']).toEqual({
      username: Buffer.from('root').toString('base64'),
      password: Buffer.from('word0').toString('base64'),
    });
  });

  it('warns of a host whose controller nobody names', async () => {
    world.write({ ...SITE, 'hosts.csv': 'host\n' });
    const { exitCode, told } = await exportSites(...AS_HOSTS);
    expect([exitCode, told]).toEqual([
      0,
      expect.stringContaining('the controller of alpha is not known'),
    ]);
  });
});

describe('config-iso export --as acm-import', () => {
  const IMPORT = ['--as', 'acm-import', '--built', 'out'];

  it('writes the kubeconfig of the build into the Secret that imports the cluster', async () => {
    world.write(SITE);
    await world.build(keys, { sites: 'sites', out: 'out' });
    expect(await exportSites(...IMPORT)).toMatchObject({ exitCode: 0 });
    const secret = findResource(world, 'exported/alpha/secrets.yaml', 'Secret');
    expect(secret.metadata).toEqual({ name: 'auto-import-secret', namespace: 'alpha' });
    const { kubeconfig, autoImportRetry } = secret['data'] as Record<string, string>;
    expect(Buffer.from(kubeconfig ?? '', 'base64')).toEqual(
      readFileSync(world.at('out/alpha/auth/kubeconfig')),
    );
    expect(Buffer.from(autoImportRetry ?? '', 'base64').toString()).toBe('5');
    const [cluster, addons] = readResources(world, 'exported/alpha/managed-cluster.yaml');
    expect(cluster).toMatchObject({
      kind: 'ManagedCluster',
      metadata: { name: 'alpha' },
      spec: { hubAcceptsClient: true },
    });
    expect(addons?.spec).toMatchObject({
      clusterName: 'alpha',
      policyController: { enabled: true },
    });
  });

  it('leaves the Secret out, with a warning, for a site that was not built', async () => {
    world.write(SITE);
    const { exitCode, told } = await exportSites(...IMPORT);
    expect([exitCode, told]).toEqual([
      0,
      expect.stringContaining('no kubeconfig of the site was found'),
    ]);
    expect(readdirSync(world.at('exported/alpha')).sort()).toEqual([
      'kustomization.yaml',
      'managed-cluster.yaml',
      'namespace.yaml',
    ]);
  });

  it('refuses the kubeconfig of another cluster', async () => {
    world.write({
      ...SITE,
      'out/alpha/auth/kubeconfig': 'server: https://api.other.example:6443\n',
    });
    const { exitCode, told } = await exportSites(...IMPORT);
    expect([exitCode, told]).toEqual([3, expect.stringContaining('sites.kubeconfig')]);
  });
});
