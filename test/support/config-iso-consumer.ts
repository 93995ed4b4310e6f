import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname, join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { runProcess } from '../../src/base/process.ts';
import { recertInputs } from './config-iso-recert.ts';

/** What a seed image says of itself in /var/seed_data/manifest.json; the keys are its own. */
export type SeedInfo = {
  readonly base_domain: string;
  readonly cluster_name: string;
  readonly node_ips: readonly string[];
  readonly sno_hostname: string;
  readonly has_proxy: boolean;
  readonly ingress_certificate_cn: string;
  readonly machine_networks: readonly string[];
  readonly cluster_network_cidr: string;
  readonly service_network_cidr: string;
  readonly additionalTrustBundle: { readonly proxyConfigmapName: string };
};

/** The members of manifest.json that the node reads; it knows more and refuses none. */
export type Reconfiguration = {
  readonly [key: string]: unknown;
  readonly api_version?: number;
  readonly base_domain?: string;
  readonly cluster_id?: string;
  readonly cluster_name?: string;
  readonly chrony_config?: string;
  readonly hostname?: string;
  readonly infra_id?: string;
  readonly kubeadmin_password_hash?: string;
  readonly machine_network?: string;
  readonly machine_networks?: readonly string[];
  readonly node_ip?: string;
  readonly node_ips?: readonly string[];
  readonly node_labels?: Readonly<Record<string, string>>;
  readonly proxy?: Proxy;
  readonly pull_secret?: string;
  readonly raw_nm_state_config?: string;
  readonly ssh_key?: string;
  readonly additionalTrustBundle?: TrustBundle;
  readonly KubeconfigCryptoRetention?: {
    readonly KubeAPICrypto?: {
      readonly ServingCrypto?: Readonly<Record<string, string>>;
      readonly ClientAuthCrypto?: Readonly<Record<string, string>>;
    };
    readonly IngresssCrypto?: Readonly<Record<string, string>>;
  };
};

type Proxy = {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
};

type TrustBundle = {
  readonly userCaBundle?: string;
  readonly proxyConfigmapName?: string;
  readonly proxyConfigmapBundle?: string;
};

/** What of a machine the site meets. */
export type Node = {
  readonly seed: SeedInfo;
  /** What the machine's own detection would find. */
  readonly detectedIps: readonly string[];
  /** An empty directory that stands for the root of the file system. */
  readonly root: string;
};

export type Consumed = {
  readonly manifest: Reconfiguration;
  /** `kind/name` of what was applied, in order. */
  readonly applied: readonly string[];
  /** Of ClusterVersion. */
  readonly clusterId: string;
  readonly labels: readonly string[];
};

/**
 * Does with a configuration ISO what a node does when it becomes the cluster of its site, in that
 * order, as far as files go. Written from the description of the node's agent, with nothing of ours.
 *
 * @throws Error with the words of the node, where it has words
 */
export async function consumeConfigIso(iso: string, node: Node): Promise<Consumed> {
  const { root, seed } = node;
  const openshift = join(root, 'opt/openshift');
  await copyByLabel(iso, openshift);
  const manifest = JSON.parse(
    await readFile(join(openshift, 'cluster-configuration/manifest.json'), 'utf8'),
  ) as Reconfiguration;
  await setAccess(manifest, root);
  const { hostname, nodeIps } = await setNetwork(manifest, node);
  checkFamilies(manifest, { seed, nodeIps });
  if (manifest.api_version !== 1) {
    throw new Error(`unsupported seed reconfiguration version ${String(manifest.api_version)}`);
  }
  const proxy = joinProxy(manifest, seed);
  await setTrust(manifest, root);
  await recertInputs({ manifest, seed, openshift, hostname, nodeIps, proxy });
  const applied = [
    ...(await applyManifests(join(openshift, 'cluster-configuration/manifests'))),
    ...(await applyManifests(join(openshift, 'extra-manifests'), true)),
  ];
  if (!manifest.cluster_id)
    throw new Error('cluster id is empty, automatic generation is not yet implemented');
  const labels = Object.keys(manifest.node_labels ?? {}).filter((key) => !DEFAULT_LABELS.test(key));
  return { manifest, applied, clusterId: manifest.cluster_id, labels };
}

const DEFAULT_LABELS =
  /^(beta\.kubernetes\.io\/(arch|os)|kubernetes\.io\/(arch|hostname|os)|node-role\.kubernetes\.io\/(control-plane|master|worker)|node\.openshift\.io\/os_id)$/;

/** What `lsblk` knows of a medium's label comes from the same probe. */
async function copyByLabel(iso: string, to: string): Promise<void> {
  const { stdout } = await runProcess('blkid', ['-p', '-o', 'export', iso]);
  const label = /^LABEL=(.*)$/m.exec(stdout)?.[1]?.replaceAll('\\', '');
  if (label !== 'cluster-config' && label !== 'relocation-config') {
    throw new Error(`no block device has a label to wait for, only ${label ?? 'none'}`);
  }
  await mkdir(to, { recursive: true, mode: 0o700 });
  await runProcess('bsdtar', ['-x', '-f', iso, '-C', to]);
}

async function setAccess({ ssh_key, pull_secret }: Reconfiguration, root: string): Promise<void> {
  if (ssh_key) {
    const path = join(root, 'home/core/.ssh/authorized_keys.d/ib-early-access');
    await writeSecret(path, ssh_key);
  }
  if (!pull_secret) throw new Error('pull secret was not provided');
  JSON.parse(pull_secret);
  await writeSecret(join(root, 'var/lib/kubelet/config.json'), pull_secret);
}

