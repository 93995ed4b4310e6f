import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { ConfigError } from '../../../base/errors.ts';
import { isObject } from '../../../base/lists.ts';
import { readPem, type PemReading } from '../../../keys/index.ts';
import { parse, findYamlExcess } from '../../../shape/parse-text.ts';
import {
  type SiteKeyPair,
  findServer,
  INGRESS_PREFIX,
  SIGNERS,
  type CertifiedKey,
  type SiteIdentity,
} from '../identity.ts';
import type { RetainedManifest, ShownFile } from './documents.ts';
import {
  decodeCertificate,
  isCertificate,
  isSameKey,
  parseRetainedCertificate,
  parseRetainedKey,
  retainedMismatch,
  incomplete,
  proveRetainedPassword,
  readSignerName,
} from './files.ts';

/* Owns the proof that the parts of a whole identity belong together. */

export type RetainedKubeconfig = {
  readonly shownAs: string;
  readonly server: string;
  /** The authorities whose certificates the kubeconfig's reader trusts. */
  readonly authorities: readonly X509Certificate[];
  readonly client: SiteKeyPair;
};

type Value = Readonly<Record<string, unknown>>;

export type IdentityParts = {
  readonly manifest: RetainedManifest;
  readonly kubeconfig: RetainedKubeconfig;
  /** The password of the manifest's hash; the text is empty if it is unknown. */
  readonly password?: (ShownFile & { readonly text: string }) | undefined;
  /** PEM key of the administrator's signer, if it is known. */
  readonly adminKey?: (ShownFile & { readonly text: string }) | undefined;
  /** Seconds since 1970; by default the time of the ingress signer. */
  readonly madeAt?: number | undefined;
};

/**
 * Joins the whole identity of a cluster from its manifest, which has the keys, and its kubeconfig, which has
 * the certificates of these keys. Every part is proven to belong to the others: certificates to keys, the
 * client's certificate to the administrator's signer, password to hash, server to name and domain.
 */
export async function joinIdentity(parts: IdentityParts): Promise<SiteIdentity> {
  const { manifest, kubeconfig } = parts;
  refuseNameless(manifest);
  refuseOtherServer(manifest, kubeconfig);
  const adminKubeconfig = joinAdmin(parts);
  const ingress = joinSigner('ingress', parts);
  const { commonName } = ingress;
  if (commonName !== manifest.ingressCommonName) {
    throw new ConfigError('retained.mismatch', `${manifest.shownAs} names another ingress signer`, {
      expected: commonName,
      found: manifest.ingressCommonName,
    });
  }
  return {
    clusterId: manifest.clusterId,
    infraId: manifest.infraId,
    signers: {
      loadBalancer: joinSigner('loadBalancer', parts).pair,
      localhost: joinSigner('localhost', parts).pair,
      serviceNetwork: joinSigner('serviceNetwork', parts).pair,
      ingress: { ...ingress.pair, commonName },
      adminKubeconfig,
    },
    adminClient: kubeconfig.client,
    password: await provePassword(parts),
    madeAt: parts.madeAt ?? Number(commonName.slice(INGRESS_PREFIX.length)),
  };
}

/** Cluster and user of the current context, with certificates and key in the file; errors quote nothing. */
export function parseRetainedKubeconfig(text: string, shownAs: string): RetainedKubeconfig {
  const config = parseYaml(text, shownAs);
  const context = config['current-context'];
  const { cluster: clusterName, user: userName } = findNamed(config, 'contexts', context);
  const cluster = findNamed(config, 'clusters', clusterName);
  const user = findNamed(config, 'users', userName);
  const read = (value: Value, key: string): string => {
    const member = value[key];
    if (typeof member === 'string') return member;
    throw unusable(shownAs, `the current context has no ${key}`);
  };
  const decode = (value: Value, key: string): string =>
    Buffer.from(read(value, key), 'base64').toString('latin1');
  const privateKey = parseRetainedKey(decode(user, 'client-key-data'), `${shownAs}: client key`);
  const certificate = parseRetainedCertificate(
    decode(user, 'client-certificate-data'),
    `${shownAs}: client certificate`,
  );
  if (!isSameKey(privateKey, certificate)) {
    throw retainedMismatch(
      `${shownAs} has a client certificate that does not belong to its client key`,
    );
  }
  const bundle = decode(cluster, 'certificate-authority-data');
  return {
    shownAs,
    server: read(cluster, 'server'),
    authorities: requireWhole(readPem(bundle), shownAs)
      .filter(isCertificate)
      .map((block) => decodeCertificate(block, `${shownAs}: certificate authority`)),
    client: { privateKey, certificate: certificate.toString() },
  };
}

