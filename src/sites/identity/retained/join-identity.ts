import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { ConfigError } from '../../../base/errors.ts';
import { findServer } from '../kubeconfig.ts';
import { INGRESS_PREFIX, SIGNERS } from '../certificates/signers.ts';
import type { CertifiedKey, KeyPair, SiteIdentity } from '../site-identity.ts';
import { incomplete, mismatch } from './retained-files.ts';
import type { ShownFile } from '../../../shape/go-json.ts';
import type { RetainedKubeconfig } from './retained-kubeconfig.ts';
import type { RetainedManifest } from './retained-manifest.ts';
import { proveRetainedPassword } from './retained-password.ts';
import {
  isSameKey,
  parseRetainedCertificate,
  parseRetainedKey,
  readSignerName,
} from './retained-pem.ts';

/** Where the parts of an identity are that was made before. */
export type IdentityParts = {
  readonly manifest: RetainedManifest;
  readonly kubeconfig: RetainedKubeconfig;
  /** Of the manifest's hash; the text is empty where it is unknown. */
  readonly password?: (ShownFile & { readonly text: string }) | undefined;
  /** PEM key of the administrator's signer, where that is known. */
  readonly adminKey?: (ShownFile & { readonly text: string }) | undefined;
  /** Seconds since 1970; that of the ingress signer unless told. */
  readonly madeAt?: number | undefined;
};

/** A file as it is named in errors. */
export const nameOf = ({ directory, path }: ShownFile): string => join(directory, path);

type ServingName = keyof RetainedManifest['keys'];

/**
 * The whole identity of a cluster out of its manifest, which has the keys, and its kubeconfig, which
 * has their certificates. Every part is proven to be of the others: certificates of keys, the
 * client's of the administrator's signer, password of hash, server of name and domain.
 *
 * @throws ConfigError `retained.incomplete`, `retained.mismatch`, `retained.not-pem`,
 * `retained.not-rsa`, `retained.password`
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

/** @throws ConfigError `retained.incomplete` */
export function refuseNameless(manifest: RetainedManifest): void {
  const { clusterId, infraId, clusterName, baseDomain, shownAs } = manifest;
  const known = { cluster_id: clusterId, infra_id: infraId, cluster_name: clusterName };
  for (const [key, text] of Object.entries({ ...known, base_domain: baseDomain })) {
    if (text === '') throw incomplete(`${shownAs} has no ${key}`);
  }
}

function refuseOtherServer(manifest: RetainedManifest, kubeconfig: RetainedKubeconfig): void {
  const expected = findServer(manifest);
  const { server: found, shownAs } = kubeconfig;
  if (found === expected) return;
  const message = `${shownAs} is of another cluster than ${manifest.shownAs}`;
  throw new ConfigError('retained.mismatch', message, { expected, found });
}

function joinSigner(
  name: ServingName,
  { manifest, kubeconfig }: IdentityParts,
): { readonly pair: KeyPair; readonly commonName: string } {
  const { file } = SIGNERS[name];
  const text = manifest.keys[name];
  if (text === '') throw incomplete(`${manifest.shownAs} has no private key of ${file}`);
  const privateKey = parseRetainedKey(text, `${manifest.shownAs}: key of ${file}`);
  const certificate = kubeconfig.authorities.find((one) => isSameKey(privateKey, one));
  if (!certificate) {
    throw mismatch(
      `${kubeconfig.shownAs} has no certificate of the key of ${file} in ${manifest.shownAs}`,
    );
  }
  const commonName = readSignerName(certificate, name, kubeconfig.shownAs);
  return { pair: { privateKey, certificate: certificate.toString() }, commonName };
}

/** The node trusts the certificate of the manifest: it must be the one that signed the client's. */
function joinAdmin({ manifest, kubeconfig, adminKey }: IdentityParts): CertifiedKey {
  const shownAs = `${manifest.shownAs}: admin_ca_certificate`;
  const signer = parseRetainedCertificate(manifest.adminCertificate, shownAs);
  readSignerName(signer, 'adminKubeconfig', shownAs);
  const client = new X509Certificate(kubeconfig.client.certificate);
  if (!client.checkIssued(signer) || !client.verify(signer.publicKey)) {
    throw mismatch(`${shownAs} did not sign the client certificate of ${kubeconfig.shownAs}`);
  }
  const certificate = signer.toString();
  if (!adminKey) return { certificate };
  const privateKey = parseRetainedKey(adminKey.text, nameOf(adminKey));
  if (isSameKey(privateKey, signer)) return { certificate, privateKey };
  throw mismatch(`${shownAs} is not the certificate of the key in ${nameOf(adminKey)}`);
}

async function provePassword({
  manifest,
  password,
}: IdentityParts): Promise<SiteIdentity['password']> {
  const { passwordHash: bcrypt, shownAs: hash } = manifest;
  const text = password?.text ?? '';
  await proveRetainedPassword({ bcrypt, text }, { hash, text: password ? nameOf(password) : '' });
  return { text, bcrypt };
}
