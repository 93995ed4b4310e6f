import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { RegistryError } from '../errors.ts';
import { withoutUndefined } from '../lists.ts';
import { createRetries, type Retries } from '../retry.ts';
import type { Redaction } from '../text/redact.ts';
import { formatDuration } from '../text/words.ts';
import { follow, startTimer, waitFor, type Timer } from '../wait.ts';
import {
  kindOfHost,
  widestKind,
  type AddressKind,
  checkName,
  guardLookup,
  lookupAll,
  passLookup,
  type Lookup,
} from './address.ts';
import { watchBody } from './body.ts';
import type * as dispatchers from './dispatchers.ts';
import { declineCodings, takeOffCoding } from './content-coding.ts';
import { explainNetworkFailure, isPassingStatus } from './network-failure.ts';
import { readProxies, type ProxyOf } from './proxy.ts';
import { connectOptions, type TlsOptions } from './tls.ts';

export type HttpRequest = {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** A body in pieces is sent as they come; the header `content-length` gives its size. */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal;
  readonly tls?: TlsOptions;
  /** Kind of the host that named this URL; absent: a person did. Some kinds may not name all others. */
  readonly namedBy?: AddressKind;
  /**
   * Milliseconds until the headers arrive, connecting included, counted from the last piece sent;
   * default 30 s.
   */
  readonly headersTimeout?: number;
  /** Milliseconds between two pieces of the body; default 60 s. */
  readonly bodyTimeout?: number;
  /** Called with the size of every piece of the body as it arrives. */
  readonly onBytes?: (count: number) => void;
};

/** Header names are lower case; a repeated header keeps all its values. */
export type HttpResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readable;
};

/**
 * The only access to HTTP. Redirects are never followed here: the caller that follows one decides
 * what it sends along. Bodies are as the server keeps them: no content coding.
 */
export type Http = {
  /**
   * @throws TransientError and RegistryError of `explainNetworkFailure` as long as the body has
   * not begun, from then on the body fails with the network's own error; RegistryError
   * `registry.address` if `namedBy` may not name this host; the signal's reason at once
   */
  request: (request: HttpRequest) => Promise<HttpResponse>;
  /** The kind of a host's address; a name that only a proxy can look up counts as public. */
  kindOf: (url: URL) => Promise<AddressKind>;
  /** The hosts that have answered in this run, and the rules for retrying others. */
  readonly retries: Retries;
  /** Masks the secrets of addresses, and those that users of these connections read. */
  readonly redaction: Redaction;
  close: () => Promise<void>;
};

export type HttpOptions = {
  readonly redaction: Redaction;
  readonly env?: NodeJS.ProcessEnv;
  readonly connections?: number;
  readonly retries?: Retries;
  /** Milliseconds between two pieces of any body, at most. */
  readonly bodyTimeout?: number;
  /** Default: the system's look-up. */
  readonly lookup?: Lookup;
};

/** Bytes of a body that wait for their reader; four times Node's default halves the stops of a socket. */
const BODY_BUFFER = 256 * 1024;

/**
 * Keep-alive connections, one pool for each origin and TLS setting. HTTPS_PROXY, HTTP_PROXY and NO_PROXY
 * (either case) are honoured as given in `env`. `connections` bounds the sockets of one origin.
 *
 * Trusted are Node's roots, the roots of the system (or of SSL_CERT_FILE and NODE_EXTRA_CA_CERTS),
 * and the `ca` of a request.
 */
export function createHttp(options: HttpOptions): Http {
  const dispatchers = new Map<string, Dispatcher>();
  const { redaction, retries = createRetries(), env = process.env, lookup = lookupAll } = options;
  let proxies: ProxyOf | undefined;
  const dispatcherFor = (
    { createDispatcher }: Dispatchers,
    { url, tls = {}, namedBy }: HttpRequest,
  ): Dispatcher => {
    const secure = url.protocol === 'https:';
    proxies ??= readProxies(env, redaction);
    const proxy = proxies(url);
    const settings = secure ? [tls.ca, tls.cert, tls.key, tls.insecure] : [];
    const key = JSON.stringify([secure, proxy, namedBy, ...settings]);
    const known = dispatchers.get(key);
    if (known) return known;
    const created = createDispatcher(options, {
      ...(secure && { tls: connectOptions(tls, env) }),
      ...withoutUndefined({ proxy }),
      ...(namedBy !== undefined && { lookup: guardLookup(lookup, namedBy) }),
      ...(namedBy === undefined && options.lookup && { lookup: passLookup(options.lookup) }),
    });
    dispatchers.set(key, created);
    return created;
  };
  const closing = new AbortController();
  return {
    retries,
    redaction,
    async request(wanted) {
      const { host } = wanted.url;
      const limit = Math.min(wanted.headersTimeout ?? HEADERS_TIMEOUT, retries.ask(host));
      try {
        checkName(wanted.url.hostname, wanted.namedBy);
        const { bodyTimeout: silence = BODY_TIMEOUT } = wanted;
        const bodyTimeout = Math.min(silence, options.bodyTimeout ?? silence);
        const context = { limit, bodyTimeout, closing: closing.signal };
        const loaded = await import('./dispatchers.ts');
        const by = { dispatcher: dispatcherFor(loaded, wanted), request: loaded.request };
        const sent = await send(by, wanted, context);
        const response = takeOffCoding(sent, wanted);
        retries.noteAnswer(host, !isPassingStatus(response.status));
        return response;
      } catch (error) {
        wanted.signal?.throwIfAborted();
        throw explainNetworkFailure(host, error);
      }
    },
    kindOf: ({ hostname }) => findKind(hostname, lookup),
    async close() {
      closing.abort(new Error('the connections are closed'));
      await Promise.all([...dispatchers.values()].map((dispatcher) => dispatcher.destroy()));
    },
  };
}

