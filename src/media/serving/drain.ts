import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { waitFor } from '../../base/wait.ts';

export type Drain = {
  /**
   * Takes no more connections and requests, lets those that are being answered end, and closes each
   * connection behind its answer. Resolves when none is left; when the signal is aborted, those that are left
   * are closed.
   */
  readonly drain: (signal: AbortSignal) => Promise<void>;
};

const whenClosed = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    response.once('close', () => {
      resolve();
    });
  });

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
        await Promise.all(cut); // what they are answered from is closed behind them
        throw error;
      }
    },
  };
}
