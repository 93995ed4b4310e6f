import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { withoutUndefined } from '../../base/members.ts';
import { waitFor } from '../../base/wait.ts';
import { createPieces } from './pieces.ts';
import { planAnswer, type PlannedAnswer } from './plan-answer.ts';
import type { Served, ServeOptions } from './served.ts';

export type Exchange = { readonly request: IncomingMessage; readonly response: ServerResponse };

/** A request that was answered, or whose client went away. */
export type ServedEntry = {
  readonly status: number;
  /** Bytes of the body that the client took. */
  readonly sent: number;
  /** Whether the client has the whole answer. */
  readonly complete: boolean;
  /** What went wrong on our side when a part was sent already: the connection was closed. */
  readonly error?: unknown;
};

/** Of each connection: aborted when the client goes away. */
const leaving = new WeakMap<Socket, AbortSignal>();
const pieces = createPieces();

/**
 * Answers GET and HEAD with the bytes, or those of them that Range asks for (RFC 9110 13 and 14). Several
 * ranges in one header are ignored, which 14.2 allows: the answer is then all of it.
 *
 * The next piece is read when the client has taken the one before, and none when it went away. Memory: a
 * piece for each client, whose size shrinks with their number.
 *
 * @throws what `fill` throws, where nothing was sent yet: the caller answers
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
  const progress = { sent: 0 };
  try {
    if (planned.body) await sendBody(exchange, { planned, served, progress, gone });
    gone.throwIfAborted();
    // After the last piece is with the kernel: a server that closes cuts off what has ended before.
    if (!response.headersSent) response.writeHead(status, planned.headers);
    response.end();
    return { status, sent: progress.sent, complete: true };
  } catch (error) {
    const isGone = error instanceof ClientGone;
    if (!isGone && !response.headersSent) throw error;
    response.destroy();
    const ours = isGone ? undefined : error;
    return { status, sent: progress.sent, complete: false, ...withoutUndefined({ error: ours }) };
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

/** Bytes for one client before others have their turn: what the kernel takes at once has no end where a client is fast. */
const TURN = 1 << 20;

/** Bytes of a piece for a client of TLS, which keeps all of it a second time until it is sent. */
const ENCRYPTED = 64 << 10;

/** A loop of calls, not of promises: with those a download takes half as much processor time again. */
async function sendBody({ response }: Exchange, sending: Sending): Promise<void> {
  const { planned, served, progress, gone } = sending;
  const { start, end } = planned.body ?? { start: 0, end: -1 };
  const leave = pieces.join();
  const largest = response.socket instanceof TLSSocket ? ENCRYPTED : undefined;
  let at = start;
  let turn = 0;
  const pump = (resolve: (done: undefined) => void, reject: (error: unknown) => void): void => {
    const next = (): void => {
      try {
        if (gone.aborted) return; // whoever waits knows
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
      // Only when there are bytes: a source that fails at once gets an answer that says so.
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
  try {
    await waitFor<undefined>(gone, pump);
  } finally {
    leave();
  }
}
