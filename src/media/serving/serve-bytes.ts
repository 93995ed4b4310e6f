import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import pLimit, { type LimitFunction } from 'p-limit';
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

/** Requests of a connection that wait for their turn; no client of downloads sends any ahead. */
const PIPELINED = 8;

const queues = new WeakMap<Socket, LimitFunction>();
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
  const { socket } = exchange.request;
  // A client may send requests without waiting for answers: RFC 9112 9.3.2 has them in order.
  const queue = queues.get(socket) ?? pLimit(1);
  queues.set(socket, queue);
  if (queue.pendingCount < PIPELINED) return queue(() => answer(exchange, served, options));
  socket.destroy();
  return { status: 0, sent: 0, complete: false };
}

/** The client went away before it had the whole answer. */
class ClientGone extends Error {}

async function answer(
  exchange: Exchange,
  served: Served,
  options: ServeOptions,
): Promise<ServedEntry> {
  const { request, response } = exchange;
  const gone = new AbortController();
  const leave = (): void => {
    gone.abort(new ClientGone());
  };
  if (response.closed || request.socket.destroyed) leave();
  response.once('close', leave);
  const planned = planAnswer(request, served, options);
  const { status } = planned;
  const progress = { sent: 0 };
  try {
    await send(exchange, { planned, served, options, progress, gone: gone.signal });
    return { status, sent: progress.sent, complete: true };
  } catch (error) {
    const isGone = error instanceof ClientGone;
    if (!isGone && !response.headersSent) throw error;
    response.destroy();
    const ours = isGone ? undefined : error;
    return { status, sent: progress.sent, complete: false, ...withoutUndefined({ error: ours }) };
  } finally {
    response.off('close', leave);
  }
}

type Sending = {
  readonly planned: PlannedAnswer;
  readonly served: Served;
  readonly options: ServeOptions;
  readonly progress: { sent: number };
  readonly gone: AbortSignal;
};

async function send({ request, response }: Exchange, sending: Sending): Promise<void> {
  const { planned, served, options, progress, gone } = sending;
  const { start, end } = planned.body ?? { start: 0, end: -1 };
  const leave = pieces.join();
  try {
    for (let at = start; at <= end;) {
      gone.throwIfAborted();
      const buffer = pieces.take(end + 1 - at);
      const piece = buffer.subarray(0, end + 1 - at);
      await served.fill(piece, at, gone);
      // Only when there are bytes: a source that fails at once gets an answer that says so.
      if (!response.headersSent) response.writeHead(planned.status, planned.headers);
      await write(response, piece, gone);
      pieces.give(buffer); // where anything failed, the kernel may still read from it
      at += piece.length;
      progress.sent += piece.length;
      options.onProgress?.(request.socket);
    }
  } finally {
    leave();
  }
  // After the last piece is with the kernel: a server that closes cuts off what has ended before.
  gone.throwIfAborted();
  if (!response.headersSent) response.writeHead(planned.status, planned.headers);
  response.end();
}

function write(response: ServerResponse, piece: Buffer, gone: AbortSignal): Promise<void> {
  return waitFor<undefined>(gone, (resolve, reject) => {
    response.write(piece, (error) => {
      if (error) reject(new ClientGone());
      else resolve(undefined);
    });
  });
}
