import type { RetainedSource } from './retained-manifest.ts';
import type { KeyPair } from '../site-identity.ts';
import type { SignerName } from '../certificates/signers.ts';

/** What an earlier producer left of an identity. */
export type RetainedIdentity = {
  /** Signers with key and certificate. */
  readonly signers: Readonly<Partial<Record<SignerName, KeyPair>>>;
  /** Keys, PKCS#1 PEM, whose certificates are made anew. */
  readonly signerKeys: Readonly<Partial<Record<SignerName, string>>>;
  readonly ingressCommonName?: string;
  /** Of the cluster that it was made for; of no other can it be used. */
  readonly clusterName?: string;
  readonly baseDomain?: string;
  readonly clusterId?: string;
  readonly infraId?: string;
  /** The text is empty when only the hash is known. */
  readonly password?: { readonly text: string; readonly bcrypt: string };
  /** manifest.json as it was found: it goes on the ISO as it is. */
  readonly manifest?: string;
  /** Mirrors that take the place of those of install-config.yaml. */
  readonly imageDigestSources?: readonly RetainedSource[];
};
