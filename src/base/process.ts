import { ToolError, isErrno } from './errors.ts';
import { withoutUndefined } from './lists.ts';
import { explainStart } from './program-start.ts';
import { redactAddresses } from './text/redact.ts';
import { formatDuration } from './text/words.ts';
import { startTimer, untilAborted, type Timer } from './wait.ts';

export type ProcessOptions = {
  readonly cwd?: string;
  /** The whole environment of the child: nothing is inherited. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Milliseconds; 0 or absent means no limit. */
  readonly timeout?: number;
  /** Characters of stdout and of stderr, each; default 64 Mi. More ends the program. */
  readonly maxOutput?: number;
  readonly signal?: AbortSignal;
  /** Called with all the output of a program that failed, before any of it goes into an error. */
  readonly onFailure?: (output: string, exitCode: number | undefined) => void;
  /** The part of a failed program's output that an error may show; default: the last lines of stderr. */
  readonly shownOutput?: (output: string) => string;
  /** Name of the program in errors; default: its file. */
  readonly shownAs?: string;
};

export type ProcessResult = { readonly stdout: string; readonly stderr: string };

/** Milliseconds between SIGTERM and SIGKILL. */
const KILL_DELAY = 1000;

const MAX_OUTPUT = 64 << 20;

/** Leaders of the process groups that run now; they end with this process, regardless of how it ends. */
const groups = new Set<number>();
process.on('exit', () => {
  for (const leader of groups) killGroup(leader, 'SIGKILL');
});

/**
 * Runs a program with a list of arguments (never a shell line) and waits for it. Processes that it
 * started end with it. An abort or a timeout sends SIGTERM to all of them, and SIGKILL a second
 * later; after that nothing is waited for.
 *
 * @throws ToolError `tool.missing` if there is no such program, `tool.not-executable`, `tool.timeout` past the limit,
 * `tool.failed` with the last lines of stderr on any other exit, `tool.output-too-large`; the
 * signal's reason
 */
export async function runProcess(
  file: string,
  args: readonly string[],
  options: ProcessOptions = {},
): Promise<ProcessResult> {
  const { maxOutput: maxBuffer = MAX_OUTPUT, shownAs = file } = options;
  const { execa } = await import('execa');
  options.signal?.throwIfAborted();
  const running = execa(file, args, {
    extendEnv: options.env === undefined,
    stdin: options.input === undefined ? 'ignore' : 'pipe',
    ...(options.env && { env: options.env }),
    ...withoutUndefined({ cwd: options.cwd, input: options.input }),
    maxBuffer,
    detached: true, // its own process group
  });
  const ending = guard(running, shownAs, options);
  try {
    const { stdout, stderr } = await untilAborted(running, ending.signal);
    ending.throwIfStopped();
    return { stdout, stderr };
  } catch (error) {
    ending.throwIfStopped();
    throw await explain(file, error, options);
  } finally {
    ending.forget();
  }
}

const VERSION_TIMEOUT = 30_000;

/** The output of a program with `--version`; undefined if the program is not in PATH, or cannot run here. */
export async function findVersion(
  program: string,
  { PATH, signal }: { readonly PATH: string | undefined; readonly signal: AbortSignal },
): Promise<string | undefined> {
  if (PATH === undefined) return undefined;
  try {
    const options = { env: { PATH }, timeout: VERSION_TIMEOUT, signal };
    return (await runProcess(program, ['--version'], options)).stdout;
  } catch (error) {
    if (error instanceof ToolError) return undefined;
    throw error;
  }
}

type Ending = {
  /** Aborted when the wait must end, even if another process still holds the pipes. */
  readonly signal: AbortSignal;
  /** Throws the reason for which the program was stopped, if it was stopped. */
  readonly throwIfStopped: () => void;
  readonly forget: () => void;
};

function guard(
  running: { readonly pid?: number; once: (event: 'exit', listener: () => void) => unknown },
  file: string,
  { signal, timeout = 0 }: ProcessOptions,
): Ending {
  const { pid } = running;
  const end = new AbortController();
  let stopped: { readonly reason: unknown } | undefined;
  let killer: Timer | undefined;
  const stop = (reason: unknown): void => {
    if (stopped) return;
    stopped = { reason };
    killGroup(pid, 'SIGTERM');
    killer = startTimer(KILL_DELAY, () => {
      killGroup(pid, 'SIGKILL');
      end.abort(reason);
    });
  };
  const onAbort = (): void => {
    stop(signal?.reason);
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  const limit =
    timeout === 0
      ? undefined
      : startTimer(timeout, () => {
          stop(late(file, timeout));
        });
  if (pid !== undefined) groups.add(pid);
  running.once('exit', () => {
    killGroup(pid, 'SIGKILL'); // processes that it left behind would hold its pipes
    if (pid !== undefined) groups.delete(pid);
  });
  return {
    signal: end.signal,
    throwIfStopped() {
      if (stopped) throw stopped.reason;
    },
    forget() {
      signal?.removeEventListener('abort', onAbort);
      limit?.stop();
      killer?.stop();
    },
  };
}

const late = (file: string, timeout: number): ToolError =>
  new ToolError('tool.timeout', `program "${file}" ran longer than ${formatDuration(timeout)}`);

function killGroup(leader: number | undefined, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, signal);
  } catch (error) {
    if (!isErrno(error, 'ESRCH')) throw error; // no process is left, as it should be
  }
}

async function explain(
  program: string,
  error: unknown,
  { shownAs: file = program, ...options }: ProcessOptions,
): Promise<unknown> {
  const { ExecaError } = await import('execa');
  if (!(error instanceof ExecaError)) return error;
  const env = options.env ?? process.env;
  const start = await explainStart(error, { file: program, shownAs: file, env });
  if (start) return start;
  if (error.isMaxBuffer) {
    const limit = options.maxOutput ?? MAX_OUTPUT;
    return new ToolError(
      'tool.output-too-large',
      `program "${file}" printed more than ${limit} characters`,
    );
  }
  return explainEnding(error, file, options);
}

type Ended = {
  readonly stdout?: unknown;
  readonly stderr?: unknown;
  readonly signal?: string;
  readonly exitCode?: number;
};

function explainEnding(
  { stdout, stderr, signal, exitCode }: Ended,
  file: string,
  { onFailure, shownOutput }: ProcessOptions,
): ToolError {
  const output = `${String(stdout)}\n${String(stderr)}`;
  onFailure?.(output, exitCode);
  const shown = shownOutput?.(output) ?? lastLines(stderr);
  const ending = signal ?? `exit code ${exitCode ?? '?'}`;
  const said = shown === '' ? '' : `: ${redactAddresses(shown)}`;
  return new ToolError('tool.failed', `program "${file}" ended with ${ending}${said}`);
}

const lastLines = (stderr: unknown): string =>
  (typeof stderr === 'string' ? stderr.trim() : '').split('\n').slice(-12).join('\n');
