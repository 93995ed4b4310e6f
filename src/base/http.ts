import type { Readable } from 'node:stream';
import { Agent, EnvHttpProxyAgent, request, type Dispatcher } from 'undici';

/** TLS of one origin. PEM texts. Absent members mean the system's roots and verification on. */
export type TlsOptions = {
  readonly ca?: readonly string[];
  readonly cert?: string;
  readonly key?: string;
  /** Switches verification off: explicit, per registry, and shown in the report. */
  readonly insecure?: boolean;
};

export type HttpRequest = {
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  readonly tls?: TlsOptions;
  /** Milliseconds until the headers are there; default 30 s. */
  readonly headersTimeout?: number;
  /** Milliseconds between two pieces of the body; default 60 s. */
  readonly bodyTimeout?: number;
};

/** Header names are lower case; a repeated header keeps all its values. */
export type HttpResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readable;
};

/** The one door to HTTP. Redirects are never followed here: who follows decides what it sends along. */
export type Http = {
  request: (request: HttpRequest) => Promise<HttpResponse>;
  close: () => Promise<void>;
};

/**
 * Keep-alive connections, one pool an origin and TLS setting. HTTPS_PROXY, HTTP_PROXY and NO_PROXY
 * (either case) are honoured as given in `env`. `connections` bounds the sockets of one origin.
 */
export function createHttp(
  options: { readonly env?: NodeJS.ProcessEnv; readonly connections?: number } = {},
): Http {
  const env = options.env ?? process.env;
  const dispatchers = new Map<string, Dispatcher>();
  const dispatcherFor = (tls: TlsOptions): Dispatcher => {
    const key = JSON.stringify([tls.ca, tls.cert, tls.key, tls.insecure]);
    const known = dispatchers.get(key);
    if (known) return known;
    const created = createDispatcher(tls, env, options.connections ?? 64);
    dispatchers.set(key, created);
    return created;
  };
  return {
    async request(wanted) {
      const response = await request(wanted.url, {
        method: wanted.method ?? 'GET',
        headers: wanted.headers ?? {},
        body: wanted.body ?? null,
        signal: wanted.signal ?? null,
        dispatcher: dispatcherFor(wanted.tls ?? {}),
        headersTimeout: wanted.headersTimeout ?? 30_000,
        bodyTimeout: wanted.bodyTimeout ?? 60_000,
      });
      return { status: response.statusCode, headers: response.headers, body: response.body };
    },
    async close() {
      await Promise.all([...dispatchers.values()].map((dispatcher) => dispatcher.close()));
    },
  };
}

function createDispatcher(
  tls: TlsOptions,
  env: NodeJS.ProcessEnv,
  connections: number,
): Dispatcher {
  const connect = {
    timeout: 20_000,
    ...(tls.ca && { ca: [...tls.ca] }),
    ...(tls.cert !== undefined && { cert: tls.cert }),
    ...(tls.key !== undefined && { key: tls.key }),
    ...(tls.insecure && { rejectUnauthorized: false }),
  };
  const httpProxy = env['http_proxy'] ?? env['HTTP_PROXY'];
  const httpsProxy = env['https_proxy'] ?? env['HTTPS_PROXY'];
  if (!httpProxy && !httpsProxy) return new Agent({ connect, connections });
  return new EnvHttpProxyAgent({
    connect,
    requestTls: connect,
    connections,
    noProxy: env['no_proxy'] ?? env['NO_PROXY'] ?? '',
    ...(httpProxy && { httpProxy }),
    ...(httpsProxy && { httpsProxy }),
  });
}
