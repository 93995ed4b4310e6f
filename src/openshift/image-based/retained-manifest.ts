import { parseDocument } from 'yaml';
import { ConfigError } from '../../base/errors.ts';

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

/** A type of Go, or the members of a struct. */
type Shape = 'string' | 'integer' | 'strings' | 'labels' | { readonly [key: string]: Shape };

const STRINGS = (...keys: readonly string[]): Shape =>
  Object.fromEntries(keys.map((key) => [key, 'string' as const]));

const PROXY = STRINGS('httpProxy', 'httpsProxy', 'noProxy');
const TRUST_BUNDLE = STRINGS('userCaBundle', 'proxyConfigmapName', 'proxyConfigmapBundle');
const SERVING_KEYS = {
  localhost: 'localhost_signer_private_key',
  serviceNetwork: 'service_network_signer_private_key',
  loadBalancer: 'loadbalancer_external_signer_private_key',
} as const;

/** The SeedReconfiguration of openshift-install; what else the lifecycle agent knows, nobody writes. */
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

/** The path of a file that has a fault, for its message. */
export type ShownFile = { readonly directory: string; readonly path: string };

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
    throw manifestError(file, `api_version is ${JSON.stringify(version)}, but should be ${API_VERSION}`);
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

function decodeStrictly(text: string, shape: Shape, file: ShownFile): unknown {
  const value = parseJson(text, file);
  if (!isObject(value)) throw manifestError(file, 'should be a JSON object');
  // JSON is YAML, whose parser tells what JSON.parse overlooks.
  const repeated = parseDocument(text).errors.find(({ code }) => code === 'DUPLICATE_KEY');
  if (repeated) throw manifestError(file, `a key is there twice in line ${lineOf(repeated)}`);
  refuseStrange(value, shape, { file, path: '' });
  return value;
}

const lineOf = ({ linePos }: { readonly linePos?: readonly { readonly line: number }[] }): number =>
  linePos?.[0]?.line ?? 1;

/** The parser's own message would quote the text, keys and all. */
function parseJson(text: string, file: ShownFile): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw manifestError(file, 'invalid JSON syntax');
  }
}

type Place = { readonly file: ShownFile; readonly path: string };

/** Null stands for what is not there, as in Go. */
function refuseStrange(value: unknown, shape: Shape, place: Place): void {
  if (value === null) return;
  if (typeof shape === 'string') {
    if (!SHAPES[shape].test(value)) throw wrongType(place, SHAPES[shape].name);
    return;
  }
  if (!isObject(value)) throw wrongType(place, 'an object');
  for (const [key, member] of Object.entries(value)) {
    const path = place.path === '' ? key : `${place.path}.${key}`;
    const inner = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (inner === undefined) {
      throw manifestError(place.file, `unknown field ${JSON.stringify(path)}`);
    }
    refuseStrange(member, inner, { file: place.file, path });
  }
}

const isString = (value: unknown): boolean => typeof value === 'string' || value === null;

const SHAPES = {
  string: { name: 'a string', test: isString },
  integer: { name: 'an integer', test: Number.isSafeInteger },
  strings: {
    name: 'a list of strings',
    test: (value: unknown) => Array.isArray(value) && value.every(isString),
  },
  labels: {
    name: 'an object of strings',
    test: (value: unknown) => isObject(value) && Object.values(value).every(isString),
  },
} as const;

const wrongType = ({ file, path }: Place, name: string): ConfigError =>
  manifestError(file, `field ${JSON.stringify(path)} should be ${name}`);

const manifestError = ({ directory, path }: ShownFile, problem: string): ConfigError =>
  new ConfigError('retained.manifest', `${directory}: failed to unmarshal ${path}: ${problem}`, {
    hint: 'give the file as openshift-install wrote it, or leave it out',
  });

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
