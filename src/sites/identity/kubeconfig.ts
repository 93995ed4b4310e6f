import { stringify } from 'yaml';
import type { SiteIdentity } from './site-identity.ts';

/** What of a site its kubeconfig names. */
export type KubeconfigSite = { readonly clusterName: string; readonly baseDomain: string };

/**
 * auth/kubeconfig of the cluster's administrator: keys sorted, without kind and apiVersion, the way
 * openshift-install writes it. Holds a private key.
 */
export function renderKubeconfig(site: KubeconfigSite, identity: SiteIdentity): string {
  const { localhost, serviceNetwork, loadBalancer, ingress } = identity.signers;
  const authorities = [localhost, serviceNetwork, loadBalancer, ingress];
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

/** Address of a cluster's API. */
export const findServer = ({ clusterName, baseDomain }: KubeconfigSite): string =>
  `https://api.${clusterName}.${baseDomain.replace(/\.$/, '')}:6443`;

/** A cluster may be called "123" or "no": quoted, as a string must be for a reader of YAML 1.1. */
const formatScalar = (text: string): string => stringify(text, { version: '1.1' }).trimEnd();

const encode = (text: string): string => Buffer.from(text).toString('base64');
