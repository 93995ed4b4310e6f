import { getRequestListener } from '@hono/node-server';
import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ClientAddresses, createClientAddresses } from '../base/http/client-address.ts';
import type { KeyPair } from '../base/http/key-pair.ts';
import { createLimitedServer, type LimitedServer, type ServerLimits } from '../base/http/server.ts';
import { TLS_RULES } from '../base/http/tls.ts';
import { answerFailure, PRIVATE, RETRY_AFTER } from './app.ts';
import { ApiFailure, formatFailure } from './openapi.ts';
import type { OpenedService } from './service.ts';

/* Owns the server of the service: its limits, and answers to requests that reach no route. */

export const SERVER_LIMITS: ServerLimits = {
  connections: 2048,
  each: 256,
  head: 30_000,
  request: 60_000,
  idle: 15_000,
  stalled: 120_000,
  slow: 10_000,
};

export type ServiceServerOptions = {
  readonly tls?: KeyPair;
  readonly limits?: Partial<ServerLimits>;
  readonly addresses?: ClientAddresses;
};

export type ServiceServer = LimitedServer & {
  /** Uses this certificate for new connections; open ones continue. */
  readonly renew: (pair: KeyPair) => void;
};

/** Creates the server of the service, not listening yet. */
export function createServiceServer(
  { app, answerKnown }: Pick<OpenedService, 'app' | 'answerKnown'>,
  options: ServiceServerOptions,
): ServiceServer {
  const answer = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    hostname: 'localhost', // HTTP/1.0 requests may have no host
    errorHandler: () => answerFailure(new ApiFailure(400, 'the request is not valid')),
  });
  const { server, drain } = createLimitedServer(
    (request, response) => {
      answerKnown(request, response, () => void answer(request, response));
    },
    {
      tls: options.tls,
      limits: { ...SERVER_LIMITS, ...options.limits },
      addresses: options.addresses ?? createClientAddresses(),
      refuse(response, { status, message }) {
        const body = JSON.stringify(formatFailure(new ApiFailure(status, message)));
        const headers = { ...PRIVATE, 'Content-Type': 'application/json', ...RETRY_AFTER[status] };
        response.writeHead(status, { ...headers, 'Content-Length': body.length }).end(body);
      },
    },
  );
  server.on('clientError', refuseBytes);
  return {
    server,
    drain,
    renew(pair) {
      if ('setSecureContext' in server) server.setSecureContext({ ...pair, ...TLS_RULES });
    },
  };
}

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
function refuseBytes(error: NodeJS.ErrnoException, socket: Answering): void {
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
