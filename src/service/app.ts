import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { routePath } from 'hono/route';
import { createServer, STATUS_CODES, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { RegistryError } from '../base/errors.ts';
import {
  answerInTurn,
  prepareDrain,
  type Drain,
  boundConnections,
  HTTP_RULES,
} from '../base/http/server.ts';
import type { KeyPair } from '../base/http/key-pair.ts';
import { TLS_RULES } from '../base/http/tls.ts';
import { addClusterRoutes, addVersionRoutes } from './clusters.ts';
import { BASE_PATH, type App, type Environment, type Service, checkAsker } from './context.ts';
import { addDownloadRoutes } from './images/downloads.ts';
import { addHostUrlRoutes } from './images/host-urls.ts';
import { addImageRoutes } from './images/routes.ts';
import { addInfraEnvRoutes } from './infra-envs/routes.ts';
import { ApiFailure, formatFailure } from './openapi.ts';
import { addPlainRules } from './transport.ts';
import { addPage, addProbes, type CountedRequest, type Metrics } from './page.ts';

/* Owns the server of the service, and the order of its routes. */

/** An answered request, without its query, which may hold a token. */
export type AnsweredRequest = CountedRequest & {
  /** Cause of a failure on the server's side. */
  readonly error?: unknown;
};

export type AppOptions = {
  readonly metrics: Metrics;
  readonly onAnswer: (request: AnsweredRequest) => void;
};

export type Limits = {
  readonly connections: number;
  /** Milliseconds for the head of a request, and for a TLS handshake. */
  readonly head: number;
  /** Milliseconds for a whole request with its body. */
  readonly request: number;
  /** Milliseconds between two requests. */
  readonly idle: number;
  /** Milliseconds for a client that takes no byte of its answer. */
  readonly stalled: number;
  /**
   * Milliseconds for such a client, or one that sends its body slowly, when there are too many
   * connections.
   */
  readonly slow: number;
};

const LIMITS: Limits = {
  connections: 2048,
  head: 30_000,
  request: 60_000,
  idle: 15_000,
  stalled: 120_000,
  slow: 10_000,
};

type ServiceServer = Drain & {
  readonly server: Server | TlsServer;
  /** Uses this certificate for new connections; open ones continue. */
  readonly renew: (pair: KeyPair) => void;
};

/** Creates the server of the service, not listening yet. */
export function createServiceServer(
  app: App,
  { tls, limits = LIMITS }: { readonly tls?: KeyPair; readonly limits?: Limits },
): ServiceServer {
  const answer = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    hostname: 'localhost', // HTTP/1.0 requests may have no host
    errorHandler: () => answerFailure(new ApiFailure(400, 'the request is not valid')),
  });
  const listener = answerInTurn((request, response) => void answer(request, response));
  const connectionsCheckingInterval = Math.min(1000, limits.head);
  const server =
    tls === undefined
      ? createServer({ ...HTTP_RULES, connectionsCheckingInterval }, listener)
      : createTlsServer(
          {
            ...tls,
            ...TLS_RULES,
            ...HTTP_RULES,
            connectionsCheckingInterval,
            handshakeTimeout: limits.head,
          },
          listener,
        );
  // A client must not wait forever for its answer, nor hold the memory of an answer that it does not take.
  server.headersTimeout = limits.head;
  server.requestTimeout = limits.request;
  server.keepAliveTimeout = limits.idle;
  server.setTimeout(limits.stalled);
  boundConnections(server, limits);
  server.on('clientError', refuse);
  return {
    server,
    renew(pair) {
      if ('setSecureContext' in server) server.setSecureContext({ ...pair, ...TLS_RULES });
    },
    ...prepareDrain(server),
  };
}

/** Creates every route of the service, without a listener. */
export function createApp(service: Service, { metrics, onAnswer }: AppOptions): App {
  const app: App = new Hono<Environment>();
  app.use(async (exchange, next) => {
    const started = performance.now();
    await next();
    const served = exchange.get('served');
    const { error = served?.error, req } = exchange;
    const route = routePath(exchange, -1);
    onAnswer({
      method: req.method,
      route: route === '/*' ? 'unknown' : route,
      status: served?.status ?? exchange.res.status,
      isCut: served?.complete === false,
      milliseconds: performance.now() - started,
      ...(error !== undefined && !(error instanceof ApiFailure) && { error }),
    });
  });
  app.use(async (exchange, next) => {
    for (const [name, value] of Object.entries(PRIVATE)) exchange.header(name, value);
    checkAsker(service, exchange);
    await next();
  });
  addPlainRules(app, service);
  addProbes(app, service, metrics);
  app.get(`${BASE_PATH}/openapi.json`, (exchange) =>
    exchange.body(service.openApi.bytes, 200, { 'Content-Type': 'application/json' }),
  );
  addClusterRoutes(app, service);
  addInfraEnvRoutes(app, service);
  addDownloadRoutes(app, service);
  addHostUrlRoutes(app, service);
  addImageRoutes(app, service);
  addVersionRoutes(app, service);
  addPage(app);
  app.notFound(() => {
    throw new ApiFailure(404, 'path not found');
  });
  app.onError((error) => answerFailure(error));
  return app;
}

/** Headers of every answer, unless a route has others: URLs of images are secrets. */
const PRIVATE = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' };

/** RFC 9110, 11.6.1 and 10.2.3 (seconds). */
const HEADERS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'WWW-Authenticate': 'Bearer' },
  503: { 'Retry-After': '5' },
};

/** Formats an error as an answer. Details of unforeseen errors go to the log only. */
function answerFailure(error: Error): Response {
  const failure =
    error instanceof ApiFailure
      ? error
      : error instanceof HTTPException
        ? new ApiFailure(error.status, error.message)
        : error instanceof RegistryError
          ? new ApiFailure(503, `the ${placeOf(error)} cannot be read now`)
          : new ApiFailure(500, 'internal error');
  return Response.json(formatFailure(failure), {
    status: failure.status,
    headers: { ...PRIVATE, ...HEADERS[failure.status] },
  });
}

const placeOf = ({ code }: RegistryError): string =>
  code === 'service.database' ? 'database' : 'store';

/** Socket with the answer in progress, as in Node.js's default handler. */
type Answering = Socket & { readonly _httpMessage?: ServerResponse | null };

const STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/**
 * Answers bytes that are not HTTP with an error in the service's format. The answer is never written into
 * another one, nor onto a line without TLS.
 */
function refuse(error: NodeJS.ErrnoException, socket: Answering): void {
  const isBroken = /^(?:ECONNRESET$|ERR_(?:SSL|TLS)_)/.test(error.code ?? '');
  if (isBroken || !socket.writable || socket._httpMessage?.headersSent) {
    socket.destroy();
    return;
  }
  const status = STATUSES[error.code ?? ''] ?? 400;
  const reason = STATUS_CODES[status] ?? '';
  const body = JSON.stringify(formatFailure(new ApiFailure(status, reason.toLowerCase())));
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/json\r\n` +
      'X-Content-Type-Options: nosniff\r\n' +
      `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}
