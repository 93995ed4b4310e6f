import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { withoutUndefined } from '../lists.ts';
import { waitFor } from '../wait.ts';
import { type PlannedAnswer, planAnswer, type Served, type ServeOptions } from './plan-answer.ts';

export type Exchange = { readonly request: IncomingMessage; readonly response: ServerResponse };

/** A request that was answered, or whose client went away. */
export type ServedEntry = {
  readonly status: number;
  /** Offset of the first byte of the body; absent if the answer has no body. */
  readonly start?: number;
  /** Bytes of the body that the client took. */
  readonly sent: number;
  /** True if the client has the whole answer. */
  readonly complete: boolean;
  /** Error on our side after a part was already sent: the connection was closed. */
  readonly error?: unknown;
};

/** One signal for each connection: aborted when the client goes away. */
const leaving = new WeakMap<Socket, AbortSignal>();
const pieces = createPieces();

/**
 * Answers GET and HEAD with the bytes, or with the part of them that Range requests (RFC 9110 13
 * and 14). Several ranges in one header are ignored, which 14.2 allows: the answer is then all of
 * it.
 *
 * The next piece is read when the client has taken the one before, and not read after the client
 * went away. Memory: a piece for each client, whose size shrinks with their number.
 *
 * @throws errors of `fill`, if nothing was sent yet: the caller answers
 */
export async function serveBytes(
  exchange: Exchange,
  served: Served,
  options: ServeOptions = {},
): Promise<ServedEntry> {
  const gone = whenGone(exchange.request.socket);
  const { request, response } = exchange;
  const planned = planAnswer(request, served, options);
  const { status } = planned;
  const about = { status, ...(planned.body && { start: planned.body.start }) };
  const progress = { sent: 0 };
  try {
    if (planned.body) await sendBody(exchange, { planned, served, progress, gone });
    gone.throwIfAborted();
    // After the last piece is with the kernel: a server that closes cuts off answers that have
    // ended before.
    if (!response.headersSent) response.writeHead(status, planned.headers);
    response.end();
    return { ...about, sent: progress.sent, complete: true };
  } catch (error) {
    const isGone = error instanceof ClientGone;
    if (!isGone && !response.headersSent) throw error;
    response.destroy();
    const ours = isGone ? undefined : error;
    return { ...about, sent: progress.sent, complete: false, ...withoutUndefined({ error: ours }) };
  }
}

/** The client went away before it had the whole answer. */
class ClientGone extends Error {}

function whenGone(socket: Socket): AbortSignal {
  const known = leaving.get(socket);
  if (known) return known;
  const closing = new AbortController();
  const leave = (): void => {
    closing.abort(new ClientGone());
  };
  if (socket.destroyed) leave();
  else socket.once('close', leave);
  leaving.set(socket, closing.signal);
  return closing.signal;
}

type Sending = {
  readonly gone: AbortSignal;
  readonly planned: PlannedAnswer;
  readonly served: Served;
  readonly progress: { sent: number };
};

/**
 * Bytes for one client before others have their turn: a fast client's kernel takes bytes at once
 * without end.
 */
const TURN = 1 << 20;

/** Bytes of a piece for a client of TLS, which keeps all of it a second time until it is sent. */
const ENCRYPTED = 64 << 10;

async function sendBody(exchange: Exchange, sending: Sending): Promise<void> {
  const { start, end } = sending.planned.body ?? { start: 0, end: -1 };
  const largest = exchange.response.socket instanceof TLSSocket ? ENCRYPTED : undefined;
  const size = end + 1 - start;
  const leave = pieces.join();
  try {
    const buffer = size <= SMALL ? pieces.take(size, largest) : undefined;
    if (buffer && buffer.length >= size) {
      await sendPiece(exchange, sending, { buffer, piece: buffer.subarray(0, size) });
      return;
    }
    if (buffer) pieces.give(buffer);
    await sendPieces(exchange, sending, largest);
  } finally {
    leave();
  }
}

/**
 * A loop of calls, not of promises: with promises a download takes half as much processor time
 * again.
 */
