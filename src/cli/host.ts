import type { Command } from 'commander';
import { setFlagsFromString } from 'node:v8';
import { InterruptedError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { Redaction } from '../base/text/redact.ts';
import type { EventListener } from '../engine/index.ts';

/** The environment of a command: everything that a test replaces. */
export type CliHost = {
  /** Stream for results. Binary safe; respect its back pressure. */
  readonly stdout: NodeJS.WritableStream;
  /** Stream for progress, notes and errors. */
  readonly stderr: NodeJS.WritableStream;
  readonly env: NodeJS.ProcessEnv;
  /** Masks the secrets that were read in all that is printed. */
  readonly redaction: Redaction;
  /** Words of the command line, without the program's name; absent outside a run. */
  readonly args?: readonly string[];
  /** Directory in which relative paths of the command line start. */
  readonly cwd: string;
  /** Directory `/etc/containers`; absent: registries.conf of the system is not read. */
  readonly containersDir?: string;
  /** True if stderr is a terminal that can be redrawn. */
  readonly isTTY: boolean;
  /** Program of the workers of `serve`; absent if they cannot be started: the service is one process. */
  readonly workerProgram?: string;
  /** Signal that the first SIGINT or SIGTERM aborts, with an InterruptedError as its reason. */
  readonly signal: AbortSignal;
  /** Time in milliseconds since 1970. */
  readonly now: () => number;
  /** Gives the command more time to end in order than others have, in milliseconds. */
  readonly allowGrace?: (milliseconds: number) => void;
  /** Collects the words for an interruption of this run; absent outside a run. */
  readonly continuation?: RunContinuation;
  /** Options that the environment sets in this run; absent outside a run. */
  readonly variables?: OptionVariables;
  /** Warnings about the environment: settings of Node, variables of options; reports repeat them. */
  readonly environment?: string[];
  /** Log of the run. Absent outside a run: everything is shown, and nothing recorded. */
  readonly log?: RunLog;
};

export type LogLevel = 'quiet' | 'normal' | 'verbose';

/** Options of every command, in addition to its own. */
export type LogOptions = {
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly logFile?: string;
};

/** Log of a run: how much of it is shown on stderr, and the file that records all of it. */
export type RunLog = {
  readonly level: () => LogLevel;
  /** Writes an event with its time to the file, if there is one. Never fails. */
  readonly record: (event: object) => void;
  readonly open: (options: LogOptions, cwd: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** The sentence of an interruption. Commands say when it begins and ends; events of progress say how far it is. */
export type RunContinuation = {
  /**
   * Notes that the same command continues this work if it is interrupted.
   *
   * @param describe a sentence about what is left, undefined if nothing can be continued; default: the
   * amount that events of progress give
   */
  readonly begin: (describe?: () => string | undefined) => void;
  /** Notes that the work is complete. */
  readonly end: () => void;
  readonly listener: EventListener;
  /** The hint for an interruption now. */
  readonly describe: () => string | undefined;
};

/** Options that the environment sets in a run. */
export type OptionVariables = {
  /** Sets the options of a command that its line leaves open. @returns names of the variables that were taken */
  readonly take: (action: Command) => readonly string[];
  /** Names of the variables that were taken. */
  readonly taken: () => readonly string[];
  /** Sentences about the variables that were taken and relax a check. */
  readonly warnings: () => readonly string[];
};

/** The part of the host by which configuration files of the containers tools are found. */
export const hostPlacesOf = ({
  env,
  redaction,
  cwd,
  containersDir,
}: CliHost): Pick<CliHost, 'env' | 'redaction' | 'cwd' | 'containersDir'> => ({
  env,
  redaction,
  cwd,
  ...withoutUndefined({ containersDir }),
});

/**
 * Limits garbage to a percentage of the memory in use before V8 collects it. The default is several times the
 * memory in use: too much for the index of a large medium, for thousands of sites, or for a service with little memory.
 *
 * @param percent less takes more processor time
 */
export function keepGarbageSmall(percent = 30): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`);
}

/**
 * Keeps V8's space of new objects at its present size (1 MiB to 8 MiB) instead of up to 32 MiB. It is then
 * collected more often, which frees the buffers of its objects: they are outside that space and many times
 * its size. Only for work that copies buffers: work whose objects live on takes several times as long.
 */
export function keepNewSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

/**
 * Lets the V8 of Node.js 20 optimize a function only after it has run for long: most commands end before the work of
 * its optimizing threads pays. Later ones count calls, and wait longer by themselves.
 */
export function optimizeLate(): void {
  if (process.versions.node.startsWith('20.')) setFlagsFromString('--interrupt-budget=1000000');
}

type Signal = 'SIGINT' | 'SIGTERM';

/** The part of the process that `listenForSignals` needs; a test gives its own. */
export type SignalSource = {
  on: (signal: Signal, listener: () => void) => unknown;
  off: (signal: Signal, listener: () => void) => unknown;
};

/**
 * Listens for signals. The first SIGINT or SIGTERM aborts the returned signal, so that work stops
 * in an orderly way and the partial output stays; the second one calls `end` with 130 or 143, and
 * nothing more happens.
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
