import type { IncomingMessage, ServerResponse, Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { waitFor } from '../wait.ts';

/* Owns the connections of a server: answers in turn, draining, and limits. */

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Requests of a connection that wait for the previous answer; no client of ours sends any ahead.
 */
const PIPELINED = 8;

/**
 * Answers the requests of a connection one after the other (RFC 9112 9.3.2 has them in order): an
 * answer made ahead takes memory until the client reads it. A connection with more requests than
 * may wait is closed.
 */
export function answerInTurn(answer: Listener): Listener {
  const queues = new WeakMap<Socket, Parameters<Listener>[]>();
  const queueOf = (socket: Socket): Parameters<Listener>[] => {
    const known = queues.get(socket);
    if (known) return known;
    const queue: Parameters<Listener>[] = [];
    queues.set(socket, queue);
    socket.once('close', () => {
      for (const [, response] of queue.splice(0)) closeUnsent(response);
    });
    return queue;
  };
  return (request, response) => {
    const { socket } = request;
    const queue = queueOf(socket);
    if (socket.destroyed || queue.length > PIPELINED) {
      socket.destroy();
      closeUnsent(response);
      return;
    }
    response.once('close', () => {
      queue.shift();
      const [next] = queue;
      if (next && !socket.destroyed) answer(...next);
    });
    queue.push([request, response]);
    if (queue.length === 1) answer(request, response);
  };
}

/**
 * Closes an answer whose connection ended before its turn, which Node.js does not do: code that
 * counts answers has to know.
 */
function closeUnsent(response: ServerResponse): void {
  if (response.socket === null) response.emit('close');
}

export type Drain = {
  /**
   * Takes no more connections and requests, lets the requests that are being answered end, and
   * closes each connection after its answer. Resolves when no connection is left; when the signal
   * is aborted, the remaining connections are closed.
   */
  readonly drain: (signal: AbortSignal) => Promise<void>;
};

/** Must be called before the server has its first request. */
export function prepareDrain(server: Server): Drain {
  const open = new Set<ServerResponse>();
  let isDraining = false;
  const closeIdle = (): void => {
    server.closeIdleConnections();
  };
  server.prependListener('request', (_: IncomingMessage, response: ServerResponse) => {
    if (isDraining) response.shouldKeepAlive = false;
    open.add(response);
    response.once('close', () => {
      open.delete(response);
      if (isDraining) setImmediate(closeIdle);
    });
  });
  return {
    async drain(signal) {
      isDraining = true;
      for (const response of open) {
        if (!response.headersSent) response.shouldKeepAlive = false;
      }
      try {
        await waitFor<undefined>(signal, (resolve) => {
          server.close(() => {
            resolve(undefined);
          });
        });
      } catch (error) {
        const cut = [...open].filter(({ socket }) => socket).map(whenClosed);
        server.closeAllConnections();
        await Promise.all(cut); // the source of the answers is closed after them
        throw error;
      }
    },
  };
}

const whenClosed = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    response.once('close', () => {
      resolve();
    });
  });

/** A connection in use, in the state of the last look. */
type Busy = { readonly request: IncomingMessage; readonly taken: number; readonly at: number };

/**
 * If there are too many connections, one makes room: the connection that has been without a
 * request for longest, else one whose client has taken or sent nothing for `slow` milliseconds. If
 * there is no such connection, the new one is closed.
 */
export function boundConnections(
  server: Server | TlsServer,
  { connections: most, slow }: { readonly connections: number; readonly slow: number },
): void {
  const open = new Set<Socket>();
  const idle = new Set<Socket>();
  const busy = new Map<Socket, Busy>();
  const findStalled = createFinder(busy, slow);
  const forget = (socket: Socket): void => {
    open.delete(socket);
    idle.delete(socket);
    busy.delete(socket);
  };
  server.on('addContext' in server ? 'secureConnection' : 'connection', (socket: Socket) => {
    if (open.size >= most) {
      const [loser = findStalled() ?? socket] = idle;
      forget(loser);
      loser.destroy();
    }
    if (socket.destroyed) return;
    open.add(socket);
    idle.add(socket);
    socket.once('close', () => {
      forget(socket);
    });
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    if (!open.has(socket)) return;
    idle.delete(socket);
    busy.set(socket, { request, taken: countTaken(socket), at: performance.now() });
    response.once('close', () => {
      if (busy.get(socket)?.request !== request) return; // another one waits
      busy.delete(socket);
      idle.add(socket);
    });
  });
}

/** Bytes that the kernel has; bytes of a write in progress are not counted. */
const countTaken = (socket: Socket): number => socket.bytesWritten - socket.writableLength;

/** Milliseconds between two looks at all connections. */
const LOOK_EVERY = 1000;

function createFinder(busy: Map<Socket, Busy>, slow: number): () => Socket | undefined {
  let lookedAt = -Infinity;
  let stalled: Socket[] = [];
  const isWaiting = (socket: Socket): boolean =>
    socket.writableLength > 0 || busy.get(socket)?.request.complete === false;
  const look = (now: number): void => {
    for (const [socket, { request, taken }] of busy) {
      if (isWaiting(socket) && countTaken(socket) === taken) continue;
      busy.set(socket, { request, taken: countTaken(socket), at: now });
    }
    stalled = [...busy].filter(([, { at }]) => now - at >= slow).map(([socket]) => socket);
  };
  return () => {
    const now = performance.now();
    if (now - lookedAt >= Math.min(slow, LOOK_EVERY)) {
      lookedAt = now;
      look(now);
    }
    return stalled.splice(0).find((socket, i, all) => {
      const isOne = isWaiting(socket) && countTaken(socket) === busy.get(socket)?.taken;
      if (isOne) stalled = all.slice(i + 1);
      return isOne;
    });
  };
}

/** Limits for all clients of a server together. Times are milliseconds. */
export type ConnectionLimits = {
  readonly connections: number;
  /** A connection that took nothing for this long may be closed in favour of a new one. */
  readonly stalled: number;
  /** A connection that has been idle for this long is closed. */
  readonly idle: number;
  /** Time for the head of a request, and for a TLS handshake. */
  readonly head: number;
};

/** With a piece of 128 KiB for each connection, and as much again in TLS, some 32 MiB. */
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
 * Closes idle connections. When a new connection would be too many, the one that has been idle
 * longest is closed; if all are in use, the new one is closed.
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

/** Options of servers that NODE_OPTIONS cannot change: requests are parsed strictly. */
export const HTTP_RULES = { insecureHTTPParser: false } as const;