const findKind = (hostname: string, lookup: Lookup): Promise<AddressKind> =>
  new Promise((resolve) => {
    const known = kindOfHost(hostname);
    if (known !== undefined) resolve(known);
    else {
      lookup(hostname, (error, addresses) => {
        resolve(error ? 'public' : widestKind(addresses.map(({ address }) => address)));
      });
    }
  });

const HEADERS_TIMEOUT = 30_000;
const BODY_TIMEOUT = 60_000;

/** Loaded by the first request. */
type Dispatchers = typeof dispatchers;

type DispatchedBy = Pick<Dispatchers, 'request'> & { readonly dispatcher: Dispatcher };

type Sending = {
  /** Milliseconds. */
  readonly limit: number;
  readonly bodyTimeout: number;
  readonly closing: AbortSignal;
};

/**
 * Sends a request and releases its caller when the signal ends. undici notices a signal only when
 * it is connected: until then it continues to look up a name, shake hands, or wait for a proxy.
 */
async function send(
  by: DispatchedBy,
  wanted: HttpRequest,
  { limit, bodyTimeout, closing }: Sending,
): Promise<HttpResponse> {
  const controller = new AbortController();
  const { signal } = controller;
  const forget = follow([wanted.signal, closing], controller);
  const startLimit = (): Timer =>
    startTimer(limit, () => {
      controller.abort(
        Object.assign(new Error(`no answer in ${formatDuration(limit)}`), { code: 'ETIMEDOUT' }),
      );
    });
  let timer = startLimit();
  const body = watchBody(wanted.body, () => {
    timer.stop();
    timer = startLimit();
  });
  try {
    const response = await waitFor<Dispatcher.ResponseData>(signal, (resolve, reject) => {
      dispatch(by, { ...wanted, body, bodyTimeout }, controller).then((response) => {
        // The reader of the body gets its error; without a listener, an unread body would end the
        // process when it breaks.
        response.body.on('error', () => undefined);
        if (signal.aborted) response.body.destroy();
        resolve(response);
      }, reject);
    });
    response.body.once('close', forget);
    return { status: response.statusCode, headers: response.headers, body: response.body };
  } catch (error) {
    forget();
    throw error;
  } finally {
    timer.stop();
  }
}

function dispatch(
  { dispatcher, request }: DispatchedBy,
  wanted: Omit<HttpRequest, 'body'> & {
    readonly body: Dispatcher.DispatchOptions['body'];
    readonly bodyTimeout: number;
  },
  controller: AbortController,
): Promise<Dispatcher.ResponseData> {
  const { onBytes } = wanted;
  let hints = 0;
  return request(wanted.url, {
    method: wanted.method ?? 'GET',
    headers: declineCodings(wanted.headers),
    body: wanted.body ?? null,
    // Otherwise undici closes the connection after every HEAD, because some servers send a body.
    // Such a body breaks the next request, which is then made again.
    ...(wanted.method === 'HEAD' && { reset: false }),
    signal: controller.signal,
    onInfo: () => {
      hints += 1;
      if (hints > MAX_HINTS) controller.abort(endlessHints(wanted.url.host));
    },
    dispatcher: onBytes ? dispatcher.compose(countBytes(onBytes)) : dispatcher,
    highWaterMark: BODY_BUFFER,
    headersTimeout: 0, // our timer includes connecting
    bodyTimeout: wanted.bodyTimeout,
  });
}

/** RFC 9110 15.2: informational answers may come in any number; servers send one or two. */
const MAX_HINTS = 100;

const endlessHints = (host: string): RegistryError =>
  new RegistryError('http.no-answer', `${host} sends only informational answers`, {
    expected: `at most ${MAX_HINTS} of them`,
    found: `more than ${MAX_HINTS}`,
  });

/**
 * Counts bytes as the pieces come in, which costs a call each; a stream in between would cost a tick each.
 */
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
