import { explainRequestUri } from '../../base/http/request-uri.ts';
import { findNoProxyFaults } from '../../base/http/typed-proxy.ts';
import type { DocumentProblem } from '../../base/errors.ts';
import { contains, parseAddress, type Cidr } from '../../base/ip-address.ts';
import { isPlaceholder, PLACEHOLDER_PROBLEM } from '../../config/secrets.ts';
import { readSshKeys } from '../../keys/index.ts';
import type { InstallationProxy } from '../../openshift/installation/mirrors.ts';
import { explainAuth, explainPullSecretFault, readPullSecret } from '../../registry/index.ts';
import {
  type ReportProblem,
  invalid,
  required,
  showValue,
  unsupported,
} from '../../shape/report.ts';
import { explainDomain } from './images.ts';

/* Owns the rules of pull secrets, SSH keys and proxies. */

/** Networks inside of the cluster, in which no proxy can be. */
export type InnerNetworks = {
  readonly clusterNetworks: readonly Cidr[];
  readonly serviceNetworks: readonly Cidr[];
};

export const HIDDEN = 'Invalid value: "[redacted]"';

/** Repeats no part of the pull secret except the names of its registries. */
export function explainPullSecret(text: string): readonly string[] {
  return isPlaceholder(text) ? [PLACEHOLDER_PROBLEM] : explainJson(text);
}

type Read = ReturnType<typeof readPullSecret>;

/** The last one: several rules read it, and the sites of a fleet have the same. */
let last: { readonly text: string; readonly read: Read } | undefined;

function readOnce(text: string): Read {
  if (last?.text !== text) last = { text, read: readPullSecret(text) };
  return last.read;
}

/** The registries for which a pull secret has an entry; empty if it is not a pull secret. */
export const listPullSecretHosts = (text: string): ReadonlySet<string> =>
  new Set(readOnce(text).entries.map(({ registry }) => registry));

/** Entries whose `auth` no node can read, as sentences. openshift-install asks only whether there is one. */
export const explainAuths = (text: string): readonly string[] =>
  readOnce(text).entries.flatMap((entry) =>
    entry.fault === 'absent' ? [] : (explainAuth(entry) ?? []),
  );

const FIPS = /^(?:ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))$/;

/** Every line must be an entry of authorized_keys; a FIPS cluster takes only RSA and ECDSA. */
export function explainSshKeys(text: string, fips: boolean): string | undefined {
  const { keys, problem } = readSshKeys(text);
  if (problem !== undefined) return `ssh: no key found: ${problem}`;
  const other = fips ? keys.find(({ algorithm }) => !FIPS.test(algorithm)) : undefined;
  return other === undefined
    ? undefined
    : `SSH key type ${other.algorithm} unavailable when FIPS is enabled. Please use rsa or ecdsa.`;
}

/** `inner` is absent for an installation, which knows no cluster. */
export function checkProxy(
  report: ReportProblem,
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

function explainJson(text: string): readonly string[] {
  const read = readOnce(text);
  const why = explainPullSecretFault(read, FAULTS);
  if (why !== undefined) return [`${HIDDEN}: ${why}`];
  return read.entries
    .filter(({ fault, hasStore }) => fault === 'absent' && !hasStore)
    .map(({ registry }) => `${HIDDEN}: "${registry}" requires either auth or credsStore`);
}

/** Words of openshift-install. */
const FAULTS = {
  'empty': 'unexpected end of JSON input',
  'not-json': 'not valid JSON',
  'not-an-object': 'json: cannot unmarshal it into an object',
  'no-auths': 'auths required',
  'no-entries': 'auths required',
  'auths-not-an-object': 'json: auths must be an object',
} as const;

function explainUri(
  text: string,
  schemes: readonly string[],
  inner: InnerNetworks | undefined,
): readonly string[] {
  if (text === '') return [];
  const [, scheme = '', host = ''] =
    /^(?:([A-Za-z][A-Za-z0-9+.-]*):|(?=\/))(?:\/\/(?:[^/]*@)?(\[[^\]]*\]|[^:/?#]*))?/.exec(text) ??
    [];
  const why = explainRequestUri(text);
  if (why !== undefined) return [invalid(text, `parse ${showValue(text)}: ${why}`)];
  if (!schemes.includes(scheme.toLowerCase())) return [unsupported(scheme, schemes)];
  if (host === '') return [invalid(text, 'the URL names no host')];
  return explainHost(text, host.replace(/^\[(.*)\]$/, '$1'), inner);
}

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
  const trimmed = text.split(',').map((element) => element.trim());
  // The installer takes an element twice.
  const broken = findNoProxyFaults(trimmed.join(','), isDomain)
    .filter(({ isMalformed }) => isMalformed)
    .map(({ element, index }) => invalid(text, explainElement(element, index)));
  return [...spaces, ...broken];
}

/** The installer takes names in lower case, with a dot at the end or not. */
const isDomain = (name: string): boolean => explainDomain(name) === undefined;

const explainElement = (element: string, index: number): string =>
  'each element of noProxy must be a IP, CIDR or domain without wildcard characters, ' +
  `which is violated by element ${index} ${JSON.stringify(element)}`;
