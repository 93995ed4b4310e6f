import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

/** What a server gives to all of its clients together. Times are milliseconds. */
export type ConnectionLimits = {
  readonly connections: number;
  /** A connection that took nothing for so long may be closed in favour of a new one. */
  readonly stalled: number;
  /** A connection that has been idle for so long is closed. */
  readonly idle: number;
  /** For the head of a request, and for a TLS handshake. */
  readonly head: number;
};

/** With a piece of 128 KiB for each, and as much again in TLS, some 32 MiB. */
export const CONNECTION_LIMITS: ConnectionLimits = {
  connections: 128,
  stalled: 1000,
  idle: 30_000,
  head: 10_000,
};

/** Must be called for every piece that a client took. */
export type NoteProgress = (socket: Socket) => void;

type Connection = { readonly socket: Socket; readonly movedAt: number };

/**
 * Closes idle connections. When a new one would be too many, the one that has been idle longest is closed;
 * when all are in use, the new one is.
 */
export function limitConnections(
  server: Server | TlsServer,
  limits: ConnectionLimits,
): NoteProgress {
  // In order of their last progress: a Map keeps the order of insertion.
  const open = new Map<string, Connection>();
  server.setTimeout(limits.idle);
  server.keepAliveTimeout = limits.idle;
  server.headersTimeout = limits.head;
  server.requestTimeout = limits.head;
  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket);
    if (open.size >= limits.connections && !closeStalled(open, limits.stalled)) {
      socket.destroy();
      return;
    }
    open.set(key, { socket, movedAt: performance.now() });
    socket.once('close', () => {
      if (open.get(key)?.socket === socket) open.delete(key);
    });
  });
  return (socket) => {
    const key = keyOf(socket);
    const connection = open.get(key);
    if (!connection) return;
    open.delete(key);
    open.set(key, { ...connection, movedAt: performance.now() });
  };
}

/** The connection below TLS and the one above it have the same key. */
const keyOf = ({ remoteAddress = '', remotePort = 0 }: Socket): string =>
  `${remoteAddress} ${remotePort}`;

function closeStalled(open: Map<string, Connection>, stalled: number): boolean {
  const [oldest] = open;
  if (!oldest) return false;
  const [key, { socket, movedAt }] = oldest;
  if (performance.now() - movedAt < stalled) return false;
  open.delete(key);
  socket.destroy();
  return true;
}
