import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

/** A connection that is being used, as it was when it was last looked at. */
type Busy = { readonly request: IncomingMessage; readonly taken: number; readonly at: number };

/** Bytes that the kernel has: those of a write that goes on are not counted. */
const countTaken = (socket: Socket): number => socket.bytesWritten - socket.writableLength;

/** Milliseconds between two looks at all connections. */
const LOOK_EVERY = 1000;

/**
 * Where there are too many connections, one makes room: the one that has been without a request for longest, else
 * one whose client has taken or sent nothing for `slow` milliseconds. Where there is none, the new one is closed.
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
