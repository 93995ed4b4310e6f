import {
  decodeStrictly,
  isObject,
  manifestError,
  type Shape,
  type ShownFile,
} from './retained-json.ts';

/** What a manifest.json of an earlier producer says of a cluster's identity; texts may be empty. */
export type RetainedManifest = {
  readonly clusterName: string;
  readonly baseDomain: string;
  readonly clusterId: string;
  readonly infraId: string;
  readonly passwordHash: string;
  /** Private keys, as they stand there. */
  readonly keys: Readonly<
    Record<'localhost' | 'serviceNetwork' | 'loadBalancer' | 'ingress', string>
  >;
  readonly adminCertificate: string;
  readonly ingressCommonName: string;
};

const STRINGS = (...keys: readonly string[]): Shape =>
  Object.fromEntries(keys.map((key) => [key, 'string' as const]));

const PROXY = STRINGS('httpProxy', 'httpsProxy', 'noProxy');
const TRUST_BUNDLE = STRINGS('userCaBundle', 'proxyConfigmapName', 'proxyConfigmapBundle');
const SERVING_KEYS = {
  localhost: 'localhost_signer_private_key',
  serviceNetwork: 'service_network_signer_private_key',
  loadBalancer: 'loadbalancer_external_signer_private_key',
} as const;

/**
 * The SeedReconfiguration of openshift-install, which refuses what else the lifecycle agent knows
 * (`server_ssh_keys`, `status_proxy`, `install_config`): such a file is of an upgrade, not of a site.
 */
const MANIFEST: Shape = {
  additionalTrustBundle: TRUST_BUNDLE,
  api_version: 'integer',
  base_domain: 'string',
  cluster_id: 'string',
  cluster_name: 'string',
  chrony_config: 'string',
  hostname: 'string',
  infra_id: 'string',
  kubeadmin_password_hash: 'string',
  KubeconfigCryptoRetention: {
    KubeAPICrypto: {
      ServingCrypto: STRINGS(...Object.values(SERVING_KEYS)),
      ClientAuthCrypto: STRINGS('admin_ca_certificate'),
    },
    IngresssCrypto: STRINGS('ingress_ca', 'ingress_certificate_cn'),
  },
  machine_network: 'string',
  machine_networks: 'strings',
  node_ip: 'string',
  node_ips: 'strings',
  raw_nm_state_config: 'string',
  release_registry: 'string',
  ssh_key: 'string',
  proxy: PROXY,
  pull_secret: 'string',
  node_labels: 'labels',
};

const API_VERSION = 1;

/**
 * Reads strictly: keys are those of openshift-install to the case, and none twice.
 *
 * @throws ConfigError `retained.manifest`, in the words of openshift-install
 */
export function parseRetainedManifest(text: string, file: ShownFile): RetainedManifest {
  const manifest = decodeStrictly(text, MANIFEST, file);
  const read = (...path: readonly string[]): string => {
    const member = findMember(manifest, path);
    return typeof member === 'string' ? member : '';
  };
  const version = findMember(manifest, ['api_version']) ?? 0;
  if (version !== API_VERSION) {
    throw manifestError(
      file,
      `api_version is ${JSON.stringify(version)}, but should be ${API_VERSION}`,
    );
  }
  const kubeApi = ['KubeconfigCryptoRetention', 'KubeAPICrypto'];
  const serving = (name: keyof typeof SERVING_KEYS): string =>
    read(...kubeApi, 'ServingCrypto', SERVING_KEYS[name]);
  const ingress = (name: string): string =>
    read('KubeconfigCryptoRetention', 'IngresssCrypto', name);
  return {
    ...{ clusterName: read('cluster_name'), baseDomain: read('base_domain') },
    ...{ clusterId: read('cluster_id'), infraId: read('infra_id') },
    passwordHash: read('kubeadmin_password_hash'),
    keys: {
      localhost: serving('localhost'),
      serviceNetwork: serving('serviceNetwork'),
      loadBalancer: serving('loadBalancer'),
      ingress: ingress('ingress_ca'),
    },
    adminCertificate: read(...kubeApi, 'ClientAuthCrypto', 'admin_ca_certificate'),
    ingressCommonName: ingress('ingress_certificate_cn'),
  };
}

function findMember(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), value);
}

/** What a node is to be told of mirrors, as install-config.yaml has it. */
export type RetainedSource = {
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly sourcePolicy?: string;
};

const SOURCES: Shape = [{ source: 'string', mirrors: 'strings', sourcePolicy: 'string' }];

/**
 * Reads image-digest-mirror-set.json, which is a list when it is given and an object on the ISO.
 *
 * @throws ConfigError `retained.manifest`, in the words of openshift-install
 */
export function parseRetainedSources(text: string, file: ShownFile): readonly RetainedSource[] {
  const sources = decodeStrictly(text, SOURCES, file) as readonly (RetainedSource | null)[];
  return sources.map((one) => {
    const { source, mirrors, sourcePolicy } = one ?? {};
    return {
      ...{ source: source ?? '', mirrors: mirrors ?? [] },
      ...(sourcePolicy && { sourcePolicy }),
    };
  });
}
