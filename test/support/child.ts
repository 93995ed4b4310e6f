import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { requireNoCanary, requireNoCanaryResult } from './canaries.ts';
import { requireEvents } from './events.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/start.cjs', import.meta.url));
/** This machine's own registries.conf has no say in a test. */
const NO_MIRRORS = {
  CONTAINERS_REGISTRIES_CONF: '',
  REGISTRIES_CONFIG_PATH: '',
  XDG_CONFIG_HOME: fileURLToPath(new URL('no-mirrors', import.meta.url)),
};

export type Child = {
  readonly process: ChildProcess;
  readonly ended: Promise<{
    readonly code: number | null;
    readonly stderr: string;
    readonly stdout: string;
  }>;
};

type Stdio = 'pipe' | number;

/** The built program as a process of its own. */
export function startSealift(
  args: readonly string[],
  options: {
    readonly cwd: string;
    readonly env?: NodeJS.ProcessEnv;
    /** Where output and progress go; they are collected unless told. */
    readonly outputs?: readonly [stdout: Stdio, stderr: Stdio];
    /** In octal digits; default: that of the test. */
    readonly umask?: string;
    /** A program and its arguments that runs ours, such as strace(1). */
    readonly under?: readonly string[];
  },
): Child {
  const [out, progress] = options.outputs ?? ['pipe', 'pipe'];
  const { umask, under = [] } = options;
  const program = [...under, process.execPath, MAIN, ...args];
  const words =
    umask === undefined ? program : ['sh', '-c', `umask ${umask}; exec "$0" "$@"`, ...program];
  const [file = '', ...rest] = words;
  const child = spawn(file, rest, {
    cwd: options.cwd,
    env: { ...process.env, ...NO_MIRRORS, HOME: options.cwd, CI: 'true', ...options.env },
    stdio: ['ignore', out, progress],
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (piece: Buffer) => (stdout += piece.toString()));
  child.stderr?.on('data', (piece: Buffer) => (stderr += piece.toString()));
  const ended = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    stdout: requireNoCanaryResult(args, stdout),
    stderr: requireNoCanary(requireEvents(stderr)),
  }));
  return { process: child, ended };
}

/** What `sealift serve` says on standard error once it listens. */
export async function readServingUrl({ process: child }: Child): Promise<string> {
  if (!child.stderr) throw new Error('standard error is not piped');
  const lines = createInterface({ input: child.stderr });
  const ended = once(child, 'exit').then(() => {
    throw new Error('sealift serve ended');
  });
  ended.catch(() => undefined);
  const serving = (async () => {
    for await (const line of lines) {
      const [, url] = /^serving on (\S+);/.exec(line) ?? [];
      if (url !== undefined) return url;
    }
    throw new Error('sealift serve said no address');
  })();
  return await Promise.race([serving, ended]);
}