export const nameRetained = ({ directory, path }: ShownFile): string => join(directory, path);

export function refuseNameless(manifest: RetainedManifest): void {
  const { clusterId, infraId, clusterName, baseDomain, shownAs } = manifest;
  const known = { cluster_id: clusterId, infra_id: infraId, cluster_name: clusterName };
  for (const [key, text] of Object.entries({ ...known, base_domain: baseDomain })) {
    if (text === '') throw incomplete(`${shownAs} has no ${key}`);
  }
}

/** The parser's own message would quote the text, including keys. */
function parseYaml(text: string, shownAs: string): Value {
  const excess = findYamlExcess(text);
  if (excess) throw unusable(shownAs, excess.message);
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    throw unusable(shownAs, 'it is not YAML');
  }
  if (isObject(value)) return value;
  throw unusable(shownAs, 'it is not a YAML mapping');
}

/** The member of `list` with that name: its key is the name of the list in the singular. */
function findNamed(config: Value, list: string, name: unknown): Value {
  const entries: unknown = config[list];
  const found: unknown = Array.isArray(entries)
    ? entries.find((entry: unknown) => isObject(entry) && entry['name'] === name)
    : undefined;
  const member = isObject(found) ? found[list.slice(0, -1)] : undefined;
  return isObject(member) ? member : {};
}

/** Behind a broken block, authorities of the cluster may be missing. */
function requireWhole({ blocks, problem = '', isBroken }: PemReading, shownAs: string) {
  if (isBroken) throw unusable(shownAs, `certificate-authority-data: ${problem}`);
  return blocks;
}

const unusable = (shownAs: string, problem: string): ConfigError =>
  new ConfigError('retained.kubeconfig', `${shownAs} is not a usable kubeconfig: ${problem}`, {
    hint: "give the administrator's kubeconfig unchanged, with its certificates inside",
  });

function refuseOtherServer(manifest: RetainedManifest, kubeconfig: RetainedKubeconfig): void {
  const expected = findServer(manifest);
  const { server: found, shownAs } = kubeconfig;
  if (found === expected) return;
  const message = `${shownAs} belongs to another cluster than ${manifest.shownAs}`;
  throw new ConfigError('retained.mismatch', message, { expected, found });
}

type ServingName = keyof RetainedManifest['keys'];

function joinSigner(
  name: ServingName,
  { manifest, kubeconfig }: IdentityParts,
): { readonly pair: SiteKeyPair; readonly commonName: string } {
  const { file } = SIGNERS[name];
  const text = manifest.keys[name];
  if (text === '') throw incomplete(`${manifest.shownAs} has no private key of ${file}`);
  const privateKey = parseRetainedKey(text, `${manifest.shownAs}: key of ${file}`);
  const certificate = kubeconfig.authorities.find((one) => isSameKey(privateKey, one));
  if (!certificate) {
    throw retainedMismatch(
      `${kubeconfig.shownAs} has no certificate for the key of ${file} in ${manifest.shownAs}`,
    );
  }
  const commonName = readSignerName(certificate, name, kubeconfig.shownAs);
  return { pair: { privateKey, certificate: certificate.toString() }, commonName };
}

/** The node trusts the certificate of the manifest: it must be the certificate that signed the client's. */
function joinAdmin({ manifest, kubeconfig, adminKey }: IdentityParts): CertifiedKey {
  const shownAs = `${manifest.shownAs}: admin_ca_certificate`;
  const signer = parseRetainedCertificate(manifest.adminCertificate, shownAs);
  readSignerName(signer, 'adminKubeconfig', shownAs);
  const client = new X509Certificate(kubeconfig.client.certificate);
  if (!client.checkIssued(signer) || !client.verify(signer.publicKey)) {
    throw retainedMismatch(
      `${shownAs} did not sign the client certificate of ${kubeconfig.shownAs}`,
    );
  }
  const certificate = signer.toString();
  if (!adminKey) return { certificate };
  const privateKey = parseRetainedKey(adminKey.text, nameRetained(adminKey));
  if (isSameKey(privateKey, signer)) return { certificate, privateKey };
  throw retainedMismatch(
    `${shownAs} is not the certificate of the key in ${nameRetained(adminKey)}`,
  );
}

async function provePassword({
  manifest,
  password,
}: IdentityParts): Promise<SiteIdentity['password']> {
  const { passwordHash: bcrypt, shownAs: hash } = manifest;
  const text = password?.text ?? '';
  await proveRetainedPassword(
    { bcrypt, text },
    { hash, text: password ? nameRetained(password) : '' },
  );
  return { text, bcrypt };
}
