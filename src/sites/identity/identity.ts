import { X509Certificate, createHash } from 'node:crypto';
import { stringify } from 'yaml';
import { digestOf, type Digest } from '../../base/digest.ts';
import { withoutUndefined, isObject } from '../../base/lists.ts';
import { formatCanonicalJson, formatReadableJson } from '../../base/text/json.ts';
import type { Subject } from './certificates.ts';
import type { RetainedSource } from './retained/documents.ts';

/** Private and public halves of what a cluster keeps across its reconfiguration. PEM texts. */
export type KeyPair = {
  /** PKCS#1 PEM, `RSA PRIVATE KEY`. */
  readonly privateKey: string;
  /** X.509 PEM. */
  readonly certificate: string;
};

/** A certificate, and its key where that is known. */
export type CertifiedKey = Pick<KeyPair, 'certificate'> & Partial<Pick<KeyPair, 'privateKey'>>;

/** Keys, ids and password of a site: made once, stored in its state, used again by every later build. */
export type SiteIdentity = {
  /** UUID version 4. */
  readonly clusterId: string;
  readonly infraId: string;
  readonly signers: {
    readonly loadBalancer: KeyPair;
    readonly localhost: KeyPair;
    readonly serviceNetwork: KeyPair;
    readonly ingress: KeyPair & { readonly commonName: string };
    /** Neither ISO nor kubeconfig has its key: an identity that was read from those is without. */
    readonly adminKubeconfig: CertifiedKey;
  };
  readonly adminClient: KeyPair;
  readonly password: { readonly text: string; readonly bcrypt: string };
  /** Seconds since 1970: when all of it was made. */
  readonly madeAt: number;
};

export type SignerName = keyof SiteIdentity['signers'];

/** What is fixed of a signer. */
export type SignerTerms = {
  /** Its files are `tls/<name>.key` and `tls/<name>.crt`. */
  readonly file: string;
  /** Days of 86,400 seconds. */
  readonly days: number;
  /** Of a signer that is made at so many seconds since 1970. */
  readonly subject: (madeAt: number) => Subject;
};

const TEN_YEARS = 3650;
const TWO_YEARS = 730;

/** Days that the certificate of the administrator is valid. */
export const ADMIN_CLIENT_DAYS = TEN_YEARS;

/** The common name by which the node finds its ingress signer starts so. */
export const INGRESS_PREFIX = 'ingress-operator@';

/** The signers of a cluster, in the order in which their keys are drawn. */
export const SIGNERS: Readonly<Record<SignerName, SignerTerms>> = {
  loadBalancer: ofKubeApi('kube-apiserver-lb-signer'),
  localhost: ofKubeApi('kube-apiserver-localhost-signer'),
  serviceNetwork: ofKubeApi('kube-apiserver-service-network-signer'),
  ingress: {
    file: 'ingress-operator-signer',
    days: TWO_YEARS,
    subject: (madeAt) => ({ commonName: `${INGRESS_PREFIX}${madeAt}` }),
  },
  adminKubeconfig: ofKubeApi('admin-kubeconfig-signer'),
};

export const SIGNER_NAMES = Object.keys(SIGNERS) as readonly SignerName[];

function ofKubeApi(name: string): SignerTerms {
  const subject: Subject = { organizationalUnit: 'openshift', commonName: name };
  return { file: name, days: TEN_YEARS, subject: () => subject };
}

/** What an earlier producer left of an identity. */
export type RetainedIdentity = {
  /** Signers with key and certificate. */
  readonly signers: Readonly<Partial<Record<SignerName, KeyPair>>>;
  /** Keys, PKCS#1 PEM, whose certificates are made again. */
  readonly signerKeys: Readonly<Partial<Record<SignerName, string>>>;
  readonly ingressCommonName?: string;
  /** Of the cluster that it was made for; of no other can it be used. */
  readonly clusterName?: string;
  readonly baseDomain?: string;
  readonly clusterId?: string;
  readonly infraId?: string;
  /** The text is empty when only the hash is known. */
  readonly password?: { readonly text: string; readonly bcrypt: string };
  /** All of it: nothing is left to be drawn. */
  readonly whole?: SiteIdentity;
  /** For inputs that have no mirrors of their own. */
  readonly imageDigestSources?: readonly RetainedSource[];
};

/** Digests that tell the keys of two identities apart, and no key. */
export type Fingerprint = {
  /** Of all of the signers' together. */
  readonly all: Digest;
  /**
   * Of the public key of each signer, by the name of its file, in DER: what
   * `openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum` prints.
   */
  readonly signers: Readonly<Record<string, Digest>>;
};

