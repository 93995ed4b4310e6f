import { execa, ExecaError } from 'execa';
import { ToolError } from './errors.ts';
import { isErrno } from './errno.ts';
import { redact } from './redact.ts';

export type ProcessOptions = {
  readonly cwd?: string;
  /** The whole environment of the child: nothing is inherited. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Milliseconds; 0 or absent is no limit. */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
  /** What the program started ends with it; without this, a pipe that they hold outlives any limit. */
  readonly group?: boolean;
  /** Values that must not appear in an error, should the program print them. */
  readonly secrets?: readonly string[];
};

export type ProcessResult = { readonly stdout: string; readonly stderr: string };

/**
 * Runs a program with a list of arguments (never a shell line) and waits for it.
 *
 * @throws ToolError `tool.missing` when there is no such program, `tool.timeout` past the limit,
 * `tool.failed` with the last lines of stderr on any other exit.
 */
export async function runProcess(
  file: string,
  args: readonly string[],
  options: ProcessOptions = {},
): Promise<ProcessResult> {
  try {
    const running = execa(file, args, {
      extendEnv: options.env === undefined,
      stdin: options.input === undefined ? 'ignore' : 'pipe',
      ...(options.env && { env: options.env }),
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      ...(options.input !== undefined && { input: options.input }),
      ...(options.timeout !== undefined && { timeout: options.timeout }),
      ...(options.signal && { cancelSignal: options.signal, gracefulCancel: false }),
      detached: options.group === true,
    });
    if (options.group)
      running.once('exit', () => {
        killGroup(running.pid);
      });
    const { stdout, stderr } = await running;
    return { stdout, stderr };
  } catch (error) {
    throw explain(file, error, options);
  }
}

function killGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if (!isErrno(error, 'ESRCH')) throw error; // nobody is left, as it should be
  }
}

function explain(file: string, error: unknown, options: ProcessOptions): unknown {
  if (!(error instanceof ExecaError) || error.isCanceled) return error;
  if (error.code === 'ENOENT') {
    return new ToolError('tool.missing', `program "${file}" is not installed or not executable`);
  }
  if (error.timedOut) {
    return new ToolError(
      'tool.timeout',
      `program "${file}" ran longer than ${options.timeout ?? 0} ms`,
    );
  }
  const stderr = typeof error.stderr === 'string' ? error.stderr : '';
  const lastLines = redact(stderr.trim().split('\n').slice(-12).join('\n'), options.secrets);
  const ending = error.signal ?? `exit code ${error.exitCode ?? '?'}`;
  return new ToolError('tool.failed', `program "${file}" ended with ${ending}: ${lastLines}`);
}
