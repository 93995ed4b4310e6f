import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { consumeConfigIso, type Consumed, type SeedInfo } from '../support/config-iso-consumer.ts';
import {
  SSH_KEY,
  createConfigIsoWorld,
  inFolder,
  manifestOf,
  siteTree,
  type ConfigIsoWorld,
} from '../support/config-iso-world.ts';
import { makeKeyRing } from '../support/site-identity.ts';
import { requireTool } from '../support/tools.ts';

const SEED: SeedInfo = {
  base_domain: 'seed.example',
  cluster_name: 'seed',
  sno_hostname: 'seed-node',
  node_ips: ['10.0.0.2'],
  machine_networks: ['10.0.0.0/24'],
  has_proxy: false,
  cluster_network_cidr: '10.128.0.0/14',
  service_network_cidr: '172.30.0.0/16',
  ingress_certificate_cn: 'ingress-operator@1700000000',
  additionalTrustBundle: { proxyConfigmapName: '' },
};
const PROXIED: SeedInfo = { ...SEED, has_proxy: true };

const PROXY = ['proxy: {httpProxy: "http://proxy.example:3128", noProxy: "z.example,a.example"}'];
const MANY =
  `${manifestOf('One')}---\nkind: List\nitems:\n` +
  '- {apiVersion: v1, kind: Two, metadata: {name: b}}\n';
const FULL = {
  install: ['imageDigestSources: [{source: quay.io/a, mirrors: [quay.io/b]}]'],
  imageBased: ['nodeLabels: {rack: r1, kubernetes.io/hostname: other}'],
  manifests: { '2-many.yaml': MANY, '1-one.yaml': manifestOf('Zero', 'z') },
};

const hasTools = ['blkid', 'bsdtar', 'genisoimage'].map((tool) => requireTool(tool)).every(Boolean);