export function fingerprintOf({ signers }: SiteIdentity): Fingerprint {
  const entries = SIGNER_NAMES.map(
    (name) => [SIGNERS[name].file, digestKey(signers[name].certificate)] as const,
  );
  const all = digestOf(entries.map(([file, digest]) => `${file} ${digest}\n`).join(''));
  return { all, signers: Object.fromEntries(entries) };
}

function digestKey(certificate: string): Digest {
  const der = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return digestOf(der);
}

/** What of a site its kubeconfig names. */
export type KubeconfigSite = { readonly clusterName: string; readonly baseDomain: string };

/**
 * auth/kubeconfig of the cluster's administrator: keys sorted, without kind and apiVersion, the way
 * openshift-install writes it. Holds a private key.
 */
export function renderKubeconfig(site: KubeconfigSite, identity: SiteIdentity): string {
  const { localhost, serviceNetwork, loadBalancer, ingress } = identity.signers;
  const authorities = [localhost, serviceNetwork, loadBalancer, ingress];
  const bundle = authorities.map(({ certificate }) => certificate).join('');
  const name = formatScalar(site.clusterName);
  return `clusters:
- cluster:
    certificate-authority-data: ${encode(bundle)}
    server: ${findServer(site)}
  name: ${name}
contexts:
- context:
    cluster: ${name}
    user: admin
  name: admin
current-context: admin
users:
- name: admin
  user:
    client-certificate-data: ${encode(identity.adminClient.certificate)}
    client-key-data: ${encode(identity.adminClient.privateKey)}
`;
}

/** Address of a cluster's API. */
export const findServer = ({ clusterName, baseDomain }: KubeconfigSite): string =>
  `https://api.${clusterName}.${baseDomain.replace(/\.$/, '')}:6443`;

/** A cluster may be called "123" or "no": quoted, as a string must be for a reader of YAML 1.1. */
const formatScalar = (text: string): string => stringify(text, { version: '1.1' }).trimEnd();

const encode = (text: string): string => Buffer.from(text).toString('base64');

/** What of a site its identity depends on: when one of these changes, another identity is used. */
export type StateSite = {
  readonly clusterName: string;
  readonly baseDomain: string;
  /** As given by the user; absent when it was drawn. */
  readonly clusterId?: string;
  readonly infraId?: string;
};

/** One generation of a site's identity, and whose it is. */
export type IdentityState = {
  readonly identity: SiteIdentity;
  readonly site: StateSite;
  /** Id of the rotation that drew it, if one did. */
  readonly rotation?: string;
};

/** Raised when the shape of a state changes: an older one is then unusable. */
const VERSION = 1;

/** The text of a state file. Holds private keys: for files of mode 0600. */
export function formatState({ identity, site, rotation }: IdentityState): string {
  const state = { identity, site, ...withoutUndefined({ rotation }) };
  return formatReadableJson({ version: VERSION, sha256: hashState(state), ...state });
}

/**
 * What a state file holds, or undefined when it is not the whole of what `formatState` wrote: cut
 * short, changed by hand, or of another version.
 */
export function parseState(text: string): IdentityState | undefined {
  const { version, sha256, ...members } = parseObject(text);
  const { identity, site } = members;
  if (version !== VERSION || !isObject(identity) || !isObject(site)) return undefined;
  const state = members as unknown as IdentityState;
  return sha256 === hashState(state) ? state : undefined;
}

/** Whether it was drawn for exactly these names and given ids. */
export const isSameSite = (a: StateSite, b: StateSite): boolean =>
  a.clusterName === b.clusterName &&
  a.baseDomain === b.baseDomain &&
  a.clusterId === b.clusterId &&
  a.infraId === b.infraId;

/** Whether an identity can be used for a site: an id that the site does not give may be any. */
export const fitsSite = ({ identity, site }: IdentityState, wanted: StateSite): boolean =>
  site.clusterName === wanted.clusterName &&
  site.baseDomain === wanted.baseDomain &&
  (wanted.clusterId ?? identity.clusterId) === identity.clusterId &&
  (wanted.infraId ?? identity.infraId) === identity.infraId;

const hashState = (state: IdentityState): string =>
  createHash('sha256').update(formatCanonicalJson(state)).digest('hex');

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {}; // a broken state is an unusable one, which is the answer
  }
}
