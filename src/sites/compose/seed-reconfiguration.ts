import { formatGoJson, omitEmpty, sortedMap, type GoJson } from '../../shape/go-json.ts';
import type { SiteIdentity } from '../identity/site-identity.ts';
import type { InstallationProxy } from '../../openshift/installation/mirrors.ts';
import type { SiteImageBasedConfig, SiteInstallConfig } from '../site.ts';

/** What a seed reconfiguration takes of a site. Of the trust bundle policy, only what was written counts. */
type Reconfigured = {
  readonly install: Omit<SiteInstallConfig, 'imageDigestSources'>;
  readonly imageBased: Omit<SiteImageBasedConfig, 'clusterId' | 'infraId'>;
};
type ReconfiguredInstall = Reconfigured['install'];

/** api_version; the lifecycle agent knows no other. */
const API_VERSION = 1;

/**
 * manifest.json of a configuration ISO: the SeedReconfiguration that the lifecycle agent reads, keys
 * in the order of openshift-install, on one line without a newline. Holds private keys and the pull
 * secret.
 */
export function renderSeedReconfiguration(
  { install, imageBased }: Reconfigured,
  identity: SiteIdentity,
): string {
  return formatGoJson(
    omitEmpty([
      ['additionalTrustBundle', mapTrustBundle(install)],
      ['api_version', API_VERSION],
      ['base_domain', install.baseDomain],
      ['cluster_id', identity.clusterId],
      ['cluster_name', install.clusterName],
      ['chrony_config', renderChronyConfig(imageBased.additionalNTPSources)],
      ['hostname', imageBased.hostname],
      ['infra_id', identity.infraId],
      ['kubeadmin_password_hash', identity.password.bcrypt],
      ['KubeconfigCryptoRetention', mapRetention(identity)],
      ['machine_networks', install.machineNetworks],
      ['raw_nm_state_config', imageBased.networkConfig],
      ['release_registry', imageBased.releaseRegistry],
      ['ssh_key', install.sshKey],
      ['proxy', install.proxy && mapProxy(install.proxy)],
      ['pull_secret', install.pullSecret],
      ['node_labels', mapLabels(imageBased.nodeLabels)],
    ]),
  );
}

/** The names are the consumer's: three "s", and an `ingress_ca` that is a private key. */
function mapRetention({ signers }: SiteIdentity): GoJson {
  const serving = omitEmpty([
    ['localhost_signer_private_key', signers.localhost.privateKey],
    ['service_network_signer_private_key', signers.serviceNetwork.privateKey],
    ['loadbalancer_external_signer_private_key', signers.loadBalancer.privateKey],
  ]);
  const client = omitEmpty([['admin_ca_certificate', signers.adminKubeconfig.certificate]]);
  const ingress = omitEmpty([
    ['ingress_ca', signers.ingress.privateKey],
    ['ingress_certificate_cn', signers.ingress.commonName],
  ]);
  const kubeApi = new Map([
    ['ServingCrypto', serving],
    ['ClientAuthCrypto', client],
  ]);
  return new Map<string, GoJson>([
    ['KubeAPICrypto', kubeApi],
    ['IngresssCrypto', ingress],
  ]);
}

/** As the user wrote it: what a cluster adds to noProxy is added on the node. */
const mapProxy = ({ httpProxy, httpsProxy, noProxy }: InstallationProxy): GoJson =>
  omitEmpty([
    ['httpProxy', httpProxy],
    ['httpsProxy', httpsProxy],
    ['noProxy', noProxy],
  ]);

function mapLabels(labels: Readonly<Record<string, string>>): GoJson | undefined {
  const sorted = sortedMap(labels);
  return sorted.size === 0 ? undefined : sorted;
}

const CHRONY_HEAD = [
  'pool 0.rhel.pool.ntp.org iburst',
  'driftfile /var/lib/chrony/drift',
  'makestep 1.0 3',
  'rtcsync',
  'logdir /var/log/chrony',
];

/**
 * chrony.conf of a node, with a newline before its first line and none behind its last, as nodes have
 * always got it; undefined without sources, so that the node keeps its own.
 */
function renderChronyConfig(sources: readonly string[]): string | undefined {
  if (sources.length === 0) return undefined;
  return ['', ...CHRONY_HEAD, ...sources.map((source) => `server ${source} iburst`)].join('\n');
}

const PROXY_CONFIG_MAP = 'user-ca-bundle';

/**
 * `additionalTrustBundle` of a seed reconfiguration: always there, with all three of its texts. The
 * config map of the proxy is named only where a policy is written, `Always` or `Proxyonly` with a
 * proxy: consumers compare its presence with the seed's.
 */
function mapTrustBundle(install: ReconfiguredInstall): GoJson {
  const bundle = install.additionalTrustBundle ?? '';
  const isProxied = bundle !== '' && reachesProxy(install);
  return new Map([
    ['userCaBundle', bundle],
    ['proxyConfigmapName', isProxied ? PROXY_CONFIG_MAP : ''],
    ['proxyConfigmapBundle', isProxied ? bundle : ''],
  ]);
}

const reachesProxy = ({
  additionalTrustBundlePolicy: policy,
  proxy,
}: ReconfiguredInstall): boolean =>
  policy === 'Always' || (policy === 'Proxyonly' && proxy !== undefined);
