import { decodeFailure, encodeFailure, type Failure } from './failure.ts';

/** One end between two threads: a worker, or the port to who started it. */
export type Port = {
  readonly postMessage: (message: unknown) => void;
  readonly on: (event: 'message', listener: (message: unknown) => void) => unknown;
};

type Message =
  | { readonly kind: 'ask'; readonly id: number; readonly request: unknown }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly failure: Failure };

type Waiter = {
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
};

type State = {
  readonly port: Port;
  readonly waiting: Map<number, Waiter>;
  next: number;
  broken?: { readonly reason: unknown };
};

/** Asks the thread at the other end of a port. */
export type Calls = {
  /** Rejects with what the other end rejected with. */
  readonly ask: (request: unknown) => Promise<unknown>;
  /** Rejects all that wait and all that will ask: the other end is gone. */
  readonly breakOff: (reason: unknown) => void;
};

/** Both ends may ask, and serve many requests at a time. What goes through must be cloneable. */
export function connectCalls(port: Port, serve: (request: unknown) => Promise<unknown>): Calls {
  const state: State = { port, waiting: new Map(), next: 0 };
  port.on('message', (message) => {
    receive(state, message as Message, serve);
  });
  return {
    ask: (request) => ask(state, request),
    breakOff: (reason) => {
      state.broken ??= { reason };
      for (const { reject } of state.waiting.values()) reject(state.broken.reason);
      state.waiting.clear();
    },
  };
}

function ask(state: State, request: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (state.broken) {
      reject(state.broken.reason);
      return;
    }
    const id = state.next++;
    state.waiting.set(id, { resolve, reject });
    state.port.postMessage({ kind: 'ask', id, request });
  });
}

function receive(
  { port, waiting }: State,
  message: Message,
  serve: (request: unknown) => Promise<unknown>,
): void {
  const { id } = message;
  if (message.kind === 'ask') {
    serve(message.request).then(
      (value) => {
        port.postMessage({ kind: 'answer', id, value });
      },
      (error: unknown) => {
        port.postMessage({ kind: 'failure', id, failure: encodeFailure(error) });
      },
    );
    return;
  }
  const waiter = waiting.get(id);
  waiting.delete(id);
  if (message.kind === 'answer') waiter?.resolve(message.value);
  else waiter?.reject(decodeFailure(message.failure));
}
