import type { Http, HttpRequest, HttpResponse } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/proxy.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { RegistryError } from '../../base/errors.ts';
import type { CertsReader } from './certs.ts';
import { readText } from '../../base/http/body.ts';

/** One registry as a user names it. */
export type Endpoint = {
  /** Host with port: `quay.io`, `localhost:5000`. */
  readonly host: string;
  /** Certificates are not checked and plain HTTP is allowed. */
  readonly insecure: boolean;
};

export type TransportRequest = Omit<HttpRequest, 'tls'> & {
  /**
   * On whose behalf: its certificates and whether it may be insecure. It may name its own host, so that
   * `namedBy` is about all others.
   */
  readonly endpoint: Endpoint;
};

/** `url` is what answered in the end. */
export type TransportResponse = HttpResponse & { readonly url: URL };

/** Sends with the TLS options of the host, and follows redirects of GET and HEAD. */
export type Transport = (request: TransportRequest) => Promise<TransportResponse>;

const MAX_REDIRECTS = 10;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const READING: readonly HttpRequest['method'][] = [undefined, 'GET', 'HEAD'];

/** Registries redirect to storage that is signed for itself, and that refuses a second Authorization. */
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
      await readText(response.body);
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
  /** Whether the registry itself is asked. */
  readonly own: boolean;
  readonly certsOf: CertsReader;
};

async function tlsFor(url: URL, { endpoint, own, certsOf }: Asked): Promise<TlsOptions> {
  const tls = await certsOf(own ? endpoint.host : url.host);
  return endpoint.insecure && own ? { ...tls, insecure: true } : tls;
}

/** Without the port. docker.io answers at another name than it goes by. */
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
 * From https only to https: what came over TLS is not finished in the clear.
 *
 * @throws RegistryError `registry.redirect`
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
