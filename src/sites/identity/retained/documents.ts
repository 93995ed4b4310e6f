import { join } from 'node:path';
import { ConfigError } from '../../../base/errors.ts';
import { isObject, withoutUndefined } from '../../../base/lists.ts';
import {
  decodeJson,
  formatSteps,
  requireDecoded,
  YAML_RULES,
  type Finding,
  type Rules,
} from '../../../shape/decode.ts';
import { readJsonText, TYPED_JSON, type JsonManner } from '../../../shape/json-text.ts';
import { INTEGER, list, otherwise, partial, TEXT, type Shape } from '../../../shape/shape.ts';
import { nameShape } from '../../../shape/words.ts';

/* Owns the formats of an earlier producer's JSON files. */

export type ShownFile = { readonly directory: string; readonly path: string };

/** A cluster's identity according to a manifest.json of an earlier producer; texts may be empty. */
export type RetainedManifest = {
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

/** Texts that an openshift-install state holds; absent if the run stopped before making them. */
export type InstallState = {
  /** manifest.json of the configuration ISO. */
  readonly manifest?: string;
  readonly kubeconfig?: string;
  readonly password?: string;
  /** PEM. No other file that openshift-install leaves has this key. */
  readonly adminSignerKey?: string;
};

/**
 * The members of a SeedReconfiguration that are the cluster's identity. The rest (host name, network, proxy,
 * and anything that another version has) belongs to an earlier installation, and the new inputs replace it.
 */
const MANIFEST = partial(
  {
    api_version: INTEGER,
    base_domain: TEXT,
    cluster_id: TEXT,
    cluster_name: TEXT,
    infra_id: TEXT,
    kubeadmin_password_hash: TEXT,
    KubeconfigCryptoRetention: partial({
      KubeAPICrypto: partial({
        ServingCrypto: partial({
          localhost_signer_private_key: TEXT,
          service_network_signer_private_key: TEXT,
          loadbalancer_external_signer_private_key: TEXT,
        }),
        ClientAuthCrypto: partial({ admin_ca_certificate: TEXT }),
      }),
      IngresssCrypto: partial({ ingress_ca: TEXT, ingress_certificate_cn: TEXT }),
    }),
  },
  { others: 'left-out' },
);

const API_VERSION = 1;

/** Strict: keys match openshift-install's including case, and no key appears twice. */
export function parseRetainedManifest(text: string, file: ShownFile): RetainedManifest {
  const manifest = decodeStrictly(text, MANIFEST, file);
  const { api_version: version = 0 } = manifest;
  if (version !== API_VERSION) {
    throw manifestError(file, `api_version is ${version}, but should be ${API_VERSION}`);
  }
  const read = (...path: readonly string[]): string => {
    const member = findAtPath(manifest, path);
    return typeof member === 'string' ? member : '';
  };
  const kubeApi = ['KubeconfigCryptoRetention', 'KubeAPICrypto'];
  const serving = (name: string): string => read(...kubeApi, 'ServingCrypto', name);
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
      localhost: serving('localhost_signer_private_key'),
      serviceNetwork: serving('service_network_signer_private_key'),
      loadBalancer: serving('loadbalancer_external_signer_private_key'),
      ingress: ingress('ingress_ca'),
    },
    adminCertificate: read(...kubeApi, 'ClientAuthCrypto', 'admin_ca_certificate'),
    ingressCommonName: ingress('ingress_certificate_cn'),
  };
}

/** Members match including case; null means absent, as in Go. */
const RULES: Rules = { ...YAML_RULES, ...TYPED_JSON };

function decodeStrictly<T>(text: string, shape: Shape<T>, file: ShownFile): T {
  return requireDecoded(decodeJson(shape, text, RULES), (findings) =>
    manifestError(file, findings.map(describeStrange).join('; ')),
  );
}

/** The fault of a value, which may be a key and is not quoted. */
function describeStrange({ code, path, shape, why }: Finding): string {
  if (code === 'syntax') return `it ${why ?? ''}`;
  const field = JSON.stringify(formatSteps(path));
  if (code === 'unknown') return `unknown field ${field}`;
  return `${path.length === 0 ? 'all of it' : `field ${field}`} should be ${nameShape(shape)}`;
}

const manifestError = ({ directory, path }: ShownFile, problem: string): ConfigError =>
  new ConfigError('retained.manifest', `${directory}: failed to unmarshal ${path}: ${problem}`, {
    hint: 'use the file as openshift-install wrote it, or omit it',
  });

/** An entry that is null is empty, as in Go. */
const orEmpty = <T extends object>(of: Shape<T>): Shape<T> => otherwise(of, {} as T);

const MIRRORS = list(otherwise(TEXT, ''));

const SOURCES = list(orEmpty(partial({ source: TEXT, mirrors: MIRRORS, sourcePolicy: TEXT })));

/**
 * Reads image-digest-mirror-set.json: the list that openshift-install accepts in its directory, or
 * the ImageDigestMirrorSet that it writes to the ISO.
 */
export function parseRetainedSources(text: string, file: ShownFile): readonly RetainedSource[] {
  if (text.trimStart().startsWith('{')) return parseMirrorSet(text, file);
  return decodeStrictly(text, SOURCES, file).map(toSource);
}

/** File in which openshift-install records the files it made, in its directory. */
export const INSTALL_STATE_FILE = '.openshift_install_state.json';

/**
 * Reads a state of `openshift-install image-based create config-image`: an object of assets by
 * their Go types, bytes in base64 (docs/decisions/0031).
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

const MIRROR_SET = partial(
  {
    kind: TEXT,
    spec: partial({
      imageDigestMirrors: list(
        orEmpty(partial({ source: TEXT, mirrors: MIRRORS, mirrorSourcePolicy: TEXT })),
      ),
    }),
  },
  { others: 'left-out' },
);

function parseMirrorSet(text: string, file: ShownFile): readonly RetainedSource[] {
  const { kind, spec } = decodeStrictly(text, MIRROR_SET, file);
  if (kind !== 'ImageDigestMirrorSet') {
    throw manifestError(file, 'field "kind" should be "ImageDigestMirrorSet"');
  }
  return (spec?.imageDigestMirrors ?? []).map(({ mirrorSourcePolicy, ...one }) =>
    toSource({ ...one, ...(mirrorSourcePolicy && { sourcePolicy: mirrorSourcePolicy }) }),
  );
}

const toSource = ({ source, mirrors, sourcePolicy }: Partial<RetainedSource>): RetainedSource => ({
  source: source ?? '',
  mirrors: mirrors ?? [],
  ...(sourcePolicy && { sourcePolicy }),
});

/** The installer's state holds all that the installer rendered. */
const STATE: JsonManner = { most: { values: 1_500_000, depth: 250 } };

function parseAssets(text: string, file: ShownFile): Readonly<Record<string, unknown>> {
  const read = readJsonText(text, STATE);
  if (read.why !== undefined) throw manifestError(file, `it ${read.why}`);
  if (isObject(read.value)) return read.value;
  throw manifestError(file, 'all of it should be an object');
}

function readBytes(assets: unknown, ...path: readonly string[]): string | undefined {
  const member = findAtPath(assets, path);
  return typeof member === 'string' ? Buffer.from(member, 'base64').toString('utf8') : undefined;
}
