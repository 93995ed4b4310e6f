import { existsSync } from 'node:fs';
import { type SecureContext, createSecureContext, rootCertificates } from 'node:tls';
import { Pool, ProxyAgent, type Dispatcher } from 'undici';
import { readInputFile, readListed } from '../disk/files.ts';
import { variableOf } from '../environment.ts';
import { ConfigError } from '../errors.ts';
import { withoutUndefined } from '../lists.ts';
import { parseNoProxy, readUserInfo } from './address.ts';
import { ProxyFailure } from './network-failure.ts';

/* Owns proxies and TLS settings: the proxy of a URL, its tunnels, and the trusted roots. */

/**
 * The address of the proxy that a URL is requested through; undefined if it is requested directly.
 */
export type ProxyOf = (url: URL) => string | undefined;

/**
 * HTTPS_PROXY for https, HTTP_PROXY for http, and NO_PROXY; lower case first, as in curl. A proxy
 * without a scheme is an http one. This machine is never asked through a proxy.
 *
 * @throws ConfigError `proxy.malformed`
 */
export function readProxies(env: NodeJS.ProcessEnv): ProxyOf {
  const [http, https] = [readProxy(env, 'HTTP_PROXY'), readProxy(env, 'HTTPS_PROXY')];
  const isProxied = parseNoProxy(readEither(env, 'NO_PROXY'));
  return (url) => {
    const proxy = url.protocol === 'https:' ? https : http;
    return proxy !== '' && isProxied(url) ? proxy : undefined;
  };
}

const SCHEMES = ['http:', 'https:', 'socks5:', 'socks:'];

/** Reads a proxy's address. The value may hold a password: no error repeats it. */
function readProxy(env: NodeJS.ProcessEnv, name: string): string {
  const text = readEither(env, name);
  if (text === '') return '';
  const address = text.includes('://') ? text : `http://${text}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const user = url && readUserInfo(url); // masked from now on
  if (url && SCHEMES.includes(url.protocol)) return user ? withUserInfo(url, user) : address;
  throw new ConfigError('proxy.malformed', `${name} is not the address of a proxy`, {
    expected: 'an address such as http://proxy.example.com:3128; https and socks5 as well',
    hint: `correct or unset ${name}; write # in a password as %23`,
  });
}

/** The address with its user and password in percent-encoding: a bare % in them would not be one. */
function withUserInfo(
  url: URL,
  { username, password }: { readonly username: string; readonly password: string },
): string {
  const encoded = new URL(url);
  encoded.username = encodeURIComponent(username);
  encoded.password = encodeURIComponent(password);
  return encoded.href;
}

const readEither = (env: NodeJS.ProcessEnv, name: string): string =>
  variableOf(env, name.toLowerCase(), name) ?? '';

type AgentOptions = {
  readonly connect: { readonly timeout: number; readonly secureContext?: SecureContext };
  readonly connections: number;
};

export function createProxyAgent(uri: string, options: AgentOptions): Dispatcher {
  const { connect } = options;
  return new ProxyAgent({
    ...options,
    uri,
    requestTls: connect,
    proxyTls: { timeout: connect.timeout, rejectUnauthorized: true },
    clientFactory: (proxy, given) => guardTunnels(proxy, new Pool(proxy.origin, given), connect),
  });
}

type Connect = (options: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData>;

/**
 * Protects the tunnels of a proxy. undici remakes a connection that ended with UND_ERR_SOCKET,
 * again and again: thousands of times a second if a proxy closes every CONNECT. An error that it
 * does not know ends the requests that wait for the tunnel. It also forgets the proxy's answer.
 */
function guardTunnels(proxy: URL, pool: Pool, { timeout }: { readonly timeout: number }): Pool {
  const connect = pool.connect.bind<Connect>(pool);
  const open: Connect = async (options) => {
    const about = { proxy: `${proxy.protocol}//${proxy.host}`, target: options.path };
    const answer = await connect({ ...options, signal: AbortSignal.timeout(timeout) }).catch(
      (cause: unknown) => {
        throw new ProxyFailure(about, isTimeout(cause) ? timedOut(cause) : cause);
      },
    );
    const { statusCode: status } = answer;
    if (status >= 200 && status < 300) return { ...answer, statusCode: 200 };
    answer.socket.on('error', () => undefined).destroy();
    throw new ProxyFailure({ ...about, status });
  };
  return Object.assign(pool, { connect: open });
}

const isTimeout = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'TimeoutError';

const timedOut = (cause: unknown): Error =>
  Object.assign(new Error('no answer', { cause }), { code: 'ETIMEDOUT' });

/** TLS of one origin. PEM texts. Absent members mean the system's roots and verification on. */
export type TlsOptions = {
  /** PEM texts of roots that are trusted besides the system's roots, not instead of them. */
  readonly ca?: readonly string[];
  readonly cert?: string;
  readonly key?: string;
  /** Switches verification off: explicit, per registry, and shown in the report. */
  readonly insecure?: boolean;
};

export type ConnectOptions = {
  readonly secureContext: SecureContext;
  /** Always given: Node would else ask NODE_TLS_REJECT_UNAUTHORIZED. */
  readonly rejectUnauthorized: boolean;
};

/** One context for all connections: reading some 300 roots takes 40 ms. */
export function connectOptions(tls: TlsOptions, env: NodeJS.ProcessEnv): ConnectOptions {
  const secureContext = createSecureContext({
    ca: [...rootCertificates, ...readSystemRoots(env), ...(tls.ca ?? [])],
    ...withoutUndefined({ cert: tls.cert, key: tls.key }),
    minVersion: 'TLSv1.2',
  });
  return { secureContext, rejectUnauthorized: tls.insecure !== true };
}

/** @throws ConfigError `ca-bundle.unreadable`, `ca-bundle.too-large` */
function readSystemRoots(env: NodeJS.ProcessEnv): string[] {
  const system = variableOf(env, 'SSL_CERT_FILE') ?? SYSTEM_ROOTS.find((path) => existsSync(path));
  return [system, variableOf(env, 'NODE_EXTRA_CA_CERTS')]
    .filter((path) => path !== undefined)
    .map((path) => {
      const rules = { domain: 'ca-bundle' };
      return readListed(path, rules, () => readInputFile(path, rules).toString('latin1'));
    });
}

/**
 * Paths at which Linux distributions keep all trusted roots in one PEM file; the first that exists
 * is read.
 */
const SYSTEM_ROOTS = [
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/ssl/ca-bundle.pem',
];
