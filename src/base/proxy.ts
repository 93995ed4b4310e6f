import type { SecureContext } from 'node:tls';
import { EnvHttpProxyAgent, Pool, type Dispatcher } from 'undici';
import { ConfigError } from './errors.ts';
import { ProxyFailure } from './network-failure.ts';

/** As undici wants them: an empty text says "none"; undefined would let it look into the environment. */
export type Proxies = {
  readonly httpProxy: string;
  readonly httpsProxy: string;
  readonly noProxy: string;
};

/**
 * HTTPS_PROXY, HTTP_PROXY and NO_PROXY, lower case first, as curl has them; a proxy without a scheme
 * is an http one. undefined where there is no proxy.
 *
 * @throws ConfigError `proxy.malformed`
 */
export function readProxies(env: NodeJS.ProcessEnv): Proxies | undefined {
  const httpProxy = readProxy(env, 'HTTP_PROXY');
  const httpsProxy = readProxy(env, 'HTTPS_PROXY');
  if (httpProxy === '' && httpsProxy === '') return undefined;
  return { httpProxy, httpsProxy, noProxy: readEither(env, 'NO_PROXY') };
}

const SCHEMES = ['http:', 'https:', 'socks5:', 'socks:'];

/** The value may hold a password: no error repeats it. */
function readProxy(env: NodeJS.ProcessEnv, name: string): string {
  const text = readEither(env, name);
  if (text === '') return '';
  const url = text.includes('://') ? text : `http://${text}`;
  if (URL.canParse(url) && SCHEMES.includes(new URL(url).protocol)) return url;
  throw new ConfigError('proxy.malformed', `${name} is not the address of a proxy`, {
    expected: 'http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT',
    hint: `correct or unset ${name}`,
  });
}

const readEither = (env: NodeJS.ProcessEnv, name: string): string =>
  env[name.toLowerCase()] ?? env[name] ?? '';

type AgentOptions = {
  readonly connect: { readonly timeout: number; readonly secureContext?: SecureContext };
  readonly connections: number;
};

export function createProxyAgent(proxies: Proxies, options: AgentOptions): Dispatcher {
  const { connect } = options;
  return new EnvHttpProxyAgent({
    ...options,
    ...proxies,
    requestTls: connect,
    proxyTls: { timeout: connect.timeout },
    clientFactory: (proxy, given) => guardTunnels(proxy, new Pool(proxy.origin, given), connect),
  });
}

type Connect = (options: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData>;

/**
 * undici makes a connection again that ended with UND_ERR_SOCKET, and again: thousands of times a
 * second where a proxy closes every CONNECT. An error that it does not know ends the requests that
 * wait for the tunnel. It also forgets what the proxy answered.
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
