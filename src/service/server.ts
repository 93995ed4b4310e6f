import { createServer, STATUS_CODES, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { answerInTurn } from '../base/http/server.ts';
import { prepareDrain, type Drain } from '../base/http/server.ts';
import type { KeyPair } from '../base/http/server.ts';
import { ApiFailure, formatFailure } from './api-failure.ts';
import { answerFailure } from './app.ts';
import { boundConnections } from '../base/http/server.ts';
import type { App } from './context.ts';

export type Limits = {
  readonly connections: number;
  /** Milliseconds for the head of a request, and for a TLS handshake. */
  readonly head: number;
  /** For a whole request with its body. */
  readonly request: number;
  /** Between two requests. */
  readonly idle: number;
  /** For a client that takes no byte of its answer. */
  readonly stalled: number;
  /** For one that does so, or sends its body slowly, when there are too many connections. */
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
  /** New connections get this certificate; those that are open go on. */
  readonly renew: (pair: KeyPair) => void;
};

/** The server of the service, not listening yet. */
export function createServiceServer(
  app: App,
  { tls, limits = LIMITS }: { readonly tls?: KeyPair; readonly limits?: Limits },
): ServiceServer {
  const answer = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    hostname: 'localhost', // HTTP/1.0 asks without one
    errorHandler: () => answerFailure(new ApiFailure(400, 'the request is not valid')),
  });
  const listener = answerInTurn((request, response) => void answer(request, response));
  const connectionsCheckingInterval = Math.min(1000, limits.head);
  const server =
    tls === undefined
      ? createServer({ connectionsCheckingInterval }, listener)
      : createTlsServer(
          { ...tls, ...TLS, connectionsCheckingInterval, handshakeTimeout: limits.head },
          listener,
        );
  // A client must not wait for its answer for ever, nor hold the memory of one that it does not take.
  server.headersTimeout = limits.head;
  server.requestTimeout = limits.request;
  server.keepAliveTimeout = limits.idle;
  server.setTimeout(limits.stalled);
  boundConnections(server, limits);
  server.on('clientError', refuse);
  return {
    server,
    renew(pair) {
      if ('setSecureContext' in server) server.setSecureContext({ ...pair, ...TLS });
    },
    ...prepareDrain(server),
  };
}

const TLS = { minVersion: 'TLSv1.2' } as const;

/** As Node.js's own answer looks at it. */
type Answering = Socket & { readonly _httpMessage?: ServerResponse | null };

/** Answers what is not HTTP in the service's own shape. No answer goes into another one, nor onto a line without TLS. */
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
      `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}

const STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};
