import { X509Certificate } from 'node:crypto';
import type { DocumentProblem } from '../../base/errors.ts';
import { contains, parseAddress, type Cidr } from '../../base/ip-address.ts';
import { isPlaceholder, PLACEHOLDER_PROBLEM } from '../../config/secrets.ts';
import type { InstallationProxy } from '../../openshift/installation/mirrors.ts';
import { type Report, invalid, required, unsupported } from '../../shape/report.ts';
import { isNoProxyElement } from './images.ts';

/* Owns the rules of pull secrets, SSH keys, trust bundles and proxies. */

type Mapping = Readonly<Record<string, unknown>>;

export type TrustBundle = {
  /** The fault of the bundle; its text is not repeated, since it may contain a key by mistake. */
  readonly problem?: string;
  readonly certificates: readonly {
    readonly subject: string;
    /** Milliseconds since 1970. */
    readonly notBefore: number;
    readonly notAfter: number;
  }[];
};

/** Networks inside of the cluster, in which no proxy can be. */
export type InnerNetworks = {
  readonly clusterNetworks: readonly Cidr[];
  readonly serviceNetworks: readonly Cidr[];
};

/** Replaces a confidential value. */
export const HIDDEN = 'Invalid value: "[redacted]"';

/**
 * Explains what is wrong with a pull secret. Repeats no part of it except the names of its
 * registries.
 */
export function explainPullSecret(text: string): readonly string[] {
  return isPlaceholder(text) ? [PLACEHOLDER_PROBLEM] : explainJson(text);
}

/** The registries for which a pull secret has an entry; empty if it is not a pull secret. */
export function listPullSecretHosts(text: string): ReadonlySet<string> {
  const parsed = parseJson(text);
  const auths = isMapping(parsed) ? parsed['auths'] : undefined;
  return new Set(isMapping(auths) ? Object.keys(auths) : []);
}

const FIPS = /^(?:ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))$/;

/** Every line must be an entry of authorized_keys; a FIPS cluster takes only RSA and ECDSA. */
export function explainSshKeys(text: string, fips: boolean): string | undefined {
  const lines = text.split('\n').map((line) => line.trim());
  for (const line of lines.filter((each) => each !== '')) {
    const algorithm = parseEntry(line);
    if (algorithm === undefined) return 'ssh: no key found';
    if (fips && !FIPS.test(algorithm)) {
      return `SSH key type ${algorithm} unavailable when FIPS is enabled. Please use rsa or ecdsa.`;
    }
  }
  return undefined;
}

/** Sites of a fleet share their bundles, so this many are cached parsed. */
const CACHED = 64;
const cached = new Map<string, TrustBundle>();

/** Reads PEM blocks until no byte is left, each an X.509 certificate (RFC 7468). */
export function readTrustBundle(text: string): TrustBundle {
  const known = cached.get(text);
  if (known) return known;
  const bundle = parseBundle(text);
  if (cached.size >= CACHED) cached.clear();
  cached.set(text, bundle);
  return bundle;
}

/**
 * Checks a proxy.
 *
 * @param inner absent for an installation, which knows no cluster
 */
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

function explainJson(text: string): readonly string[] {
  const parsed = parseJson(text);
  if (parsed === undefined) {
    const why = text.trim() === '' ? 'unexpected end of JSON input' : 'not valid JSON';
    return [`${HIDDEN}: ${why}`];
  }
  // Go reads JSON's null as an empty object.
  if (!isMapping(parsed ?? {})) return [`${HIDDEN}: json: cannot unmarshal it into an object`];
  const { auths } = isMapping(parsed) ? parsed : {};
  if (isMapping(auths) && Object.keys(auths).length > 0) return explainAuths(auths);
  const why = isMapping(auths ?? {}) ? 'auths required' : 'json: auths must be an object';
  return [`${HIDDEN}: ${why}`];
}

