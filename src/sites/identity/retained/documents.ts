import { join } from 'node:path';
import { isObject, withoutUndefined } from '../../../base/lists.ts';
import {
  decodeStrictly,
  manifestError,
  type Members,
  type Shape,
  type ShownFile,
} from '../../../shape/go-json.ts';

/* Owns the formats of an earlier producer's JSON files. */

/** A cluster's identity according to a manifest.json of an earlier producer; texts may be empty. */
export type RetainedManifest = {
  /** The file's name in errors. */
  readonly shownAs: string;
  readonly clusterName: string;
  readonly baseDomain: string;
  readonly clusterId: string;
  readonly infraId: string;
  readonly passwordHash: string;
  /** Private keys, unchanged from the manifest. */
  readonly keys: Readonly<
    Record<'localhost' | 'serviceNetwork' | 'loadBalancer' | 'ingress', string>
  >;
  readonly adminCertificate: string;
  readonly ingressCommonName: string;
};

/** A mirror that a node must know, in the form of install-config.yaml. */
export type RetainedSource = {
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly sourcePolicy?: string;
};

type MirrorEntry = { readonly mirrorSourcePolicy?: string } & Omit<RetainedSource, 'sourcePolicy'>;

/** Texts that an openshift-install state holds; absent if the run stopped before making them. */
export type InstallState = {
  /** manifest.json of the configuration ISO. */
  readonly manifest?: string;
  readonly kubeconfig?: string;
  readonly password?: string;
  /** PEM. No other file that openshift-install leaves has this key. */
  readonly adminSignerKey?: string;
};

const STRINGS = (...keys: readonly string[]): Members =>
  Object.fromEntries(keys.map((key) => [key, 'string' as const]));

const SERVING_KEYS = {
  localhost: 'localhost_signer_private_key',
  serviceNetwork: 'service_network_signer_private_key',
  loadBalancer: 'loadbalancer_external_signer_private_key',
} as const;

/**
 * The members of a SeedReconfiguration that are the cluster's identity. The rest (host name,
 * network, proxy, and anything that another version has) belongs to an earlier installation, and
 * the new inputs replace it.
 */
const MANIFEST: Shape = [
  'with others',
  {
    api_version: 'integer',
    ...STRINGS('base_domain', 'cluster_id', 'cluster_name', 'infra_id', 'kubeadmin_password_hash'),
    KubeconfigCryptoRetention: {
      KubeAPICrypto: {
        ServingCrypto: STRINGS(...Object.values(SERVING_KEYS)),
        ClientAuthCrypto: STRINGS('admin_ca_certificate'),
      },
      IngresssCrypto: STRINGS('ingress_ca', 'ingress_certificate_cn'),
    },
  },
];

const API_VERSION = 1;

/**
 * Reads the identity in a manifest strictly: keys match openshift-install's including upper and
 * lower case, and no key appears twice.
 *
 * @throws ConfigError `retained.manifest`, in the words of openshift-install
 */
export function parseRetainedManifest(text: string, file: ShownFile): RetainedManifest {
  const manifest = decodeStrictly(text, MANIFEST, file);
  const read = (...path: readonly string[]): string => {
    const member = findAtPath(manifest, path);
    return typeof member === 'string' ? member : '';
  };
  const version = findAtPath(manifest, ['api_version']) ?? 0;
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
    shownAs: join(file.directory, file.path),
    clusterName: read('cluster_name'),
    baseDomain: read('base_domain'),
    clusterId: read('cluster_id'),
    infraId: read('infra_id'),
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

const SOURCES: Shape = [{ source: 'string', mirrors: 'strings', sourcePolicy: 'string' }];

/**
 * Reads image-digest-mirror-set.json: the list that openshift-install accepts in its directory, or
 * the ImageDigestMirrorSet that it writes to the ISO.
 *
 * @throws ConfigError `retained.manifest`, in the words of openshift-install
 */
export function parseRetainedSources(text: string, file: ShownFile): readonly RetainedSource[] {
  if (text.trimStart().startsWith('{')) return parseMirrorSet(text, file);
  const sources = decodeStrictly(text, SOURCES, file) as readonly (RetainedSource | null)[];
  return sources.map((one) => toSource(one ?? {}));
}

/** File in which openshift-install records the files it made, in its directory. */
export const INSTALL_STATE_FILE = '.openshift_install_state.json';

/**
 * Reads a state of `openshift-install image-based create config-image`: an object of assets by
 * their Go types, bytes in base64 (docs/decisions/0031).
 *
 * @throws ConfigError `retained.manifest` when it is not such a file
 */
export function parseInstallState(text: string, file: ShownFile): InstallState {
  const assets = parseAssets(text, file);
  const manifest = readBytes(assets, '*configimage.ClusterConfiguration', 'File', 'Data');
  const kubeconfig = readBytes(assets, '*kubeconfig.ImageBasedAdminClient', 'File', 'Data');
  const password = findAtPath(assets, ['*password.KubeadminPassword', 'Password']);
  const adminSignerKey = readBytes(assets, '*tls.AdminKubeConfigSignerCertKey', 'KeyRaw');
  return {
    ...withoutUndefined({ manifest, kubeconfig }),
    ...(typeof password === 'string' && { password }),
    ...withoutUndefined({ adminSignerKey }),
  };
}

function findAtPath(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), value);
}

const MIRROR_SET: Shape = [
  'with others',
  {
    kind: 'string',
    spec: {
      imageDigestMirrors: [{ source: 'string', mirrors: 'strings', mirrorSourcePolicy: 'string' }],
    },
  },
];

type MirrorSet = {
  readonly kind?: string;
  readonly spec?: { readonly imageDigestMirrors?: readonly (MirrorEntry | null)[] | null } | null;
};

function parseMirrorSet(text: string, file: ShownFile): readonly RetainedSource[] {
  const { kind, spec } = decodeStrictly(text, MIRROR_SET, file) as MirrorSet;
  if (kind !== 'ImageDigestMirrorSet') {
    throw manifestError(file, 'field "kind" should be "ImageDigestMirrorSet"');
  }
  return (spec?.imageDigestMirrors ?? []).map((entry) => {
    const { mirrorSourcePolicy, ...one } = entry ?? ({} as Partial<MirrorEntry>);
    return toSource({ ...one, ...(mirrorSourcePolicy && { sourcePolicy: mirrorSourcePolicy }) });
  });
}

const toSource = ({ source, mirrors, sourcePolicy }: Partial<RetainedSource>): RetainedSource => ({
  source: source ?? '',
  mirrors: mirrors ?? [],
  ...(sourcePolicy && { sourcePolicy }),
});

/** The parser's own message would quote the text, including keys. */
function parseAssets(text: string, file: ShownFile): Readonly<Record<string, unknown>> {
  let assets: unknown;
  try {
    assets = JSON.parse(text);
  } catch {
    throw manifestError(file, 'invalid JSON syntax');
  }
  if (isObject(assets)) return assets;
  throw manifestError(file, 'all of it should be an object');
}

function readBytes(assets: unknown, ...path: readonly string[]): string | undefined {
  const member = findAtPath(assets, path);
  return typeof member === 'string' ? Buffer.from(member, 'base64').toString('utf8') : undefined;
}