async function sendPieces(
  { response }: Exchange,
  { planned, served, progress, gone }: Sending,
  largest: number | undefined,
): Promise<void> {
  const { start, end } = planned.body ?? { start: 0, end: -1 };
  let at = start;
  let turn = 0;
  const pump = (resolve: (done: undefined) => void, reject: (error: unknown) => void): void => {
    const next = (): void => {
      try {
        if (gone.aborted) return; // the waiting code knows
        if (at > end) {
          resolve(undefined);
          return;
        }
        const buffer = pieces.take(end + 1 - at, largest);
        const piece = buffer.subarray(0, end + 1 - at);
        const filling = served.fill(piece, at, gone);
        const send = (): void => {
          write(buffer, piece);
        };
        if (filling) filling.then(send).catch(reject);
        else send();
      } catch (error) {
        reject(error);
      }
    };
    const write = (buffer: Buffer, piece: Buffer): void => {
      // Only when there are bytes: a source that fails at once gets an answer that reports the
      // failure.
      if (!response.headersSent) response.writeHead(planned.status, planned.headers);
      response.write(piece, (error) => {
        if (error) return; // the connection is closed, and the kernel may still read from the buffer
        pieces.give(buffer);
        at += piece.length;
        turn += piece.length;
        progress.sent += piece.length;
        if (turn < TURN) {
          next();
          return;
        }
        turn = 0;
        setImmediate(next);
      });
    };
    next();
  };
  await waitFor<undefined>(gone, pump);
}

/**
 * Sends a body of one piece, as a range of a controller is: to listen for the end of the connection takes a tenth of the
 * processor time of such a request.
 */
async function sendPiece(
  { request: { socket }, response }: Exchange,
  { planned, served, progress, gone }: Sending,
  { buffer, piece }: { readonly buffer: Buffer; readonly piece: Buffer },
): Promise<void> {
  const filling = served.fill(piece, planned.body?.start ?? 0, gone);
  if (filling) await filling;
  gone.throwIfAborted();
  response.writeHead(planned.status, planned.headers);
  await new Promise<void>((resolve, reject) => {
    response.write(piece, (error) => {
      if (error || socket.destroyed) {
        reject(new ClientGone());
        return;
      }
      pieces.give(buffer);
      progress.sent += piece.length;
      resolve();
    });
  });
}

/** Bytes of a body that are sent at once, if a client's share of the pieces has room for them. */
const SMALL = 128 << 10;

/**
 * Bytes for the pieces of all clients together, as long as each gets the smallest piece or more.
 */
const BUDGET = 16 << 20;
/** Larger pieces gained nothing. */
const LARGEST = 512 << 10;
const SMALLEST = 16 << 10;

/** Buffers that are used again: new memory for each piece costs more than filling it. */
export type Pieces = {
  /** Counts one more client that takes pieces, until the result is called. */
  readonly join: () => () => void;
  /** A buffer for `wanted` bytes, or as many as a client gets now; never for more than `largest`. */
  readonly take: (wanted: number, largest?: number) => Buffer;
  /** Returns a buffer that no code reads from or writes to any longer. */
  readonly give: (buffer: Buffer) => void;
};

/**
 * Gives each client a share of the budget, 16 KiB at least: the memory of hundreds of slow clients
 * is bounded, and a few fast ones get large pieces. Sizes are powers of two.
 */
function createPieces(): Pieces {
  const free = new Map<number, Buffer[]>();
  let clients = 0;
  let idle = 0;
  return {
    join() {
      clients += 1;
      return () => {
        clients -= 1;
      };
    },
    take(wanted, largest = LARGEST) {
      const share = Math.max(SMALLEST, Math.min(largest, BUDGET / Math.max(1, clients)));
      const size = Math.max(SMALLEST, floorPower(share, wanted));
      const known = free.get(size)?.pop();
      if (known) idle -= size;
      return known ?? Buffer.allocUnsafeSlow(size);
    },
    give(buffer) {
      if (idle + buffer.length > BUDGET) return;
      idle += buffer.length;
      const list = free.get(buffer.length);
      if (list) list.push(buffer);
      else free.set(buffer.length, [buffer]);
    },
  };
}

/** The largest power of two that is not above the share, nor twice as much as is wanted. */
function floorPower(share: number, wanted: number): number {
  let size = SMALLEST;
  while (size * 2 <= share && size < wanted) size *= 2;
  return size;
}
