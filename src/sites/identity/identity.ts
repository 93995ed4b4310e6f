import { X509Certificate, createHash } from 'node:crypto';
import { stringify } from 'yaml';
import { digestOf, type Digest } from '../../base/digest.ts';
import { withoutUndefined, isObject } from '../../base/lists.ts';
import type { AgentAuth } from '../../openshift/agent/image-members.ts';
import { formatCanonicalJson, formatReadableJson } from '../../base/text/json.ts';
import type { Subject } from './certificates.ts';
import type { RetainedSource } from './retained/documents.ts';

/*
 * Main file of identities: owns their types, the fixed terms of the signers, the kubeconfig and
 * the text of a state file. It must not know directories or the order of generations.
 */

/** Private and public halves of a key that a cluster keeps across its reconfiguration. */
export type SiteKeyPair = {
  /** PKCS#1 PEM, `RSA PRIVATE KEY`. */
  readonly privateKey: string;
  /** X.509 PEM. */
  readonly certificate: string;
};

export type CertifiedKey = Pick<SiteKeyPair, 'certificate'> &
  Partial<Pick<SiteKeyPair, 'privateKey'>>;

/** Keys, ids and password of a site: made once, stored in its state, used again by every later build. */
export type SiteIdentity = {
  /** UUID version 4. */
  readonly clusterId: string;
  readonly infraId: string;
  readonly signers: {
    readonly loadBalancer: SiteKeyPair;
    readonly localhost: SiteKeyPair;
    readonly serviceNetwork: SiteKeyPair;
    readonly ingress: SiteKeyPair & { readonly commonName: string };
    /** Without the key if it was read from ISO and kubeconfig: neither has it. */
    readonly adminKubeconfig: CertifiedKey;
  };
  readonly adminClient: SiteKeyPair;
  readonly password: { readonly text: string; readonly bcrypt: string };
  /** Only of a cluster that agents install. */
  readonly auth?: AgentAuth;
  /** Time at which all of it was made, in seconds since 1970. */
  readonly madeAt: number;
};

export type SignerName = keyof SiteIdentity['signers'];

export type SignerTerms = {
  /** Base name of its files, `tls/<name>.key` and `tls/<name>.crt`. */
  readonly file: string;
  /** Days of 86,400 seconds. */
  readonly days: number;
  /** Subject of a signer that is made at this time, in seconds since 1970. */
  readonly subject: (madeAt: number) => Subject;
};

/** The parts of an identity that an earlier producer left. */
export type RetainedIdentity = {
  readonly signers: Readonly<Partial<Record<SignerName, SiteKeyPair>>>;
  /** Keys, PKCS#1 PEM, whose certificates are made again. */
  readonly signerKeys: Readonly<Partial<Record<SignerName, string>>>;
  readonly ingressCommonName?: string;
  /** Name of the cluster that it was made for; no other cluster can use it. */
  readonly clusterName?: string;
  readonly baseDomain?: string;
  readonly clusterId?: string;
  readonly infraId?: string;
  /** The text is empty if only the hash is known. */
  readonly password?: { readonly text: string; readonly bcrypt: string };
  /** The whole identity: nothing is left to draw. */
  readonly whole?: SiteIdentity;
  /** For inputs that have no mirrors of their own. */
  readonly imageDigestSources?: readonly RetainedSource[];
};

/** Digests that distinguish the keys of two identities; they contain no key. */
export type Fingerprint = {
  readonly all: Digest;
  /**
   * Digest of the public key of each signer, by the name of its file, in DER: the output of
   * `openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum`.
   */
  readonly signers: Readonly<Record<string, Digest>>;
};

export type KubeconfigSite = { readonly clusterName: string; readonly baseDomain: string };

/** Properties that decide the identity of a site: if one changes, another identity is used. */
export type StateSite = {
  readonly clusterName: string;
  readonly baseDomain: string;
  /** Id as given by the user; absent if it was drawn. */
  readonly clusterId?: string;
  readonly infraId?: string;
  /** Present for a cluster that agents install, whose identity has more. */
  readonly isForAgents?: true;
};

