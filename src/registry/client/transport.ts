import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readInputFile, readListed } from '../../base/disk/files.ts';
import { ConfigError, isErrno, RegistryError } from '../../base/errors.ts';
import { kindOfHost } from '../../base/http/address.ts';
import { readBodyText } from '../../base/http/body.ts';
import type { Http, HttpRequest, HttpResponse } from '../../base/http/http.ts';
import {
  isCertificateFailure,
  isPassingStatus,
  networkCodeOf,
} from '../../base/http/network-failure.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { untilAborted } from '../../base/wait.ts';
import { explainAnswer, parseChallenges, type Challenge } from './answer.ts';

/** One registry as a user names it. */
export type Endpoint = {
  /** Host with port: `quay.io`, `localhost:5000`. */
  readonly host: string;
  /** Certificates are not checked and plain HTTP is allowed. */
  readonly insecure: boolean;
};

export type TransportRequest = Omit<HttpRequest, 'tls'> & {
  /**
   * The registry that the request is for: it decides about certificates, and whether the connection may
   * be insecure. Its own host needs no permission, so `namedBy` is about all others.
   */
  readonly endpoint: Endpoint;
};

/** `url` is the address that answered, after redirects. */
export type TransportResponse = HttpResponse & { readonly url: URL };

/** Sends with the TLS options of the host, and follows redirects of GET and HEAD. */
export type Transport = (request: TransportRequest) => Promise<TransportResponse>;

const MAX_REDIRECTS = 10;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const READING: readonly HttpRequest['method'][] = [undefined, 'GET', 'HEAD'];

/** Another origin gets no Authorization: storage has signed URLs, and refuses a second credential. */
export function createTransport(http: Http, certsOf: CertsReader): Transport {
  return async (request) => {
    const { endpoint, namedBy, ...rest } = request;
    let { url, headers = {} } = request;
    for (let followed = 0; followed <= MAX_REDIRECTS; followed += 1) {
      const own = url.hostname === hostnameOf(endpoint.host);
      const tls = await tlsFor(url, { endpoint, own, certsOf });
      const named = !own && namedBy !== undefined && { namedBy };
      const response = await http.request({ ...rest, url, headers, tls, ...named });
      const target = redirectOf(response, request.method);
      if (target === undefined) return { ...response, url };
      await readBodyText(response.body);
      const next = resolveTarget(target, url, endpoint);
      if (next.origin !== url.origin) headers = withoutAuthorization(headers);
      url = next;
    }
    throw new RegistryError(
      'registry.redirects',
      `${endpoint.host} redirects more than ${MAX_REDIRECTS} times, last to ${redactUrl(url)}`,
    );
  };
}

type Asked = {
  readonly endpoint: Endpoint;
  /** True if the registry itself is asked. */
  readonly own: boolean;
  readonly certsOf: CertsReader;
};

async function tlsFor(url: URL, { endpoint, own, certsOf }: Asked): Promise<TlsOptions> {
  const tls = await certsOf(own ? endpoint.host : url.host);
  return endpoint.insecure && own ? { ...tls, insecure: true } : tls;
}

/** Host name without its port. docker.io never matches, as its API has another name. */
const hostnameOf = (host: string): string => new URL(`https://${host}`).hostname;

function redirectOf(
  { status, headers }: HttpResponse,
  method: HttpRequest['method'],
): string | undefined {
  const location = headers['location'];
  if (!READING.includes(method) || !REDIRECTS.has(status)) return undefined;
  return typeof location === 'string' ? location : undefined;
}

/**
 * Resolves a redirect, from https only to https: a transfer that began over TLS does not end in the clear.
 */
export function resolveTarget(location: string, from: URL, endpoint: Endpoint): URL {
  const refuse = (reason: string): RegistryError =>
    new RegistryError('registry.redirect', `${endpoint.host} redirects to ${reason}`);
  if (!URL.canParse(location, from.href)) throw refuse('an address that is not a valid URL');
  const target = new URL(location, from.href);
  const allowed = from.protocol === 'http:' ? ['http:', 'https:'] : ['https:'];
  if (allowed.includes(target.protocol)) return target;
  throw target.protocol === 'http:'
    ? refuse(`${target.protocol}//${target.host}, which is not encrypted`)
    : refuse(`an address of ${target.protocol}, which is neither https: nor http:`);
}

function withoutAuthorization(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'authorization'),
  );
}

/** Protocol of a registry, determined once by GET /v2/ (distribution-spec, end-1). */
type Connection = {
  /** `https://quay.io/` */
  readonly base: URL;
  /** Challenges to a request without Authorization; empty for an open registry. */
  readonly challenges: readonly Challenge[];
};

export type Connections = (endpoint: Endpoint, signal: AbortSignal) => Promise<Connection>;

/** Docker Hub's API has another address than the name its images go by. */
const API_HOSTS: Readonly<Record<string, string>> = { 'docker.io': 'registry-1.docker.io' };

/**
 * Asks each registry once, and again after a failure. Plain HTTP is only tried where a registry is
 * marked insecure or is on this machine, and only if the server does not speak TLS: a certificate that
 * is not trusted never leads to plain HTTP.
 */
