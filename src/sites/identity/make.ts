import {
  createPrivateKey,
  createPublicKey,
  randomBytes,
  X509Certificate,
  type KeyObject,
} from 'node:crypto';
import { ConfigError } from '../../base/errors.ts';
import { formatUuid, markUuid } from '../../base/uuid.ts';
import { makeAgentAuth } from './agent-auth.ts';
import { readValidity, issueClient, issueSigner, type Subject } from './certificates.ts';
import {
  type RetainedIdentity,
  ADMIN_CLIENT_DAYS,
  SIGNERS,
  type SignerName,
  type SiteKeyPair,
  type SiteIdentity,
} from './identity.ts';
import type { Keys, RsaPair } from './keys.ts';

/* Owns the making of an identity: everything that is drawn or issued for a site. */

export type RandomBytes = (size: number) => Uint8Array;

export type IdentityTools = {
  readonly keys: Keys;
  /** `crypto.randomBytes` by default. */
  readonly random?: RandomBytes;
  /** Seconds since 1970: the clock is an input. */
  readonly epoch: number;
  /** The parts that an earlier producer left; they are used in place of new ones. */
  readonly retained?: RetainedIdentity;
  readonly signal?: AbortSignal;
};

/** The properties of a site from which its identity is made; an id that is not given is drawn. */
export type IdentifiedSite = {
  readonly clusterName: string;
  readonly baseDomain?: string;
  readonly clusterId?: string;
  readonly infraId?: string;
  /** True for a cluster that agents install. */
  readonly isForAgents?: boolean;
};

type MadeSigner = {
  readonly pair: SiteKeyPair;
  readonly subject: Subject;
  readonly signingKey: KeyObject;
  /** Seconds since 1970. */
  readonly notBefore: number;
};

const NOTHING: RetainedIdentity = { signers: {}, signerKeys: {} };

/**
 * Draws ids, password, five signers and the administrator's client certificate. Costs six RSA keys
 * and a bcrypt hash, which the source of keys makes in its threads; retained ones cost nothing.
 */
export async function makeIdentity(
  site: IdentifiedSite,
  tools: IdentityTools,
): Promise<SiteIdentity> {
  const { random = randomBytes, retained = NOTHING, epoch } = tools;
  refuseOtherCluster(site, retained);
  const auth = site.isForAgents === true ? { auth: makeAgentAuth() } : {};
  if (retained.whole) return { ...retained.whole, ...auth };
  const clusterId = retained.clusterId ?? site.clusterId ?? formatUuid(markUuid(random(16), 4));
  const infraId = retained.infraId ?? site.infraId ?? makeInfraId(site.clusterName, random);
  const [password, loadBalancer, localhost, serviceNetwork, ingress, admin] = await Promise.all([
    retained.password ?? makePassword(tools.keys, random),
    makeSigner('loadBalancer', tools),
    makeSigner('localhost', tools),
    makeSigner('serviceNetwork', tools),
    makeSigner('ingress', tools),
    makeAdmin(tools),
  ]);
  return {
    clusterId,
    infraId,
    signers: {
      loadBalancer: loadBalancer.pair,
      localhost: localhost.pair,
      serviceNetwork: serviceNetwork.pair,
      ingress: { ...ingress.pair, commonName: ingress.subject.commonName },
      adminKubeconfig: admin.signer.pair,
    },
    adminClient: admin.client,
    password,
    ...auth,
    madeAt: epoch,
  };
}

/** Limit of openshift-install, from a time when clouds refused longer names. */
const MAX_INFRA_ID_SIZE = 27;
const INFRA_ID_SUFFIX_SIZE = 5;

/** No vowels and nothing that looks like one, so that no word appears by chance. */
const INFRA_ID_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

/** Name of a cluster's infrastructure: its own name, shortened, and five random characters. */
export function makeInfraId(clusterName: string, random: RandomBytes): string {
  const name = clusterName
    .replaceAll(/[^A-Za-z0-9-]/gu, '-')
    .replaceAll(/-{2,}/g, '-')
    .slice(0, MAX_INFRA_ID_SIZE - INFRA_ID_SUFFIX_SIZE - 1)
    .replace(/-+$/, '');
  return `${name}-${drawText(INFRA_ID_ALPHABET, INFRA_ID_SUFFIX_SIZE, random)}`;
}

/** Without l, O, 0 and 1, which people mistake for other characters. */
const PASSWORD_ALPHABET = 'abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789';

/** Draws the password of the cluster's first administrator: four groups of five with dashes between. */
export function drawPassword(random: RandomBytes): string {
  const text = drawText(PASSWORD_ALPHABET, 20, random);
  return [0, 5, 10, 15].map((start) => text.slice(start, start + 5)).join('-');
}

/**
 * Draws characters of an alphabet, each equally likely: bytes from the last whole multiple of the
 * alphabet's size on are drawn again, because a remainder alone would favour the first characters.
 */
