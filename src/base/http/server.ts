import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { Socket } from 'node:net';
import { startTimer, untilAborted } from '../wait.ts';
import { createShares, type Shares, sumAmounts } from './shares.ts';
import type { ClientAddresses } from './client-address.ts';
import type { KeyPair } from './key-pair.ts';
import { createRoom, type Connection, type RoomLimits, type ServerRefusal } from './room.ts';
import { TLS_RULES } from './tls.ts';

/* Owns the servers of this program: their limits, answers in turn, and draining. */

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Limits of a server. Times are milliseconds. */
export type ServerLimits = RoomLimits & {
  /** Time for the head of a request, and for a TLS handshake. */
  readonly head: number;
  /** Time for a whole request with its body. */
  readonly request: number;
  /** Time between two requests. */
  readonly idle: number;
  /** Time for a client that takes no byte of its answer. */
  readonly stalled: number;
};

export type ServerOptions = {
  readonly tls?: KeyPair | undefined;
  readonly limits: ServerLimits;
  readonly addresses: ClientAddresses;
  /** True for a server that only processes of this program connect to; requests may have no Host there. */
  readonly isInner?: boolean;
  /** Connections, or requests in flight, that an owner has in other processes of the same listener. */
  readonly elsewhere?: (owner: string) => number;
  readonly refuse: (response: ServerResponse, refusal: ServerRefusal) => void;
};

export type LimitedServer = {
  readonly server: Server | TlsServer;
  /**
   * Takes no more connections and requests, lets the requests that are being answered end, and
   * closes each connection after its answer. Resolves when no connection is left; when the signal
   * is aborted, the remaining connections are closed.
   */
  readonly drain: (signal: AbortSignal) => Promise<void>;
  /** Counts the connections of each owner; behind a trusted proxy, the requests in flight. */
  readonly countOwners: () => ReadonlyMap<string, number>;
};

type Turn = { readonly request: IncomingMessage; readonly response: ServerResponse };

/** A connection with its requests in their order: the first is being answered. */
type Line = Connection & { readonly turns: Turn[]; refusal?: ServerRefusal | undefined };

/** Requests of a connection that wait for the previous answer; no client of ours sends any ahead. */
const PIPELINED = 8;

/** Refused connections that wait for the request whose answer says so, and milliseconds that they may. */
const REFUSED = 64;
const REFUSED_FOR = 2000;

/**
 * Creates a server, not listening yet, whose clients are bounded together and each: in connections, and in requests in
 * flight behind a trusted proxy.
 *
 * The requests of a connection are answered one after the other (RFC 9112 9.3.2 has them in order): an answer made ahead
 * takes memory until the client reads it. A connection with more requests than may wait is closed.
 */
export function createLimitedServer(answer: Listener, options: ServerOptions): LimitedServer {
  const { limits, addresses, refuse, elsewhere = () => 0 } = options;
  const lines = new Set<Line>();
  const inFlight = createShares({ each: limits.each, all: Infinity }, elsewhere);
  const forwarded = limitForwarded(addresses, inFlight, limits);
  const server = createBareServer(options);
  const room = createRoom(limits, elsewhere);
  let isDraining = false;
  const begin = (line: Line): void => {
    const [turn] = line.turns;
    if (!turn?.request.socket.writable) return;
    const { request, response } = turn;
    closeInStages(request);
    room.begin(line, request);
    const refusal = line.refusal ?? (line.owner === undefined ? forwarded(turn) : undefined);
    response.once('close', () => {
      room.finish(line);
      line.turns.shift();
      begin(line);
      if (isDraining) setImmediate(closeIdle);
    });
    if (isDraining || refusal) response.shouldKeepAlive = false;
    if (refusal) refuse(response, refusal);
    else answer(request, response);
  };
  const closeIdle = (): void => {
    server.closeIdleConnections();
  };
  const find = watchConnections(server, {
    isInner: options.isInner === true,
    enter(socket) {
      const owner = addresses.ofConnection(socket);
      const line: Line = { socket, owner, turns: [], taken: 0, at: 0 };
      line.refusal = room.enter(line);
      lines.add(line);
      return line;
    },
    leave(line) {
      lines.delete(line);
      room.leave(line);
      line.turns.splice(0);
    },
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const line = find(request.socket);
    if (!line || line.turns.length > PIPELINED) {
      request.socket.destroy();
      return;
    }
    line.turns.push({ request, response });
    if (line.turns.length === 1) begin(line);
  });
  const drain = async (signal: AbortSignal): Promise<void> => {
    isDraining = true;
    await endConnections(server, lines, signal);
  };
  return { server, drain, countOwners: () => sumAmounts([room.count(), inFlight.list()]) };
}

/** Milliseconds for a client to read its answer; the rest of the request's body is discarded meanwhile. */
const LINGER = 2000;