/** 5.2.5: NMState, hostname, hint for the node's address, overrides for its names. */
async function setNetwork(
  manifest: Reconfiguration,
  { root, seed, detectedIps }: Node,
): Promise<{ readonly hostname: string; readonly nodeIps: readonly string[] }> {
  if (manifest.raw_nm_state_config) {
    const state = parse(manifest.raw_nm_state_config, { version: '1.1' }) as unknown;
    if (typeof state !== 'object' || state === null) throw new Error('nmstate: not a mapping');
    await writeSecret(join(root, 'nmstate.yaml'), manifest.raw_nm_state_config);
  }
  const hostname = manifest.hostname ?? seed.sno_hostname;
  if (hostname === 'localhost') throw new Error('hostname is localhost');
  const networks = networksOf(manifest);
  const hint = networks.map((network) => network.split('/')[0]).join(' ');
  if (hint !== '') {
    await writeSecret(
      join(root, 'etc/default/nodeip-configuration'),
      `KUBELET_NODEIP_HINT=${hint}`,
    );
  }
  const legacy = manifest.node_ip ? [manifest.node_ip] : detectedIps;
  const nodeIps = manifest.node_ips?.length ? manifest.node_ips : legacy;
  const overrides = [
    `SNO_CLUSTER_NAME_OVERRIDE=${manifest.cluster_name ?? ''}`,
    `SNO_BASE_DOMAIN_OVERRIDE=${manifest.base_domain ?? ''}`,
    `SNO_DNSMASQ_IP_OVERRIDE=${nodeIps[0] ?? ''}`,
  ];
  const file = join(root, 'etc/default/sno_dnsmasq_configuration_overrides');
  await writeSecret(file, overrides.join('\n'));
  return { hostname, nodeIps };
}

const networksOf = ({ machine_networks, machine_network }: Reconfiguration): readonly string[] =>
  machine_networks?.length ? machine_networks : machine_network ? [machine_network] : [];

const familiesOf = (addresses: readonly string[]): string =>
  addresses.map((address) => isIP(address.split('/')[0] ?? '')).join(' ');

function checkFamilies(
  manifest: Reconfiguration,
  { seed, nodeIps }: { readonly seed: SeedInfo; readonly nodeIps: readonly string[] },
): void {
  const families = {
    'seed node IPs': familiesOf(seed.node_ips),
    'machine networks': familiesOf(networksOf(manifest)),
    ...(seed.machine_networks.length > 0 && {
      'seed machine networks': familiesOf(seed.machine_networks),
    }),
  };
  for (const [name, found] of Object.entries(families)) {
    if (found === familiesOf(nodeIps)) continue;
    throw new Error(`${name} have the families "${found}", node IPs "${familiesOf(nodeIps)}"`);
  }
}

/** Proxy and status proxy as recert gets them: `http|https|no|http|https|no`. */
function joinProxy(manifest: Reconfiguration, seed: SeedInfo): string | undefined {
  const { proxy } = manifest;
  if ((proxy !== undefined) !== seed.has_proxy) {
    throw new Error('seedReconfig and seedClusterInfo proxy configuration mismatch');
  }
  if (proxy === undefined) return undefined;
  const networks = networksOf(manifest);
  if (networks.length === 0) {
    throw new Error('machineNetworks is empty, must be provided in case of proxy');
  }
  const none = [
    ...['127.0.0.1', 'localhost', '.svc', '.cluster.local'],
    `api-int.${manifest.cluster_name ?? ''}.${manifest.base_domain ?? ''}`,
    ...[...networks, seed.service_network_cidr, seed.cluster_network_cidr],
    ...(proxy.noProxy ?? '').split(',').filter((entry) => entry !== ''),
  ];
  const { httpProxy = '', httpsProxy = '' } = proxy;
  const joined = `${httpProxy}|${httpsProxy}|${[...new Set(none)].sort().join(',')}`;
  return `${joined}|${joined}`;
}

async function setTrust(manifest: Reconfiguration, root: string): Promise<void> {
  const bundle = manifest.additionalTrustBundle?.userCaBundle ?? '';
  if (bundle === '') return;
  const file = 'etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt';
  await writeSecret(join(root, file), bundle);
}

/** Every file in lexical order; several documents and lists in one are taken apart. */
async function applyManifests(directory: string, mayBeAbsent = false): Promise<string[]> {
  const applied: string[] = [];
  for (const name of await listFiles(directory, mayBeAbsent)) {
    for (const document of parseAllDocuments(await readFile(join(directory, name), 'utf8'))) {
      if (document.errors[0]) throw document.errors[0];
      applied.push(...namesOf(document.toJS() as Manifest));
    }
  }
  return applied;
}

async function listFiles(directory: string, mayBeAbsent: boolean): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (error) {
    if (mayBeAbsent) return [];
    throw error;
  }
}

type Manifest = {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string };
  readonly items?: readonly Manifest[];
} | null;

const namesOf = (manifest: Manifest): readonly string[] =>
  manifest?.items?.flatMap(namesOf) ?? [
    `${manifest?.kind ?? ''}/${manifest?.metadata?.name ?? ''}`,
  ];

async function writeSecret(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { mode: 0o600 });
}
