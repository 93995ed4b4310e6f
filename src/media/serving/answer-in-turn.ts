import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Requests of a connection that wait for the answer to the one before; no client of ours sends any ahead. */
const PIPELINED = 8;

/**
 * Answers one request of a connection after the other (RFC 9112 9.3.2 has them in order): what is answered ahead
 * is memory until the client reads. A connection with more requests than may wait is closed.
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

/** Node.js does not close an answer whose connection ended before its turn: whoever counts answers has to know. */
function closeUnsent(response: ServerResponse): void {
  if (response.socket === null) response.emit('close');
}