/**
 * Lets a client read the answer to a request whose body was not read to its end. Closing a socket with unread bytes resets
 * the connection, and the client may lose the answer, so the connection is closed in stages (RFC 9112 9.6).
 */
function closeInStages(request: IncomingMessage): void {
  const { socket } = request;
  const close = (): void => {
    Socket.prototype.destroySoon.call(socket);
  };
  socket.destroySoon = (): void => {
    if (request.complete) close();
    if (request.complete || socket.writableEnded) return;
    socket.end();
    const timer = startTimer(LINGER, () => socket.destroy());
    socket.once('close', timer.stop);
    request.unpipe().once('end', close).resume();
  };
}

/** Ends each connection after its answer; when the signal is aborted, all of them. */
async function endConnections(
  server: Server | TlsServer,
  lines: ReadonlySet<Line>,
  signal: AbortSignal,
): Promise<void> {
  const listOpen = (): readonly ServerResponse[] =>
    [...lines].flatMap(({ turns: [turn] }) => turn?.response ?? []);
  for (const response of listOpen()) {
    if (!response.headersSent) response.shouldKeepAlive = false;
  }
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  try {
    await untilAborted(closed, signal);
  } catch (error) {
    const cut = listOpen().map(whenClosed);
    server.closeAllConnections();
    await Promise.all(cut); // the source of the answers is closed after them
    throw error;
  }
}

const whenClosed = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    response.once('close', () => {
      resolve();
    });
  });

/**
 * Watches connections come and go. A refused one may stay for a while, for its answer; with too many of them, it is closed
 * at once.
 *
 * @returns the line of a socket; with TLS, of the socket above it
 */
function watchConnections(
  server: Server | TlsServer,
  {
    enter,
    leave,
    isInner,
  }: {
    readonly enter: (socket: Socket) => Line;
    readonly leave: (line: Line) => void;
    readonly isInner: boolean;
  },
): (socket: Socket) => Line | undefined {
  const known = new WeakMap<Socket, Line>();
  const byPeer = new Map<string, Line>();
  let refused = 0;
  const close = (line: Line): void => {
    if (refused >= REFUSED) {
      line.socket.destroy();
      return;
    }
    refused += 1;
    const timer = startTimer(REFUSED_FOR, () => line.socket.destroy());
    timer.unref();
    line.socket.once('close', () => {
      refused -= 1;
      timer.stop();
    });
  };
  server.on('connection', (socket: Socket) => {
    // Reset before it was accepted: the bytes of its requests can still be read, but not whose they are.
    if (socket.remoteAddress === undefined && !isInner) {
      socket.destroy();
      return;
    }
    const line = enter(socket);
    const peer = peerOf(socket);
    known.set(socket, line);
    byPeer.set(peer, line);
    socket.once('close', () => {
      if (byPeer.get(peer) === line) byPeer.delete(peer);
      leave(line);
    });
    if (line.refusal) close(line);
  });
  server.on('secureConnection', (socket: Socket) => {
    const line = byPeer.get(peerOf(socket));
    if (line) known.set(socket, line);
  });
  return (socket) => known.get(socket);
}

const peerOf = ({ remoteAddress = '', remotePort = 0 }: Socket): string =>
  `${remoteAddress} ${remotePort}`;

/** Counts requests that a trusted proxy hands on until they are answered, as connections are counted elsewhere. */
function limitForwarded(
  addresses: ClientAddresses,
  inFlight: Shares,
  { each }: ServerLimits,
): (turn: Turn) => ServerRefusal | undefined {
  return ({ request, response }) => {
    const owner = addresses.ofRequest(request);
    if (inFlight.take(owner, 1) !== 'taken') {
      return { status: 429, message: `${each} requests of this address are being answered` };
    }
    response.once('close', () => {
      inFlight.give(owner, 1);
    });
    return undefined;
  };
}

/** Options of servers that NODE_OPTIONS cannot change: requests are parsed strictly. */
const HTTP_RULES = { insecureHTTPParser: false } as const;

function createBareServer({ tls, limits, isInner }: ServerOptions): Server | TlsServer {
  const requireHostHeader = isInner !== true;
  const rules = {
    ...HTTP_RULES,
    requireHostHeader,
    connectionsCheckingInterval: Math.min(1000, limits.head),
  };
  const server =
    tls === undefined
      ? createServer(rules)
      : createTlsServer({ ...tls, ...TLS_RULES, ...rules, handshakeTimeout: limits.head });
  // A client must not wait forever for its answer, nor hold the memory of an answer that it does not take.
  server.headersTimeout = limits.head;
  server.requestTimeout = limits.request;
  server.keepAliveTimeout = limits.idle;
  server.setTimeout(limits.stalled);
  return server;
}
