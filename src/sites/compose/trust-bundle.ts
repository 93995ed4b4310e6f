import type { GoJson } from './go-json.ts';

export type TrustBundleInput = {
  readonly additionalTrustBundle?: string;
  /** As written; the default of the installer does not count. */
  readonly additionalTrustBundlePolicy?: string;
  readonly proxy?: object;
};

const PROXY_CONFIG_MAP = 'user-ca-bundle';

/**
 * `additionalTrustBundle` of a seed reconfiguration: always there, with all three of its texts. The
 * config map of the proxy is named only where a policy is written, `Always` or `Proxyonly` with a
 * proxy: consumers compare its presence with the seed's.
 */
export function mapTrustBundle(install: TrustBundleInput): GoJson {
  const bundle = install.additionalTrustBundle ?? '';
  const isProxied = bundle !== '' && reachesProxy(install);
  return new Map([
    ['userCaBundle', bundle],
    ['proxyConfigmapName', isProxied ? PROXY_CONFIG_MAP : ''],
    ['proxyConfigmapBundle', isProxied ? bundle : ''],
  ]);
}

const reachesProxy = ({ additionalTrustBundlePolicy: policy, proxy }: TrustBundleInput): boolean =>
  policy === 'Always' || (policy === 'Proxyonly' && proxy !== undefined);
