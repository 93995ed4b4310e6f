import { ConfigError } from '../../../base/errors.ts';
import { SIGNERS, type RetainedIdentity, type SignerName, type SiteIdentity } from '../identity.ts';
import type { RetainedManifest } from './documents.ts';
import {
  HASH_FILE,
  incomplete,
  isSameKey,
  retainedMismatch,
  parseRetainedCertificate,
  parseRetainedKey,
  type RetainedSigners,
} from './files.ts';
import { refuseNameless } from './join.ts';

type InTls = {
  readonly signers: RetainedSigners;
  readonly tlsPassword: SiteIdentity['password'] | undefined;
};

/** The files in `tls/` must agree with the manifest. */
export function joinManifest(
  manifest: RetainedManifest,
  found: InTls,
): Omit<RetainedIdentity, 'signers' | 'whole'> {
  const { clusterName, baseDomain, clusterId, infraId, passwordHash, ingressCommonName } = manifest;
  refuseNameless(manifest);
  refuseOtherAdmin(manifest, found);
  refuseOtherName(manifest, found);
  const { tlsPassword } = found;
  if (tlsPassword && tlsPassword.bcrypt !== passwordHash) {
    throw retainedMismatch(`${manifest.shownAs} has a different hash than ${HASH_FILE}`);
  }
  return {
    clusterName,
    baseDomain,
    clusterId,
    infraId,
    ingressCommonName,
    signerKeys: readKeys(manifest, found),
    password: tlsPassword ?? { text: '', bcrypt: passwordHash },
  };
}

/** Reads the keys for which `tls/` has no certificate. */
function readKeys({ keys, shownAs }: RetainedManifest, { signers }: InTls): Record<string, string> {
  const found = Object.entries(keys).map(([name, text]): [SignerName, string] => {
    const { file } = SIGNERS[name as SignerName];
    if (text === '') throw incomplete(`${shownAs} has no private key of ${file}`);
    return [name as SignerName, parseRetainedKey(text, `${shownAs}: key of ${file}`)];
  });
  for (const [name, key] of found) {
    const signer = signers[name];
    if (signer && !isSameKey(key, signer.privateKey)) {
      throw retainedMismatch(`${shownAs} has a different key than tls/${SIGNERS[name].file}.key`);
    }
  }
  return Object.fromEntries(found.filter(([name]) => !signers[name]));
}

/** The node trusts the manifest's signer, and the signer in `tls/` signs the kubeconfig. */
function refuseOtherAdmin(manifest: RetainedManifest, { signers }: InTls): void {
  const shownAs = `${manifest.shownAs}: admin_ca_certificate`;
  const found = parseRetainedCertificate(manifest.adminCertificate, shownAs).toString();
  const { adminKubeconfig } = signers;
  if (!adminKubeconfig || found === adminKubeconfig.certificate) return;
  throw retainedMismatch(`${shownAs} differs from tls/${SIGNERS.adminKubeconfig.file}.crt`);
}

function refuseOtherName(
  { ingressCommonName, shownAs }: RetainedManifest,
  { signers }: InTls,
): void {
  if (ingressCommonName === '') throw incomplete(`${shownAs} has no ingress_certificate_cn`);
  if (!signers.ingress || signers.ingress.commonName === ingressCommonName) return;
  throw new ConfigError('retained.mismatch', `${shownAs} and tls/ name different ingress signers`, {
    expected: signers.ingress.commonName,
    found: ingressCommonName,
  });
}
