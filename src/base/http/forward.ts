import { Pool, type buildConnector, type Dispatcher } from 'undici';
import { ProxyFailure } from './network-failure.ts';

/* Owns requests that a proxy forwards: those for plain HTTP. */

export type ProxyPlace = {
  readonly proxy: URL;
  /** `http://proxy.example:3128`, without credentials. */
  readonly name: string;
  /** The value of `Proxy-Authorization`. */
  readonly login: string | undefined;
};

type ForwarderOptions = ProxyPlace & {
  /** Opens connections to the proxy. */
  readonly connect: buildConnector.connector;
  readonly connections: number;
};

/** `quay.io:443` */
export const describeTarget = ({
  hostname,
  port,
  protocol,
}: Pick<buildConnector.Options, 'hostname' | 'port' | 'protocol'>): string =>
  `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;

/**
 * Creates the dispatcher of an origin whose requests a proxy forwards: their target is the whole
 * address (RFC 9112 3.2.2). An answer of the proxy itself, and a failure to connect to it, is a
 * ProxyFailure; a connection to the proxy serves one origin.
 */
export function createForwarder(
  origin: string | URL,
  { proxy, name, login, connect, connections }: ForwarderOptions,
): Dispatcher {
  const { origin: base, host, ...place } = readOrigin(origin);
  const target = describeTarget(place);
  const connectToProxy: buildConnector.connector = (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error === null) callback(null, socket);
      else callback(new ProxyFailure({ proxy: name, target }, error), null);
    });
  };
  const sent = { variable: 'HTTP_PROXY', isSent: login !== undefined };
  const forward: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
    dispatch(
      {
        ...options,
        origin: proxy.origin,
        path: `${base}${options.path}`,
        servername: proxy.hostname,
        headers: {
          ...(options.headers as Readonly<Record<string, string>>),
          host,
          ...(login !== undefined && { 'proxy-authorization': login }),
        },
      } as Dispatcher.DispatchOptions,
      {
        onRequestStart: (...args) => handler.onRequestStart?.(...args),
        onResponseStart(...args) {
          const [controller, status, headers] = args;
          if (isOfProxy(status, headers)) {
            const about = { proxy: name, method: options.method, target, status, login: sent };
            controller.abort(new ProxyFailure(about));
          } else handler.onResponseStart?.(...args);
        },
        onResponseData: (...args) => handler.onResponseData?.(...args),
        onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
        onResponseError: (...args) => handler.onResponseError?.(...args),
      },
    );
  return new Pool(proxy.origin, { connections, connect: connectToProxy }).compose(forward);
}

const readOrigin = (origin: string | URL) => {
  const { origin: base, host, hostname, port, protocol } = new URL(origin);
  return { origin: base, host, hostname, port, protocol };
};

/**
 * True for an answer that the proxy did not get from the server. Squid marks its own errors, tinyproxy
 * names itself in them, and RFC 9209 has a header for them.
 */
const isOfProxy = (
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): boolean =>
  status === 407 ||
  (status >= 400 &&
    (headers['x-squid-error'] !== undefined ||
      /^tinyproxy\b/.test(String(headers['server'])) ||
      /;\s*error=/.test(String(headers['proxy-status']))));
