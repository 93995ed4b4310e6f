import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { withoutUndefined } from '../lists.ts';
import { createPieces } from './pieces.ts';
import { waitFor } from '../wait.ts';
import {
  type AnswerTerms,
  type PlannedAnswer,
  planAnswer,
  readTerms,
  type Served,
  type ServeOptions,
} from './plan-answer.ts';

export type Exchange = { readonly request: IncomingMessage; readonly response: ServerResponse };

/** A request that was answered, or whose client went away. */
export type ServedEntry = {
  readonly status: number;
  /** Offset of the first byte of the body; absent if the answer has no body. */
  readonly start?: number;
  /** Bytes of the body that the client took. */
  readonly sent: number;
  readonly complete: boolean;
  /** Error on our side after a part was already sent: the connection was closed. */
  readonly error?: unknown;
};

/** Content with the constant parts of its answers. */
export type Offer = { readonly served: Served; readonly terms: AnswerTerms };

/** Receives the end of an answer: one of both is called, once. */
export type AnswerEnd = {
  readonly done: (entry: ServedEntry) => void;
  /** Receives an error of `fill` before anything was sent: the caller answers. */
  readonly failed: (error: unknown) => void;
};

/** One signal for each connection: aborted when the client goes away. */
const leaving = new WeakMap<Socket, AbortSignal>();
const pieces = createPieces();

/** Gives this process a part of the memory for pieces, if several share a listener. @param part 0 to 1 */
export function sharePieces(part: number): void {
  pieces.share(part);
}

/**
 * Answers GET and HEAD with the bytes, or with the part of them that Range requests (RFC 9110 13 and 14).
 * Several ranges in one header are ignored, which 14.2 allows: the answer is then all of it.
 *
 * The next piece is read when the client has taken the one before, and not read after the client
 * went away. Memory: a piece for each client, whose size shrinks with their number.
 *
 * @throws errors of `fill`, if nothing was sent yet: the caller answers
 */
export const serveBytes = (
  exchange: Exchange,
  served: Served,
  options: ServeOptions = {},
): Promise<ServedEntry> =>
  new Promise((done, failed) => {
    serveOffer(exchange, { served, terms: readTerms(served, options) }, { done, failed });
  });

/**
 * Answers as `serveBytes` does, with what was made ready. A range of one piece that is at hand is answered within this call:
 * promises, signals and listeners would take more processor time than its bytes.
 */
export function serveOffer(exchange: Exchange, { served, terms }: Offer, end: AnswerEnd): void {
  const { request, response } = exchange;
  const planned = planAnswer(request, terms);
  const { status, headers, body } = planned;
  if (!body || body.end < body.start) {
    const isGone = request.socket.destroyed;
    if (!isGone) response.writeHead(status, headers).end();
    end.done({ status, sent: 0, complete: !isGone });
    return;
  }
  const size = body.end + 1 - body.start;
  const largest = exchange.response.socket instanceof TLSSocket ? ENCRYPTED : undefined;
  pieces.enter();
  const buffer = served.isAtHand === true && size <= SMALL ? pieces.take(size, largest) : undefined;
  if (buffer && buffer.length >= size) {
    sendAtOnce(exchange, { planned, served, buffer, piece: buffer.subarray(0, size) }, end);
    return;
  }
  if (buffer) pieces.give(buffer);
  serveInPieces(exchange, { planned, served, largest }).then(end.done, end.failed);
}

type Sending = {
  readonly planned: PlannedAnswer;
  readonly served: Served;
  /** Bytes of the largest piece. */
  readonly largest: number | undefined;
};

async function serveInPieces(exchange: Exchange, sending: Sending): Promise<ServedEntry> {
  const { request, response } = exchange;
  const { status, body = { start: 0 } } = sending.planned;
  const about = { status, start: body.start };
  const progress = { sent: 0 };
  try {
    const gone = whenGone(request.socket);
    await sendPieces(exchange, { ...sending, progress, gone });
    gone.throwIfAborted();
    // After the last piece is with the kernel: a server that closes cuts off answers that have ended before.
    response.end();
    return { ...about, sent: progress.sent, complete: true };
  } catch (error) {
    const isGone = error instanceof ClientGone;
    if (!isGone && !response.headersSent) throw error;
    response.destroy();
    const ours = isGone ? undefined : error;
    return { ...about, sent: progress.sent, complete: false, ...withoutUndefined({ error: ours }) };
  } finally {
    pieces.leave();
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

/**
 * Bytes for one client before others have their turn: a fast client's kernel takes bytes at once without end.
 */
const TURN = 1 << 20;

/** Bytes of a piece for a client of TLS, which keeps all of it a second time until it is sent. */
const ENCRYPTED = 64 << 10;

/** A loop of calls, not of promises: with promises a download takes half as much processor time again. */
async function sendPieces(
  { response }: Exchange,
  {
    planned,
    served,
    largest,
    progress,
    gone,
  }: Sending & { readonly progress: { sent: number }; readonly gone: AbortSignal },
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
      // Only when there are bytes: a source that fails at once gets an answer that reports the failure.
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

type Small = Omit<Sending, 'largest'> & { readonly buffer: Buffer; readonly piece: Buffer };

const NEVER = new AbortController().signal;

/** Sends a body of one piece. */
function sendAtOnce(
  { request: { socket }, response }: Exchange,
  { planned: { status, headers, body }, served, buffer, piece }: Small,
  end: AnswerEnd,
): void {
  const start = body?.start ?? 0;
  const finish = (isTaken: boolean): void => {
    pieces.leave();
    // The kernel may still read from the buffer of a connection that was closed.
    if (isTaken) pieces.give(buffer);
    if (isTaken) response.end();
    else response.destroy();
    end.done({ status, start, sent: isTaken ? piece.length : 0, complete: isTaken });
  };
  const send = (): void => {
    if (socket.destroyed) {
      finish(false);
      return;
    }
    response.writeHead(status, headers);
    response.write(piece, (error) => {
      finish(!error && !socket.destroyed);
    });
  };
  const fail = (error: unknown): void => {
    pieces.leave();
    end.failed(error);
  };
  try {
    const filling = served.fill(piece, start, NEVER);
    if (filling) filling.then(send).catch(fail);
    else send();
  } catch (error) {
    fail(error);
  }
}

/** Bytes of a body that are sent at once, if a client's share of the pieces has room for them. */
const SMALL = 128 << 10;
