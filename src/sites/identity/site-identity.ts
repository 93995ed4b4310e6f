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