describe.skipIf(!hasTools)('a node with a seed image', () => {
  let world: ConfigIsoWorld;
  beforeAll(async () => {
    world = await createConfigIsoWorld();
    const keys = await makeKeyRing();
    const full = siteTree('full', { number: 1, ...FULL });
    const proxied = siteTree('proxied', { number: 2, install: PROXY });
    world.write(inFolder('sites', full, proxied));
    const { failed } = await world.build(keys, { sites: 'sites', out: 'out' });
    expect(failed).toEqual([]);
    await keys.close();
  }, 60_000);
  afterAll(() => world.close());

  const consume = async (
    iso: string,
    node: {
      readonly seed?: SeedInfo;
      readonly detectedIps?: readonly string[];
      readonly root?: string;
    } = {},
  ): Promise<Consumed> => {
    const root = node.root ?? (await mkdtemp(world.at('node-')));
    const { seed = SEED, detectedIps = ['192.168.0.1'] } = node;
    return consumeConfigIso(iso, { seed, detectedIps, root });
  };

  it('becomes the cluster of its site', async () => {
    const root = await mkdtemp(world.at('node-'));
    const { applied, clusterId, labels } = await consume(world.at('out/full.iso'), { root });
    const { sites } = await world.readListing('out');
    expect(clusterId).toBe(sites[0]?.clusterId);
    expect(labels).toEqual(['rack']);
    expect(applied).toEqual([
      'ImageDigestMirrorSet/image-digest-mirror',
      'Zero/z',
      'One/a',
      'Two/b',
    ]);
    const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8');
    expect(await read('home/core/.ssh/authorized_keys.d/ib-early-access')).toBe(SSH_KEY);
    expect(await read('etc/default/nodeip-configuration')).toBe('KUBELET_NODEIP_HINT=192.168.0.0');
    expect(await read('etc/default/sno_dnsmasq_configuration_overrides')).toBe(
      'SNO_CLUSTER_NAME_OVERRIDE=full\nSNO_BASE_DOMAIN_OVERRIDE=edge.example\nSNO_DNSMASQ_IP_OVERRIDE=192.168.0.1',
    );
    expect(await read('nmstate.yaml')).toContain(
      'interfaces:\n- ipv4:\n    address:\n    - ip: 192.168.0.1\n',
    );
  });

  it('gives recert the keys of the kubeconfig, and the names of both clusters', async () => {
    const root = await mkdtemp(world.at('node-'));
    await consume(world.at('out/full.iso'), { root });
    const openshift = join(root, 'opt/openshift');
    const config = JSON.parse(
      await readFile(join(openshift, 'recert_config.json'), 'utf8'),
    ) as Record<string, unknown>;
    const { sites } = await world.readListing('out');
    expect(config['cluster_rename']).toBe(`full:edge.example:${sites[0]?.infraId ?? ''}`);
    expect(config['cn_san_replace_rules']).toEqual([
      'system:node:seed-node,system:node:full',
      'seed-node,full',
      'api.seed.seed.example,api.full.edge.example',
      'api-int.seed.seed.example,api-int.full.edge.example',
      '*.apps.seed.seed.example,*.apps.full.edge.example',
      '10.0.0.2,192.168.0.1',
      'ingress-operator@1700000000,ingress-operator@1767323045',
    ]);
    expect(config['machine_network_cidr']).toEqual(['192.168.0.0/16']);
    for (const name of ['loadbalancer-serving-signer.key', 'admin-kubeconfig-client-ca.crt']) {
      expect((await stat(join(openshift, 'kubeconfig-crypto', name))).mode & 0o777).toBe(0o600);
    }
  });

  it('adds the same entries to the proxy of its site as a cluster does', async () => {
    const root = await mkdtemp(world.at('node-'));
    const node = { seed: PROXIED, root, detectedIps: ['192.168.0.2'] };
    await consume(world.at('out/proxied.iso'), node);
    const recert = await readFile(join(root, 'opt/openshift/recert_config.json'), 'utf8');
    const one =
      'http://proxy.example:3128||.cluster.local,.svc,10.128.0.0/14,127.0.0.1,172.30.0.0/16,192.168.0.0/16,a.example,api-int.proxied.edge.example,localhost,z.example';
    expect(recert).toContain(`"proxy":"${one}|${one}"`);
  });

  it('stops if seed and site are of different kinds', async () => {
    const iso = world.at('out/full.iso');
    await expect(consume(iso, { seed: PROXIED })).rejects.toThrow('proxy configuration mismatch');
    await expect(consume(world.at('out/proxied.iso'))).rejects.toThrow(
      'proxy configuration mismatch',
    );
    const dual: SeedInfo = { ...SEED, node_ips: ['10.0.0.2', 'fd01::2'] };
    await expect(consume(iso, { seed: dual })).rejects.toThrow(
      'seed node IPs have the families "4 6"',
    );
    await expect(consume(iso, { detectedIps: ['fd02::1'] })).rejects.toThrow('families');
    const named: SeedInfo = {
      ...SEED,
      additionalTrustBundle: { proxyConfigmapName: 'user-ca-bundle' },
    };
    await expect(consume(iso, { seed: named })).rejects.toThrow('trusted CA of the proxy');
  });

  describe('with an ISO that was changed by hand', () => {
    /** The tree of a good ISO with a change, written by another program. */
    async function remake(change: {
      readonly label?: string;
      readonly manifest?: Readonly<Record<string, unknown>>;
      readonly without?: string;
    }): Promise<string> {
      const tree = await mkdtemp(world.at('tree-'));
      await runProcess('bsdtar', ['-x', '-f', world.at('out/full.iso'), '-C', tree]);
      const path = join(tree, 'cluster-configuration/manifest.json');
      await chmod(path, 0o600);
      const manifest = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
      await writeFile(path, JSON.stringify({ ...manifest, ...change.manifest }));
      if (change.without !== undefined) await rm(join(tree, change.without), { recursive: true });
      const label = change.label ?? 'cluster-config';
      await runProcess('genisoimage', ['-quiet', '-R', '-V', label, '-o', `${tree}.iso`, tree]);
      return `${tree}.iso`;
    }

    it('continues if no file that it needs was changed', async () => {
      const { clusterId } = await consume(await remake({ manifest: { future_key: 1 } }));
      expect(clusterId).toMatch(/^[0-9a-f-]{36}$/);
      await consume(await remake({ label: 'relocation-config', without: 'extra-manifests' }));
    });

    it('waits forever if the label has capital letters', async () => {
      await expect(consume(await remake({ label: 'CLUSTER-CONFIG' }))).rejects.toThrow(
        'no block device has a label to wait for, only CLUSTER-CONFIG',
      );
    });

    it.each([
      ['of another api_version', { api_version: 2 }, 'unsupported seed reconfiguration version 2'],
      ['without a pull secret', { pull_secret: '' }, 'pull secret was not provided'],
      ['with an empty cluster_id', { cluster_id: '' }, 'cluster id is empty'],
      [
        'without machine networks',
        { machine_networks: [] },
        'machine networks have the families ""',
      ],
      [
        'with a network of another family',
        { machine_networks: ['fd01::/64'] },
        'machine networks have the families "6"',
      ],
      [
        'with a proxy that the seed has not',
        { proxy: { httpProxy: 'http://p' } },
        'proxy configuration mismatch',
      ],
      ['without keys', { KubeconfigCryptoRetention: {} }, /.+/],
    ])('stops at a manifest %s', async (_what, manifest, message) => {
      await expect(consume(await remake({ manifest }))).rejects.toThrow(message);
    });

    it.each(['cluster-configuration/manifests', 'cluster-configuration/manifest.json'])(
      'stops if %s is missing',
      async (without) => {
        await expect(consume(await remake({ without }))).rejects.toThrow('ENOENT');
      },
    );
  });
});