/** One generation of a site's identity, and the site it belongs to. */
export type IdentityState = {
  readonly identity: SiteIdentity;
  readonly site: StateSite;
  /** Id of the rotation that drew it, if a rotation did. */
  readonly rotation?: string;
};

const TEN_YEARS = 3650;

export const ADMIN_CLIENT_DAYS = TEN_YEARS;

/** Beginning of the common name by which the node finds its ingress signer. */
export const INGRESS_PREFIX = 'ingress-operator@';

const TWO_YEARS = 730;

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

export function fingerprintIdentity({ signers }: SiteIdentity): Fingerprint {
  const entries = SIGNER_NAMES.map(
    (name) => [SIGNERS[name].file, digestKey(signers[name].certificate)] as const,
  );
  const all = digestOf(entries.map(([file, digest]) => `${file} ${digest}\n`).join(''));
  return { all, signers: Object.fromEntries(entries) };
}

/**
 * auth/kubeconfig of the cluster's administrator: keys sorted, without kind and apiVersion, in the
 * form that openshift-install writes. Holds a private key. A cluster that agents install draws the signer of
 * its ingress itself.
 */
export function renderKubeconfig(site: KubeconfigSite, identity: SiteIdentity): string {
  const { localhost, serviceNetwork, loadBalancer, ingress } = identity.signers;
  const ofAll = [localhost, serviceNetwork, loadBalancer];
  const authorities = identity.auth ? ofAll : [...ofAll, ingress];
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

export const findServer = ({ clusterName, baseDomain }: KubeconfigSite): string =>
  `https://api.${clusterName}.${baseDomain.replace(/\.$/, '')}:6443`;

/** Increases when the shape of a state changes; older states then cannot be used. */
const VERSION = 1;

/** The text of a state file. Holds private keys: for files of mode 0600. */
export function formatState({ identity, site, rotation }: IdentityState): string {
  const state = { identity, site, ...withoutUndefined({ rotation }) };
  return formatReadableJson({ version: VERSION, sha256: hashState(state), ...state });
}

/** Undefined if it is not as `formatState` wrote it: cut short, changed by hand, or of another version. */
export function parseState(text: string): IdentityState | undefined {
  const { version, sha256, ...members } = parseObject(text);
  const { identity, site } = members;
  if (version !== VERSION || !isObject(identity) || !isObject(site)) return undefined;
  const state = members as unknown as IdentityState;
  return sha256 === hashState(state) ? state : undefined;
}

export const isSameSite = (a: StateSite, b: StateSite): boolean =>
  a.clusterName === b.clusterName &&
  a.baseDomain === b.baseDomain &&
  a.clusterId === b.clusterId &&
  a.infraId === b.infraId &&
  a.isForAgents === b.isForAgents;

/** True if an identity can be used for a site: an id that the site does not give may be any. */
export const fitsSite = ({ identity, site }: IdentityState, wanted: StateSite): boolean =>
  site.clusterName === wanted.clusterName &&
  site.baseDomain === wanted.baseDomain &&
  site.isForAgents === wanted.isForAgents &&
  (wanted.clusterId ?? identity.clusterId) === identity.clusterId &&
  (wanted.infraId ?? identity.infraId) === identity.infraId;

function ofKubeApi(name: string): SignerTerms {
  const subject: Subject = { organizationalUnit: 'openshift', commonName: name };
  return { file: name, days: TEN_YEARS, subject: () => subject };
}

function digestKey(certificate: string): Digest {
  const der = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return digestOf(der);
}

/** A cluster may be called "123" or "no": quoted, as a reader of YAML 1.1 requires for a string. */
const formatScalar = (text: string): string => stringify(text, { version: '1.1' }).trimEnd();

const encode = (text: string): string => Buffer.from(text).toString('base64');

const hashState = (state: IdentityState): string =>
  createHash('sha256').update(formatCanonicalJson(state)).digest('hex');

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {}; // a broken state cannot be used, and undefined says so
  }
}
