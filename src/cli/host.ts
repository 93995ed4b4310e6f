import { withoutUndefined } from '../base/members.ts';
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
