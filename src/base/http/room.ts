import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/* Owns which connections a server has room for, and which of them makes room. */

export type Connection = {
  /** Below TLS, if there is any. */
  readonly socket: Socket;
  /** Its address; undefined for a trusted proxy, whose connections have no limit of their own. */
  readonly owner: string | undefined;
  request?: IncomingMessage | undefined;
  /** State of the last look: bytes that the client had taken, and since when. */
  taken: number;
  at: number;
};

/** Reason to refuse a request; its connection is closed. */
export type ServerRefusal = { readonly status: 429 | 503; readonly message: string };

export type RoomLimits = {
  readonly connections: number;
  /** Connections of one address. */
  readonly each: number;
  /** Milliseconds without progress, after which a connection may make room. */
  readonly slow: number;
};

export type Room = {
  /** Lets a connection in; another one may be closed for it. */
  readonly enter: (connection: Connection) => ServerRefusal | undefined;
  readonly leave: (connection: Connection) => void;
  readonly begin: (connection: Connection, request: IncomingMessage) => void;
  readonly finish: (connection: Connection) => void;
  readonly count: () => ReadonlyMap<string, number>;
};

/**
 * Creates the room of a server. If there are too many connections, one makes room: first the one that has been without a
 * request for longest, then one whose client has taken or sent nothing for `slow`, then the oldest of the address that has
 * most. An address that has its share makes room by one of its own, as far as it has such a connection.
 *
 * @param elsewhere connections that an owner has in other processes of the same listener
 */
export function createRoom(
  { connections: most, each, slow }: RoomLimits,
  elsewhere: (owner: string) => number = () => 0,
): Room {
  const open = new Set<Connection>();
  const idle = new Set<Connection>();
  const owned = new Map<string, Set<Connection>>();
  const findStalled = createFinder(open, slow);
  const leave = (connection: Connection): void => {
    open.delete(connection);
    idle.delete(connection);
    removeOwned(owned, connection);
  };
  /** Closes a connection for another one; false if there is not any. */
  const close = (connection: Connection | undefined): boolean => {
    if (connection) leave(connection);
    connection?.socket.destroy();
    return connection !== undefined;
  };
  const listOwn = (owner: string): Set<Connection> => owned.get(owner) ?? new Set();
  const hasShare = (owner: string | undefined): boolean => {
    if (owner === undefined) return true;
    const own = listOwn(owner);
    if (own.size + elsewhere(owner) < each) return true;
    return close(findResting(own) ?? findStalled(owner));
  };
  const hasRoom = (owner = ''): boolean => {
    if (open.size < most) return true;
    const [first = findStalled() ?? findGreedy(owned, listOwn(owner).size)] = idle;
    return close(first);
  };
  return {
    leave,
    count: () => countAll(owned),
    enter(connection) {
      const { owner } = connection;
      if (!hasShare(owner)) {
        return refuseOwner(each);
      }
      if (!hasRoom(owner)) {
        return { status: 503, message: `there are ${most} connections already` };
      }
      connection.at = performance.now();
      open.add(connection);
      idle.add(connection);
      if (owner !== undefined) owned.set(owner, listOwn(owner).add(connection));
      return undefined;
    },
    begin(connection, request) {
      idle.delete(connection);
      connection.request = request;
      connection.taken = countTaken(request.socket);
      connection.at = performance.now();
    },
    finish(connection) {
      connection.request = undefined;
      connection.at = performance.now();
      if (open.has(connection)) idle.add(connection);
    },
  };
}

const refuseOwner = (each: number): ServerRefusal => ({
  status: 429,
  message: `this address has ${each} connections: it may not have more`,
});

const countAll = (owned: ReadonlyMap<string, ReadonlySet<Connection>>) =>
  new Map([...owned].map(([owner, own]) => [owner, own.size]));

function removeOwned(owned: Map<string, Set<Connection>>, connection: Connection): void {
  const own = owned.get(connection.owner ?? '');
  own?.delete(connection);
  if (own?.size === 0) owned.delete(connection.owner ?? '');
}

/** A connection without a request; not one that has just come, which the next of many that come at once would close. */
function findResting(own: ReadonlySet<Connection>): Connection | undefined {
  const since = performance.now() - FRESH;
  return [...own].find(({ request, at }) => !request && at < since);
}

/** The oldest connection of the owner who has most, if that is more than a newcomer will have. */
function findGreedy(
  owned: ReadonlyMap<string, ReadonlySet<Connection>>,
  count: number,
): Connection | undefined {
  let largest: ReadonlySet<Connection> = new Set();
  for (const own of owned.values()) if (own.size > largest.size) largest = own;
  const [oldest] = largest;
  return largest.size > count + 1 ? oldest : undefined;
}

/** Bytes that the kernel has; bytes of a write in progress are not counted. */
const countTaken = (socket: Socket): number => socket.bytesWritten - socket.writableLength;

/** Milliseconds in which a connection without a request is about to have one. */
const FRESH = 1000;

/** Milliseconds between two looks at all connections. */
const LOOK_EVERY = 1000;

/** Creates a search for a connection whose client makes no progress; it looks once a second at most. */
function createFinder(
  open: ReadonlySet<Connection>,
  slow: number,
): (owner?: string) => Connection | undefined {
  let lookedAt = -Infinity;
  let stalled: Connection[] = [];
  /** Bytes taken, if it is the client that is waited for. */
  const readWaiting = ({ request }: Connection): number | undefined =>
    request && (request.socket.writableLength > 0 || !request.complete)
      ? countTaken(request.socket)
      : undefined;
  const look = (now: number): void => {
    stalled = [];
    for (const connection of open) {
      const { request, taken } = connection;
      if (!request) continue;
      if (readWaiting(connection) !== taken) {
        connection.taken = countTaken(request.socket);
        connection.at = now;
      } else if (now - connection.at >= slow) stalled.push(connection);
    }
  };
  return (owner) => {
    const now = performance.now();
    if (now - lookedAt >= Math.min(slow, LOOK_EVERY)) {
      lookedAt = now;
      look(now);
    }
    const found = stalled.find(
      (each) =>
        (owner === undefined || each.owner === owner) &&
        open.has(each) &&
        readWaiting(each) === each.taken,
    );
    stalled = stalled.filter((each) => each !== found);
    return found;
  };
}
