import { renderChronyConfig } from './chrony.ts';
import { formatGoJson, omitEmpty, sortedMap, type GoJson } from './go-json.ts';
import type { SiteIdentity } from '../identity/site-identity.ts';
import { mapTrustBundle, type TrustBundleInput } from './trust-bundle.ts';

/** What a seed reconfiguration takes of install-config.yaml, as written. */
export type ReconfiguredInstall = TrustBundleInput & {
  readonly clusterName: string;
  readonly baseDomain: string;
  readonly sshKey: string;
  readonly pullSecret: string;
  readonly proxy?: {
    readonly httpProxy?: string;
    readonly httpsProxy?: string;
    readonly noProxy?: string;
  };
  readonly machineNetworks?: readonly string[];
};

/** What a seed reconfiguration takes of image-based-config.yaml. */
export type ReconfiguredNode = {
  readonly additionalNTPSources: readonly string[];
  readonly hostname: string;
  /** Normalised YAML text. */
  readonly networkConfig?: string;
  readonly releaseRegistry?: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
};

/** api_version; the lifecycle agent knows no other. */
const API_VERSION = 1;

/**
 * manifest.json of a configuration ISO: the SeedReconfiguration that the lifecycle agent reads, keys
 * in the order of openshift-install, on one line without a newline. Holds private keys and the pull
 * secret.
 */
export function renderSeedReconfiguration(
  { install, imageBased }: { install: ReconfiguredInstall; imageBased: ReconfiguredNode },
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
const mapProxy = ({
  httpProxy,
  httpsProxy,
  noProxy,
}: NonNullable<ReconfiguredInstall['proxy']>): GoJson =>
  omitEmpty([
    ['httpProxy', httpProxy],
    ['httpsProxy', httpsProxy],
    ['noProxy', noProxy],
  ]);

function mapLabels(labels: Readonly<Record<string, string>>): GoJson | undefined {
  const sorted = sortedMap(labels);
  return sorted.size === 0 ? undefined : sorted;
}
