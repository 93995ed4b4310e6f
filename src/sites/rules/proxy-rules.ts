import type { DocumentProblem } from '../../base/errors.ts';
import { contains, parseAddress, type Cidr } from '../../base/ip-address.ts';
import type { Report } from '../../shape/report.ts';
import { invalid, required, unsupported } from '../../shape/report.ts';
import type { InstallationProxy } from '../../openshift/installation/mirrors.ts';
import { isNoProxyElement } from './resource-names.ts';

/** Networks inside of the cluster, where no proxy can be. */
export type InnerNetworks = {
  readonly clusterNetworks: readonly Cidr[];
  readonly serviceNetworks: readonly Cidr[];
};

/** @param inner absent for an installation, which knows no cluster */
export function checkProxy(
  report: Report,
  proxy: InstallationProxy | undefined,
  inner?: InnerNetworks,
): readonly DocumentProblem[] {
  if (!proxy) return [];
  const { httpProxy = '', httpsProxy = '', noProxy = '' } = proxy;
  const at = (path: string, why: readonly string[]): readonly DocumentProblem[] =>
    why.map((problem) => report(path, problem));
  const isEmpty = httpProxy === '' && httpsProxy === '';
  return [
    ...at('proxy', isEmpty ? [required('must include httpProxy or httpsProxy')] : []),
    ...at('proxy.httpProxy', explainUri(httpProxy, ['http'], inner)),
    ...at('proxy.httpsProxy', explainUri(httpsProxy, ['http', 'https'], inner)),
    ...at('proxy.noProxy', explainNoProxy(noProxy)),
  ];
}

function explainUri(
  text: string,
  schemes: readonly string[],
  inner: InnerNetworks | undefined,
): readonly string[] {
  if (text === '') return [];
  const [, scheme = '', host = ''] =
    /^(?:([A-Za-z][A-Za-z0-9+.-]*):|(?=\/))(?:\/\/(?:[^/]*@)?(\[[^\]]*\]|[^:/?#]*))?/.exec(text) ??
    [];
  if (!isRequestUri(text)) {
    return [invalid(text, `parse ${JSON.stringify(text)}: invalid URI for request`)];
  }
  if (!schemes.includes(scheme.toLowerCase())) return [unsupported(scheme, schemes)];
  if (host === '') return [invalid(text, 'the URL names no host')];
  return explainHost(text, host.replace(/^\[(.*)\]$/, '$1'), inner);
}

/** An absolute URI or an absolute path, without blanks (Go's ParseRequestURI). */
const isRequestUri = (text: string): boolean =>
  /^(?:[A-Za-z][A-Za-z0-9+.-]*:|\/)[^\s]*$/.test(text) && !/%(?![0-9A-Fa-f]{2})/.test(text);

function explainHost(
  text: string,
  host: string,
  inner: InnerNetworks | undefined,
): readonly string[] {
  const address = parseAddress(host);
  if (!address || !inner) return [];
  const isIn = (networks: readonly Cidr[]): boolean =>
    networks.some((network) => contains(network, address));
  return [
    ...(isIn(inner.clusterNetworks)
      ? [invalid(text, 'proxy value is part of the cluster networks')]
      : []),
    ...(isIn(inner.serviceNetworks)
      ? [invalid(text, 'proxy value is part of the service networks')]
      : []),
  ];
}

function explainNoProxy(text: string): readonly string[] {
  if (text === '' || text === '*') return [];
  const spaces = text.includes(' ') ? [invalid(text, 'noProxy must not have spaces')] : [];
  const elements = text.split(',').map((element) => element.trim());
  const broken = elements.flatMap((element, index) =>
    isNoProxyElement(element) ? [] : [invalid(text, explainElement(element, index))],
  );
  return [...spaces, ...broken];
}

const explainElement = (element: string, index: number): string =>
  'each element of noProxy must be a IP, CIDR or domain without wildcard characters, ' +
  `which is violated by element ${index} ${JSON.stringify(element)}`;
