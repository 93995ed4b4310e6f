import { X509Certificate } from 'node:crypto';
import { Socket } from 'node:net';
import { TLSSocket, type DetailedPeerCertificate } from 'node:tls';
import { Agent, Pool, Socks5ProxyAgent, buildConnector, type Dispatcher } from 'undici';
import { decodeLogin } from './address.ts';
import { formatBasic } from './basic.ts';
import { createForwarder, describeTarget, type ProxyPlace } from './forward.ts';
import { networkCodeOf, ProxyFailure } from './network-failure.ts';
import { diagnoseTls, TlsFailure } from './tls-failure.ts';
import { connectOptions, type ConnectOptions } from './tls.ts';

/* Owns tunnels through proxies, and connectors whose failures say why. */

type AgentOptions = {
  /** Connections to servers, through the tunnel. */
  readonly connect: { readonly timeout: number } & Partial<ConnectOptions>;
  readonly connections: number;
  readonly env: NodeJS.ProcessEnv;
};

/** Opens a connection to a server through a proxy. */
type Tunnels = (target: buildConnector.Options) => Promise<Socket>;

/**
 * Creates the dispatcher of requests through a proxy, which looks the names of servers up. An HTTP
 * proxy is asked to forward plain HTTP, and to open tunnels for https, as curl does: Squid as it is
 * delivered allows CONNECT to port 443 alone.
 */
export function createProxyAgent(uri: string, options: AgentOptions): Dispatcher {
  const { connect, connections, env } = options;
  const proxy = new URL(uri);
  const { timeout } = connect;
  const ofProxy = proxy.protocol === 'https:' ? connectOptions({}, env) : {};
  const toProxy = createConnector({ timeout, ...ofProxy });
  const isSocks = proxy.protocol.startsWith('socks');
  const pool = isSocks ? undefined : new Pool(proxy.origin, { connect: toProxy });
  const login = isSocks ? undefined : formatLogin(proxy);
  const about = { proxy, name: nameOf(proxy), login };
  const tunnel = pool ? createTunnels(about, pool, timeout) : createSocksTunnels(proxy, toProxy);
  const secure = createConnector(connect, about.name);
  const agent = new Agent({
    factory: (origin) =>
      pool && new URL(origin).protocol === 'http:'
        ? createForwarder(origin, { ...about, connections, connect: toProxy })
        : new Pool(origin, { connections, connect: connectThrough(tunnel, secure) }),
  });
  return closeTogether(agent, pool);
}

type Destroy = (...given: readonly unknown[]) => Promise<void>;

/** The agent, which destroys the connections to the proxy with its own. */
function closeTogether(agent: Agent, pool: Pool | undefined): Agent {
  const destroy = agent.destroy.bind<Destroy>(agent);
  const destroyBoth: Destroy = (...given) => {
    void pool?.destroy();
    return destroy(...given); // which calls itself with other arguments
  };
  return Object.assign(agent, { destroy: destroyBoth });
}

const nameOf = (proxy: URL): string => `${proxy.protocol}//${proxy.host}`;

const connectThrough =
  (tunnel: Tunnels, secure: buildConnector.connector): buildConnector.connector =>
  (target, callback) => {
    tunnel(target).then(
      (socket) => {
        if (target.protocol === 'https:') secure({ ...target, httpSocket: socket }, callback);
        else callback(null, socket);
      },
      (error: unknown) => {
        callback(error as Error, null);
      },
    );
  };

const formatLogin = (proxy: URL): string | undefined => {
  const user = decodeLogin(proxy);
  return user && formatBasic(user);
};

/**
 * Opens tunnels by CONNECT (RFC 9110 9.3.6). A failure has no code: undici repeats a request whose connection
 * ended with UND_ERR_SOCKET again and again, thousands of times a second if a proxy closes every CONNECT.
 */
