import { CHRONY_SETTINGS, formatTimeServers } from '../../openshift/agent/chrony.ts';
import type { InstallationProxy, DigestSource } from '../../openshift/installation/mirrors.ts';
import { formatGoJson, omitEmpty, sortedMap, type GoJson } from '../../shape/go-json.ts';
import type { SiteIdentity, RetainedIdentity } from '../identity/identity.ts';
import type { SiteImageBasedConfig, SiteInstallConfig, ImageBasedSite } from '../site.ts';

/* Owns the file tree of a configuration ISO and the texts in it. */

/**
 * The parts of a site that a seed reconfiguration takes. The trust bundle policy counts only if it
 * was written.
 */
type Reconfigured = {
  readonly install: Omit<SiteInstallConfig, 'imageDigestSources'>;
  readonly imageBased: Omit<SiteImageBasedConfig, 'clusterId' | 'infraId'>;
};
type ReconfiguredInstall = Reconfigured['install'];

export type ConfiguredSite = Omit<ImageBasedSite, 'name' | 'kind'>;

/** Paths are absolute. */
export type ConfigTree = {
  /** Directories that exist even when empty: the lifecycle agent stops without `manifests`. */
  readonly directories: readonly string[];
  readonly files: readonly ComposedFile[];
};

export type ComposedFile = {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly mode: number;
};

const MIRRORS_PATH = '/cluster-configuration/manifests/image-digest-mirror-set.json';
const EXTRA_MANIFESTS = '/extra-manifests';
const DIRECTORIES = [
  '/cluster-configuration',
  '/cluster-configuration/manifests',
  EXTRA_MANIFESTS,
] as const;
/** The manifest holds keys: a user who copies the tree with its modes keeps them private. */
const SECRET = 0o600;
const PLAIN = 0o644;

/** Plans the exact tree; `retained` has mirrors of an earlier producer, for a site without mirrors. */
export function planConfigTree(
  site: ConfiguredSite,
  identity: SiteIdentity,
  retained: Pick<RetainedIdentity, 'imageDigestSources'> = {},
): ConfigTree {
  const { imageDigestSources = retained.imageDigestSources } = site.install;
  const text = renderSeedReconfiguration(site, identity);
  const manifest = textFile(MANIFEST_PATH, text, SECRET);
  const mirrors = imageDigestSources && [
    textFile(MIRRORS_PATH, renderDigestMirrorSet(imageDigestSources), PLAIN),
  ];
  const extra = site.extraManifests.map(({ name, bytes }) => ({
    path: `${EXTRA_MANIFESTS}/${name}`,
    bytes,
    mode: PLAIN,
  }));
  return { directories: DIRECTORIES, files: [manifest, ...(mirrors ?? []), ...extra] };
}

/** api_version; the only one that the lifecycle agent knows. */
const API_VERSION = 1;

/**
 * manifest.json of a configuration ISO: the SeedReconfiguration that the lifecycle agent reads, keys in the
 * order of openshift-install, on one line without a newline. Holds private keys and the pull secret.
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
      ['machine_network', install.machineNetwork],
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

/** The label that `lsblk` must show for the medium. */
export const CONFIG_VOLUME_ID = 'cluster-config';

export const MANIFEST_PATH = '/cluster-configuration/manifest.json';

/** ImageDigestMirrorSet on one line, entries in the order of `sources`, not merged. */
export function renderDigestMirrorSet(sources: readonly DigestSource[]): string {
  const mirrors = sources.map(({ source, mirrors, sourcePolicy }) => [
    ['source', source] as const,
    ...omitEmpty([
      ['mirrors', mirrors],
      ['mirrorSourcePolicy', sourcePolicy],
    ]),
  ]);
  return formatGoJson(
    new Map<string, Parameters<typeof formatGoJson>[0]>([
      ['kind', 'ImageDigestMirrorSet'],
      ['apiVersion', 'config.openshift.io/v1'],
      ['metadata', new Map([['name', 'image-digest-mirror']])],
      ['spec', new Map([['imageDigestMirrors', mirrors.map((members) => new Map(members))]])],
      ['status', new Map<string, string>()],
    ]),
  );
}

/** The consumer chose the names: three "s", and an `ingress_ca` that is a private key. */
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

/** The proxy as the user wrote it: the node adds the cluster's own additions to noProxy. */
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

const CHRONY_HEAD = ['pool 0.rhel.pool.ntp.org iburst', ...CHRONY_SETTINGS];

/**
 * chrony.conf of a node, with a newline before its first line and no newline after its last, as
 * nodes have always received it; undefined without sources, so that the node keeps its own.
 */
function renderChronyConfig(sources: readonly string[]): string | undefined {
  if (sources.length === 0) return undefined;
  return ['', ...CHRONY_HEAD, ...formatTimeServers(sources)].join('\n');
}

const PROXY_CONFIG_MAP = 'user-ca-bundle';

/**
 * `additionalTrustBundle` of a seed reconfiguration: always present, with all three of its texts.
 * The config map of the proxy is named only if a policy is written, `Always` or `Proxyonly` with a
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

const textFile = (path: string, text: string, mode: number): ComposedFile => ({
  path,
  bytes: Buffer.from(text, 'utf8'),
  mode,
});
