import { X509Certificate } from 'node:crypto';
import { digestOf, type Digest } from '../../base/digest.ts';
import { SIGNER_NAMES, SIGNERS } from './certificates/signers.ts';
import type { SiteIdentity } from './site-identity.ts';

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