function createTunnels({ proxy, name, login }: ProxyPlace, pool: Pool, timeout: number): Tunnels {
  return async (target) => {
    const path = describeTarget(target);
    const about = { proxy: name, target: path };
    const signal = AbortSignal.timeout(timeout);
    const headers = {
      'host': target.host ?? path,
      'proxy-connection': 'keep-alive',
      ...(login !== undefined && { 'proxy-authorization': login }),
    };
    const request = { path, headers, signal, servername: proxy.hostname };
    const answer = await pool.connect(request).catch((cause: unknown) => {
      throw new ProxyFailure(about, isTimeout(cause) ? timedOut(cause) : cause);
    });
    const { statusCode: status, socket } = answer;
    if (status >= 200 && status < 300 && socket instanceof Socket) return socket;
    socket.on('error', () => undefined).destroy();
    const sent = { variable: 'HTTPS_PROXY', isSent: login !== undefined };
    throw new ProxyFailure({ ...about, status, login: sent });
  };
}

/** A member of undici's agent that its types leave out. */
type SocksAgent = {
  readonly createSocks5Connection: (host: string, port: number) => Promise<Socket>;
};

/** Opens tunnels of RFC 1928. */
function createSocksTunnels(proxy: URL, connect: buildConnector.connector): Tunnels {
  const agent = new Socks5ProxyAgent(proxy, {
    connect,
    ...readSocksLogin(proxy),
  }) as unknown as SocksAgent;
  return async (target) => {
    const path = describeTarget(target);
    const [, host = '', port] = /^\[?(.*?)\]?:(\d+)$/.exec(path) ?? [];
    try {
      return await agent.createSocks5Connection(host, Number(port));
    } catch (cause) {
      const known = networkCodeOf(cause) === undefined ? timedOut(cause) : cause;
      throw new ProxyFailure({ proxy: nameOf(proxy), target: path }, known);
    }
  };
}

/** The bytes of the login, which undici would take from the address as UTF-8. Its types want texts. */
function readSocksLogin(proxy: URL): Pick<Socks5ProxyAgent.Options, 'username' | 'password'> {
  const user = decodeLogin(proxy);
  if (!user) return {};
  const toBytes = (text: string) => Buffer.from(text, user.encoding ?? 'utf8') as unknown as string;
  return { username: toBytes(user.username), password: toBytes(user.password) };
}

const isTimeout = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'TimeoutError';

const timedOut = (cause: unknown): Error =>
  Object.assign(new Error('no answer', { cause }), { code: 'ETIMEDOUT' });

/** A connector as it is: its declared type has no result. */
type ConnectedBy = (...given: Parameters<buildConnector.connector>) => unknown;

/** A connector of undici whose failures of TLS have the certificate that the server showed. */
export function createConnector(
  options: buildConnector.BuildOptions,
  proxy?: string,
): buildConnector.connector {
  const connect: ConnectedBy = buildConnector(options);
  return (target, callback) => {
    let chain: readonly X509Certificate[] = [];
    const socket = connect(target, (...[error, connected]) => {
      if (error === null) callback(null, connected);
      else callback(describeFailure(error, { chain, proxy }), null);
    });
    if (!(socket instanceof TLSSocket)) return;
    // Node destroys a refused socket in its own listener, and its certificate with it.
    socket.prependListener('secure', () => {
      chain = listChain(socket);
    });
  };
}

/**
 * The certificates of the server and of its issuers, as far as they are known. `getPeerX509Certificate`
 * would take the server's out of the chain, and Node would not find it when it compares names.
 */
function listChain(socket: TLSSocket): readonly X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next: Partial<DetailedPeerCertificate> | undefined = socket.getPeerCertificate(true);
  while (next?.raw && chain.length < LONGEST_CHAIN) {
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
  }
  return chain;
}

const LONGEST_CHAIN = 16;

function describeFailure(error: Error, about: Pick<TlsFailure, 'chain' | 'proxy'>): Error {
  const code = networkCodeOf(error) ?? '';
  return diagnoseTls({ host: '', code, failure: about }) ? new TlsFailure(error, about) : error;
}