export function drawText(alphabet: string, count: number, random: RandomBytes): string {
  const limit = 256 - (256 % alphabet.length);
  let text = '';
  while (text.length < count) {
    for (const byte of random(count - text.length)) {
      if (byte < limit) text += alphabet.charAt(byte % alphabet.length);
    }
  }
  return text;
}

const WORDS = {
  clusterName: 'cluster name',
  baseDomain: 'base domain',
  clusterId: 'cluster id',
  infraId: 'infra id',
};

function refuseOtherCluster(site: IdentifiedSite, retained: RetainedIdentity): void {
  for (const key of ['clusterName', 'baseDomain', 'clusterId', 'infraId'] as const) {
    const [expected, found] = [site[key], retained[key]];
    if (expected === undefined || found === undefined || expected === found) continue;
    throw new ConfigError('retained.mismatch', `the retained identity has another ${WORDS[key]}`, {
      expected,
      found,
      hint: 'keep the name and the domain of a cluster that is installed again',
    });
  }
}

async function makePassword(keys: Keys, random: RandomBytes): Promise<SiteIdentity['password']> {
  const text = drawPassword(random);
  return { text, bcrypt: await keys.hashPassword(text, random(16)) };
}

const DAY = 86_400;

async function makeSigner(name: SignerName, tools: IdentityTools): Promise<MadeSigner> {
  const { random = randomBytes, retained = NOTHING, epoch, keys, signal } = tools;
  const serial = random(8);
  const subject = subjectOf(name, tools);
  const known = retained.signers[name];
  if (known) return { ...loadSigner(known, { name, epoch }), subject };
  const signer = retained.signerKeys[name];
  const { privateKey, publicKey, signingKey } =
    signer === undefined ? await keys.next(signal) : loadKey(signer);
  const notAfter = epoch + SIGNERS[name].days * DAY;
  const terms = { subject, publicKey, serial, notBefore: epoch, notAfter };
  const certificate = await issueSigner(terms, signingKey);
  return { pair: { privateKey, certificate }, subject, signingKey, notBefore: epoch };
}

function subjectOf(name: SignerName, { retained = NOTHING, epoch }: IdentityTools): Subject {
  const commonName = name === 'ingress' ? retained.ingressCommonName : undefined;
  return commonName === undefined ? SIGNERS[name].subject(epoch) : { commonName };
}

const ADMIN: Subject = { organization: 'system:masters', commonName: 'system:admin' };

/** The private key of its signer is used here and stored in the state: it never reaches an ISO. */
async function makeAdmin(
  tools: IdentityTools,
): Promise<{ readonly signer: MadeSigner; readonly client: SiteKeyPair }> {
  const { random = randomBytes, epoch, keys, signal } = tools;
  const serial = random(8);
  const [signer, { privateKey, publicKey }] = await Promise.all([
    makeSigner('adminKubeconfig', tools),
    keys.next(signal),
  ]);
  const terms = {
    subject: ADMIN,
    publicKey,
    serial,
    notBefore: signer.notBefore,
    notAfter: epoch + ADMIN_CLIENT_DAYS * DAY,
  };
  const issuer = { subject: signer.subject, privateKey: signer.signingKey };
  const certificate = await issueClient(terms, issuer);
  if (tools.retained?.signers.adminKubeconfig) refuseForeignKeyId(certificate, signer.pair);
  return { signer, client: { privateKey, certificate } };
}

/** A retained signer may derive its key id from another digest than ours, and readers rely on that id. */
function refuseForeignKeyId(client: string, signer: SiteKeyPair): void {
  const signedBy = new X509Certificate(signer.certificate);
  if (new X509Certificate(client).checkIssued(signedBy)) return;
  const message = `the retained certificate of ${SIGNERS.adminKubeconfig.file} has a different key id`;
  throw new ConfigError('retained.mismatch', message, {
    expected: 'SHA-1 of the public key, PKCS#1',
    hint: 'remove it and its key to create new ones',
  });
}

function loadSigner(
  pair: SiteKeyPair,
  { name, epoch }: { readonly name: SignerName; readonly epoch: number },
): Omit<MadeSigner, 'subject'> {
  const { notBefore, notAfter } = readValidity(pair.certificate);
  if (notAfter < epoch * 1000) {
    const message = `the retained certificate of ${SIGNERS[name].file} has expired`;
    throw new ConfigError('retained.expired', message, {
      expected: `valid at ${new Date(epoch * 1000).toISOString()}`,
      found: new Date(notAfter).toISOString(),
      hint: 'remove it and its key to create new ones',
    });
  }
  const signingKey = createPrivateKey(pair.privateKey);
  return { pair, signingKey, notBefore: notBefore / 1000 };
}

function loadKey(privateKey: string): RsaPair {
  const signingKey = createPrivateKey(privateKey);
  return { privateKey, publicKey: createPublicKey(signingKey), signingKey };
}