export function createConnections(transport: Transport, now: () => number): Connections {
  const known = new Map<string, Promise<Connection>>();
  return (endpoint, signal) => {
    const key = JSON.stringify([endpoint.host, endpoint.insecure]);
    const held = known.get(key);
    if (held) return untilAborted(held, signal);
    const connecting = connect(endpoint, transport, now);
    known.set(key, connecting);
    connecting.catch(() => known.delete(key));
    return untilAborted(connecting, signal);
  };
}

async function connect(
  endpoint: Endpoint,
  transport: Transport,
  now: () => number,
): Promise<Connection> {
  const host = API_HOSTS[endpoint.host] ?? endpoint.host;
  const ping = async (scheme: 'https' | 'http'): Promise<Connection> => {
    const base = new URL(`${scheme}://${host}/`);
    const response = await transport({ endpoint, url: new URL('v2/', base) });
    const { status, headers } = response;
    const text = await readBodyText(response.body);
    if (isPassingStatus(status)) {
      throw explainAnswer(endpoint.host, { status, headers, text, about: 'GET /v2/' }, now());
    }
    return { base, challenges: challengesOf(response, base) };
  };
  try {
    return await ping('https');
  } catch (error) {
    const mayBePlain =
      endpoint.insecure || kindOfHost(new URL(`https://${host}`).hostname) === 'loopback';
    if (!mayBePlain || isCertificateFailure(error) || networkCodeOf(error) === undefined) {
      throw error;
    }
    return ping('http');
  }
}

/** Reads challenges; only the registry's own origin may ask for credentials, not one that it redirects to. */
export function challengesOf(
  { status, headers, url }: TransportResponse,
  base: URL,
): readonly Challenge[] {
  if (status !== 401 || url.origin !== base.origin) return [];
  return parseChallenges(headers['www-authenticate']);
}

/** containers-certs.d(5), in order; the first that has a directory for the host is read. */
export const SYSTEM_CERTS_DIRS = ['/etc/containers/certs.d', '/etc/docker/certs.d'] as const;

export type CertsOptions = {
  /** PEM, trusted for every host. */
  readonly caBundle?: string;
  readonly certsDirs: readonly string[];
  readonly explainRoots?: ExplainRoots;
};

export type ExplainRoots = (bytes: Uint8Array) => string | undefined;

/** The TLS options of a host (with its port, as references name it). */
export type CertsReader = (host: string) => Promise<TlsOptions>;

/**
 * Reads `<dir>/<host:port>/*.crt` (CAs), and `*.cert` with its `*.key` (client certificate), once for
 * each host.
 *
 * @throws ConfigError `certs.key-missing`, `certs.malformed`, `certs.unreadable`, `certs.too-large`
 */
export function createCertsReader(options: CertsOptions): CertsReader {
  const known = new Map<string, Promise<TlsOptions>>();
  return (host) => {
    const reading = known.get(host) ?? readCerts(host, options);
    known.set(host, reading);
    return reading;
  };
}

async function readCerts(host: string, options: CertsOptions): Promise<TlsOptions> {
  const { caBundle } = options;
  const bundle = caBundle === undefined ? [] : [caBundle];
  for (const directory of options.certsDirs) {
    const path = join(directory, host);
    const names = await listDirectory(path);
    if (names) return readHostDirectory(path, names.sort(), { ...options, bundle });
  }
  return bundle.length > 0 ? { ca: bundle } : {};
}

function readHostDirectory(
  path: string,
  names: readonly string[],
  {
    bundle,
    explainRoots,
  }: Pick<CertsOptions, 'explainRoots'> & { readonly bundle: readonly string[] },
): TlsOptions {
  const rules = { domain: 'certs' };
  const read = (name: string): string => {
    const file = join(path, name);
    return readListed(file, rules, () => readInputFile(file, rules).toString('latin1'));
  };
  const readRoots = (name: string): string => {
    const text = read(name);
    const why = explainRoots?.(Buffer.from(text, 'latin1'));
    if (why === undefined) return text;
    throw new ConfigError('certs.malformed', `${join(path, name)}: ${why}`, {
      hint: 'put certificates in PEM there',
    });
  };
  const own = names.filter((name) => name.endsWith('.crt')).map(readRoots);
  const ca = [...bundle, ...own];
  const cert = names.find((name) => name.endsWith('.cert'));
  if (cert === undefined) return ca.length > 0 ? { ca } : {};
  const key = cert.replace(/cert$/, 'key');
  if (!names.includes(key)) {
    throw new ConfigError(
      'certs.key-missing',
      `client certificate ${join(path, cert)} has no ${key}`,
      {
        hint: `put ${key} next to it`,
      },
    );
  }
  return { ...(ca.length > 0 && { ca }), cert: read(cert), key: read(key) };
}

/** A directory that this user may not read counts as absent, as for podman. */
async function listDirectory(path: string): Promise<string[] | undefined> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return undefined;
    throw error;
  }
}
