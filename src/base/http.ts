import { existsSync, readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { Agent, EnvHttpProxyAgent, request, type Dispatcher } from 'undici';

/** TLS of one origin. PEM texts. Absent members mean the system's roots and verification on. */
export type TlsOptions = {
  /** Trusted besides the system's roots, not instead of them. */
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
  /** Told the size of every piece of the body as it arrives. */
  readonly onBytes?: (count: number) => void;
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
  /** Breaks off what is still running. */
  close: () => Promise<void>;
};

export type HttpOptions = { readonly env?: NodeJS.ProcessEnv; readonly connections?: number };

/** Bytes of a body that wait for their reader; four times Node's default halves the stops of a socket. */
const BODY_BUFFER = 256 * 1024;

/** Where Linux distributions keep all trusted roots in one PEM file; the first that exists is read. */
const SYSTEM_ROOTS = [
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/ssl/ca-bundle.pem',
];

/**
 * Keep-alive connections, one pool an origin and TLS setting. HTTPS_PROXY, HTTP_PROXY and NO_PROXY
 * (either case) are honoured as given in `env`. `connections` bounds the sockets of one origin.
 *
 * Trusted are Node's roots, those of the system (or of SSL_CERT_FILE and NODE_EXTRA_CA_CERTS), and
 * the `ca` of a request.
 */
export function createHttp(options: HttpOptions = {}): Http {
  const dispatchers = new Map<string, Dispatcher>();
  const dispatcherFor = ({ url, tls = {} }: HttpRequest): Dispatcher => {
    const secure = url.protocol === 'https:';
    const key = secure ? JSON.stringify([tls.ca, tls.cert, tls.key, tls.insecure]) : 'http:';
    const known = dispatchers.get(key);
    if (known) return known;
    const created = createDispatcher(options, secure ? tls : undefined);
    dispatchers.set(key, created);
    return created;
  };
  return {
    request: (wanted) => send(dispatcherFor(wanted), wanted),
    async close() {
      await Promise.all([...dispatchers.values()].map((dispatcher) => dispatcher.destroy()));
    },
  };
}

async function send(dispatcher: Dispatcher, wanted: HttpRequest): Promise<HttpResponse> {
  const { onBytes } = wanted;
  const response = await request(wanted.url, {
    method: wanted.method ?? 'GET',
    headers: wanted.headers ?? {},
    body: wanted.body ?? null,
    // Else undici closes the connection behind every HEAD, for servers that send a body all the same.
    // What such a server sends breaks the next request, and that is asked again.
    ...(wanted.method === 'HEAD' && { reset: false }),
    signal: wanted.signal ?? null,
    dispatcher: onBytes ? dispatcher.compose(countBytes(onBytes)) : dispatcher,
    highWaterMark: BODY_BUFFER,
    ...timeoutsOf(wanted),
  });
  // Whoever reads the body gets its error; without a listener, one that nobody reads would end the
  // process when it breaks.
  response.body.on('error', () => undefined);
  return { status: response.statusCode, headers: response.headers, body: response.body };
}

const timeoutsOf = ({ headersTimeout = 30_000, bodyTimeout = 60_000 }: HttpRequest) => ({
  headersTimeout,
  bodyTimeout,
});

/** Counting where the pieces come in costs a call each; a stream in between would cost a tick each. */
function countBytes(onBytes: (count: number) => void): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) =>
    dispatch(options, {
      onRequestStart: (...args) => handler.onRequestStart?.(...args),
      onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
      onResponseStart: (...args) => handler.onResponseStart?.(...args),
      onResponseData(controller, chunk) {
        onBytes(chunk.length);
        handler.onResponseData?.(controller, chunk);
      },
      onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
      onResponseError: (...args) => handler.onResponseError?.(...args),
    });
}

/** `tls` is absent for plain HTTP. */
function createDispatcher(options: HttpOptions, tls: TlsOptions | undefined): Dispatcher {
  const { env = process.env, connections = 64 } = options;
  const connect = { timeout: 20_000, ...(tls && connectOptions(tls, env)) };
  const proxies = {
    // An empty text says "none"; undefined would let undici look into the environment itself.
    httpProxy: readEither(env, 'HTTP_PROXY'),
    httpsProxy: readEither(env, 'HTTPS_PROXY'),
    noProxy: readEither(env, 'NO_PROXY'),
  };
  if (proxies.httpProxy === '' && proxies.httpsProxy === '') {
    return new Agent({ connect, connections });
  }
  return new EnvHttpProxyAgent({ connect, requestTls: connect, connections, ...proxies });
}

/** curl's order: lower case first. Absent is ''. */
const readEither = (env: NodeJS.ProcessEnv, name: string): string =>
  env[name.toLowerCase()] ?? env[name] ?? '';

type ConnectOptions = {
  readonly secureContext: SecureContext;
  readonly rejectUnauthorized?: boolean;
};

/** One context for all connections: reading some 300 roots takes 40 ms. */
function connectOptions(tls: TlsOptions, env: NodeJS.ProcessEnv): ConnectOptions {
  const secureContext = createSecureContext({
    ca: [...rootCertificates, ...readSystemRoots(env), ...(tls.ca ?? [])],
    ...(tls.cert !== undefined && { cert: tls.cert }),
    ...(tls.key !== undefined && { key: tls.key }),
    minVersion: 'TLSv1.2',
  });
  return { secureContext, ...(tls.insecure === true && { rejectUnauthorized: false }) };
}

function readSystemRoots(env: NodeJS.ProcessEnv): string[] {
  const system = env['SSL_CERT_FILE'] ?? SYSTEM_ROOTS.find((path) => existsSync(path));
  return [system, env['NODE_EXTRA_CA_CERTS']]
    .filter((path): path is string => path !== undefined && path !== '')
    .map((path) => readFileSync(path, 'latin1'));
}