function explainAuths(auths: Mapping): readonly string[] {
  return Object.entries(auths).flatMap(([host, entry]) => {
    const isUsable =
      isMapping(entry) && (isPresent(entry['auth']) || isPresent(entry['credsStore']));
    return isUsable ? [] : [`${HIDDEN}: "${host}" requires either auth or credsStore`];
  });
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Parses `[options] type base64 [comment]` and returns the algorithm that the key itself names. */
function parseEntry(line: string): string | undefined {
  if (line.startsWith('#')) return undefined;
  return readKey(line) ?? readKey(skipWord(line));
}

const readKey = (entry: string): string | undefined => {
  const [, encoded = ''] = entry.split(/[ \t]+/);
  const canonical = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded);
  return canonical ? readAlgorithm(Buffer.from(encoded, 'base64')) : undefined;
};

/** Options end at the first blank outside of quotes. */
function skipWord(line: string): string {
  let quoted = false;
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '"' && line[at - 1] !== '\\') quoted = !quoted;
    if (!quoted && /[ \t]/.test(line.charAt(at))) return line.slice(at).trimStart();
  }
  return '';
}

/**
 * Number of strings after the algorithm's name in a public key (RFC 4253 6.6, RFC 5656, RFC 8709).
 */
const FIELDS: Readonly<Record<string, number>> = {
  'ssh-rsa': 2,
  'ssh-dss': 4,
  'ecdsa-sha2-nistp256': 2,
  'ecdsa-sha2-nistp384': 2,
  'ecdsa-sha2-nistp521': 2,
  'ssh-ed25519': 1,
  'sk-ecdsa-sha2-nistp256@openssh.com': 3,
  'sk-ssh-ed25519@openssh.com': 2,
};

/**
 * RFC 4253 6.6: strings with their length before them, the algorithm first, and nothing after the
 * last.
 */
function readAlgorithm(blob: Buffer): string | undefined {
  const strings: Buffer[] = [];
  let at = 0;
  while (at + 4 <= blob.length) {
    const end = at + 4 + blob.readUInt32BE(at);
    if (end > blob.length) return undefined;
    strings.push(blob.subarray(at + 4, end));
    at = end;
  }
  const name = strings[0]?.toString('latin1') ?? '';
  if (at !== blob.length) return undefined;
  if (name.endsWith('-cert-v01@openssh.com')) return strings.length > 5 ? name : undefined;
  return Object.hasOwn(FIELDS, name) && strings.length - 1 === FIELDS[name] ? name : undefined;
}

const BLOCK =
  /^-----BEGIN ([^\n-][^\n]*?)-----[ \t\r]*\n([^-]*(?:-(?!----)[^-]*)*)^-----END \1-----[ \t\r]*(?:\n|$)/m;

function parseBundle(text: string): TrustBundle {
  const certificates: TrustBundle['certificates'][number][] = [];
  for (let rest = text; rest !== '';) {
    const block = BLOCK.exec(rest);
    if (!block) return { certificates, problem: 'invalid block' };
    const certificate = parseCertificate(block[2] ?? '');
    if (!certificate) {
      const problem = `x509: malformed certificate (block ${certificates.length + 1})`;
      return { certificates, problem };
    }
    certificates.push(certificate);
    rest = rest.slice(block.index + block[0].length);
  }
  return { certificates };
}

function parseCertificate(base64: string): TrustBundle['certificates'][number] | undefined {
  try {
    const { subject, validFrom, validTo } = new X509Certificate(Buffer.from(base64, 'base64'));
    return {
      subject: subject.replaceAll('\n', ', '),
      notBefore: Date.parse(validFrom),
      notAfter: Date.parse(validTo),
    };
  } catch (error) {
    // OpenSSL's errors do not have their own class.
    if (error instanceof Error) return undefined;
    throw error;
  }
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

/** True for an absolute URI or an absolute path, without blanks (Go's ParseRequestURI). */
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
