import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { prepareDrain, type Drain } from '../media/serving/drain.ts';
import type { KeyPair } from '../registry/server/key-pair.ts';
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
};

const LIMITS: Limits = {
  connections: 2048,
  head: 10_000,
  request: 30_000,
  idle: 15_000,
  stalled: 120_000,
};

/** The server of the service, not listening yet. */
export function createServiceServer(
  app: App,
  { tls, limits = LIMITS }: { readonly tls?: KeyPair; readonly limits?: Limits },
): Drain & { readonly server: Server | TlsServer } {
  const answer = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    void answer(request, response);
  };
  const server =
    tls === undefined
      ? createServer(listener)
      : createTlsServer({ ...tls, minVersion: 'TLSv1.2', handshakeTimeout: limits.head }, listener);
  // A client must not wait for its answer for ever, nor hold the memory of one that it does not take.
  server.headersTimeout = limits.head;
  server.requestTimeout = limits.request;
  server.keepAliveTimeout = limits.idle;
  server.setTimeout(limits.stalled);
  boundConnections(server, limits.connections);
  return { server, ...prepareDrain(server) };
}

/** Where there are too many, the one that has been without a request for longest makes room; else the new one goes. */
function boundConnections(server: Server | TlsServer, most: number): void {
  const idle = new Set<Socket>();
  const open = new Set<Socket>();
  server.on(isTls(server) ? 'secureConnection' : 'connection', (socket: Socket) => {
    const [oldest = socket] = idle;
    if (open.size >= most) oldest.destroy();
    if (socket.destroyed) return;
    open.add(socket);
    idle.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      idle.delete(socket);
    });
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket);
    response.once('close', () => {
      if (!socket.destroyed) idle.add(socket);
    });
  });
}

const isTls = (server: Server | TlsServer): boolean => 'addContext' in server;
