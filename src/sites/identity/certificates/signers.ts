import type { Subject } from './certificates.ts';
import type { SiteIdentity } from '../site-identity.ts';

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
