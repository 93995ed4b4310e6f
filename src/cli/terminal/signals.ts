import { InterruptedError } from '../../base/errors.ts';

type Signal = 'SIGINT' | 'SIGTERM';

/** What of the process this needs; a test gives its own. */
export type SignalSource = {
  on: (signal: Signal, listener: () => void) => unknown;
  off: (signal: Signal, listener: () => void) => unknown;
};

/**
 * The first SIGINT or SIGTERM aborts the returned signal, so that work stops in an orderly way and the
 * partial output stays; the second one calls `end` with 130 or 143 and nothing more happens.
 */
export function listenForSignals(
  source: SignalSource,
  end: (exitCode: number) => void,
): { readonly signal: AbortSignal; stop: () => void } {
  const controller = new AbortController();
  const listeners = (['SIGINT', 'SIGTERM'] as const).map((name) => {
    const listener = (): void => {
      const error = new InterruptedError(name);
      if (controller.signal.aborted) end(error.exitCode);
      else controller.abort(error);
    };
    source.on(name, listener);
    return { name, listener };
  });
  return {
    signal: controller.signal,
    stop: () => {
      for (const { name, listener } of listeners) source.off(name, listener);
    },
  };
}
