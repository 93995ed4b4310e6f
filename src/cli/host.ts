import { setFlagsFromString } from 'node:v8';
import { InterruptedError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';

/** What a command sees of the world: everything a test replaces. */
export type CliHost = {
  /** Results. Binary safe; respect its back pressure. */
  readonly stdout: NodeJS.WritableStream;
  /** Progress, notes, errors. */
  readonly stderr: NodeJS.WritableStream;
  readonly env: NodeJS.ProcessEnv;
  /** Relative paths of the command line start here. */
  readonly cwd: string;
  /** `/etc/containers`; absent: registries.conf of the system is not read. */
  readonly containersDir?: string;
  /** Whether stderr is a terminal that can be redrawn. */
  readonly isTTY: boolean;
  /** Aborted by the first SIGINT or SIGTERM, with an InterruptedError as its reason. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Gives the command more time to end in order than others have, in milliseconds. */
  readonly allowGrace?: (milliseconds: number) => void;
  /** Absent outside of a run: everything is shown, and nothing recorded. */
  readonly log?: RunLog;
};

export type LogLevel = 'quiet' | 'normal' | 'verbose';

/** What every command takes beside its own options. */
export type LogOptions = {
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly logFile?: string;
};

/** How much goes to stderr, and the file that everything goes to. */
export type RunLog = {
  readonly level: () => LogLevel;
  /** Writes an event with its time to the file, if there is one. Never fails. */
  readonly record: (event: object) => void;
  /** @throws UsageError `usage.conflicting-option`, and what `claimOutput` and `openOwnFile` throw */
  readonly open: (options: LogOptions, cwd: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Where this host has what the containers tools read. */
export const placesOf = ({
  env,
  cwd,
  containersDir,
}: CliHost): Pick<CliHost, 'env' | 'cwd' | 'containersDir'> => ({
  env,
  cwd,
  ...withoutUndefined({ containersDir }),
});

/**
 * Percent of what is in use that garbage may have before V8 collects it. By default that is several
 * times as much: too much for the index of a large medium, or for a service, where memory is little.
 */
export function keepGarbageSmall(): void {
  setFlagsFromString('--heap-growing-percent=30');
}

/**
 * The space of new objects stays at the size it has now (1 MiB to 8) and does not grow to 32 MiB. It is
 * collected the more often, and with its objects go their buffers, which are outside of it and many times
 * its size. For what copies buffers: where most objects live on, it takes several times the time.
 */
export function keepNewSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

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
