import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import {
  createLimitedServer,
  type LimitedServer,
  type ServerOptions,
} from '../base/http/server.ts';
import type { KeyPair } from '../base/http/key-pair.ts';
import type { ServerLimits } from '../base/http/server.ts';
import { TLS_RULES } from '../base/http/tls.ts';
import { formatFailure, PRIVATE, RETRY_AFTER } from './failure.ts';

/* Owns the servers that clients connect to: their limits, and answers to what is not a request. */

export const SERVER_LIMITS: ServerLimits = {
  connections: 2048,
  each: 256,
  head: 30_000,
  request: 60_000,
  idle: 15_000,
  stalled: 120_000,
  slow: 10_000,
};

/** True for methods that change nothing (RFC 9110 9.2.1). */
export const isReadMethod = (method: string | undefined): boolean =>
  ['GET', 'HEAD', 'OPTIONS'].includes(String(method));

export type ServiceServer = LimitedServer & {
  /** Uses this certificate for new connections; open ones continue. */
  readonly renew: (pair: KeyPair) => void;
};

/** Creates a server that refuses in the service's format, not listening yet. */
export function createDoor(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  options: Omit<ServerOptions, 'refuse'>,
): ServiceServer {
  const limited = createLimitedServer(answer, { ...options, refuse: sendFailure });
  const { server } = limited;
  server.on('clientError', refuseBytes);
  return {
    ...limited,
    renew(pair) {
      if ('setSecureContext' in server) server.setSecureContext({ ...pair, ...TLS_RULES });
    },
  };
}

export function sendFailure(
  response: ServerResponse,
  { status, message }: { readonly status: 400 | 429 | 503; readonly message: string },
): void {
  const body = JSON.stringify(formatFailure({ status, message }));
  const headers = { ...PRIVATE, 'Content-Type': 'application/json', ...RETRY_AFTER[status] };
  response.writeHead(status, { ...headers, 'Content-Length': body.length }).end(body);
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
  const body = JSON.stringify(formatFailure({ status, message: reason.toLowerCase() }));
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/json\r\n` +
      'X-Content-Type-Options: nosniff\r\n' +
      `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}
