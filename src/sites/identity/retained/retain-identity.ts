import type { RetainedSource } from './retained-manifest.ts';
import type { KeyPair, SiteIdentity } from '../site-identity.ts';
import type { SignerName } from '../certificates/signers.ts';

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
