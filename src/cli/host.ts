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
