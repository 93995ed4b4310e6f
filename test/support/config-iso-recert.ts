import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Reconfiguration, SeedInfo } from './config-iso-consumer.ts';

export type RecertInput = {
  readonly manifest: Reconfiguration;
  readonly seed: SeedInfo;
  /** /opt/openshift of the node. */
  readonly openshift: string;
  readonly hostname: string;
  readonly nodeIps: readonly string[];
  readonly proxy: string | undefined;
};

type Rename = { readonly seed: string; readonly site: string };

/** Writes what the node gives to recert: keys and certificate as files, and its configuration. */
export async function recertInputs(input: RecertInput): Promise<void> {
  const { openshift } = input;
  const directory = join(openshift, 'kubeconfig-crypto');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries(cryptoFiles(input.manifest))) {
    if (name.endsWith('.key')) createPrivateKey(text);
    else new X509Certificate(text);
    await writeFile(join(directory, name), text, { mode: 0o600 });
  }
  const config = JSON.stringify(describeRecert(input));
  await writeFile(join(openshift, 'recert_config.json'), config, { mode: 0o600 });
}

function cryptoFiles({ KubeconfigCryptoRetention: kept }: Reconfiguration): Record<string, string> {
  const serving = kept?.KubeAPICrypto?.ServingCrypto;
  const client = kept?.KubeAPICrypto?.ClientAuthCrypto;
  return {
    'admin-kubeconfig-client-ca.crt': client?.['admin_ca_certificate'] ?? '',
    'loadbalancer-serving-signer.key': serving?.['loadbalancer_external_signer_private_key'] ?? '',
    'localhost-serving-signer.key': serving?.['localhost_signer_private_key'] ?? '',
    'service-network-serving-signer.key': serving?.['service_network_signer_private_key'] ?? '',
    'ingresskey-ingress-operator.key': kept?.IngresssCrypto?.['ingress_ca'] ?? '',
  };
}

function describeRecert(input: RecertInput): Readonly<Record<string, unknown>> {
  const { manifest, seed, openshift, hostname, nodeIps, proxy } = input;
  const { cluster_name = '', base_domain = '', infra_id } = manifest;
  const crypto = join(openshift, 'kubeconfig-crypto');
  const domain = [cluster_name, base_domain, ...(infra_id ? [infra_id] : [])].join(':');
  const ingress = manifest.KubeconfigCryptoRetention?.IngresssCrypto?.['ingress_certificate_cn'];
  return {
    cluster_rename: domain,
    ...(hostname !== seed.sno_hostname && { hostname }),
    ...(String(nodeIps) !== String(seed.node_ips) && { ip: nodeIps }),
    ...(proxy !== undefined && { proxy }),
    ...trustOf(input),
    kubeadmin_password_hash: manifest.kubeadmin_password_hash ?? '',
    pull_secret: manifest.pull_secret,
    ...(manifest.chrony_config && { chrony_config: manifest.chrony_config }),
    ...(String(manifest.machine_networks) !== String(seed.machine_networks) && {
      machine_network_cidr: manifest.machine_networks,
    }),
    cn_san_replace_rules: replaceRules(input, ingress).map(({ seed, site }) => `${seed},${site}`),
    use_key_rules: [
      `kube-apiserver-lb-signer ${crypto}/loadbalancer-serving-signer.key`,
      `kube-apiserver-localhost-signer ${crypto}/localhost-serving-signer.key`,
      `kube-apiserver-service-network-signer ${crypto}/service-network-serving-signer.key`,
      `${seed.ingress_certificate_cn} ${crypto}/ingresskey-ingress-operator.key`,
    ],
    use_cert_rules: [`${crypto}/admin-kubeconfig-client-ca.crt`],
    regenerate_server_ssh_keys: '/ssh',
    extend_expiration: true,
  };
}

/** The proxy's config map is named on both sides or on neither. */
function trustOf({ manifest, seed }: RecertInput): Readonly<Record<string, string>> {
  const {
    userCaBundle = '',
    proxyConfigmapName = '',
    proxyConfigmapBundle = '',
  } = manifest.additionalTrustBundle ?? {};
  if ((proxyConfigmapName === '') !== (seed.additionalTrustBundle.proxyConfigmapName === '')) {
    throw new Error('the trusted CA of the proxy is named by the seed or by the site, not by both');
  }
  const bundle = proxyConfigmapName === 'user-ca-bundle' ? '' : proxyConfigmapBundle;
  return {
    ...(userCaBundle !== '' && { user_ca_bundle: userCaBundle }),
    ...(proxyConfigmapName !== '' && {
      proxy_trusted_ca_bundle: `${proxyConfigmapName}:${bundle}`,
    }),
  };
}

function replaceRules(
  { manifest, seed, hostname, nodeIps }: RecertInput,
  ingress: string | undefined,
): readonly Rename[] {
  const site = `${manifest.cluster_name ?? ''}.${manifest.base_domain ?? ''}`;
  const old = `${seed.cluster_name}.${seed.base_domain}`;
  const hasSameCount = seed.node_ips.length === nodeIps.length;
  return [
    { seed: `system:node:${seed.sno_hostname}`, site: `system:node:${hostname}` },
    { seed: seed.sno_hostname, site: hostname },
    ...['api.', 'api-int.', '*.apps.'].map((name) => ({
      seed: `${name}${old}`,
      site: `${name}${site}`,
    })),
    ...(hasSameCount
      ? seed.node_ips.map((ip, index) => ({ seed: ip, site: nodeIps[index] ?? '' }))
      : []),
    ...(ingress ? [{ seed: seed.ingress_certificate_cn, site: ingress }] : []),
  ];
}
