import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SEALIFT = fileURLToPath(new URL('../../dist/cli/start.cjs', import.meta.url));

/** Longer than any build of this world and any wait of `--retry-for` takes on a busy machine. */
const HANG_MS = 120_000;

/** Exit codes of foreseen failures (docs/exit-codes.md); 1 is a bug, 2 a mistake of this run. */
const FORESEEN: ReadonlySet<number> = new Set([3, 4, 5, 7, 130, 143]);

export type KillSignal = 'SIGINT' | 'SIGTERM' | 'SIGKILL';

/** When a build is killed, and how; `twice` sends the signal again at once. */
export type Kill = {
  readonly signal: KillSignal;
  readonly afterMs: number;
  readonly twice: boolean;
};

export type Attempt = {
  readonly kind: 'done' | 'failed' | 'killed' | 'hung' | 'uncoded';
  /** `0`, `4 registry.unavailable`, `SIGKILL`, ... */
  readonly end: string;
  /** From SIGINT or SIGTERM to the end, in milliseconds. */
  readonly endedAfterMs?: number;
  readonly stderr: string;
};

/** Runs one build in a folder until it ends, is killed, or hangs. */
export async function attemptBuild(folder: string, kill: Kill | undefined): Promise<Attempt> {
  const child = spawn(
    process.execPath,
    // Places of an earlier output would stay, and a quiet build has none to keep.
    [SEALIFT, 'build', 'live-iso', '--output', 'out.iso', '--fresh-layout', '--retry-for', '10s'],
    {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: folder, CI: 'true' },
    },
  );
  let stderr = '';
  child.stderr.on('data', (piece: Buffer) => (stderr += piece.toString()));
  const ended = new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.on('close', (code, signal) => {
      resolve([code, signal]);
    });
  });
  let killedAt: number | undefined;
  const killer =
    kill &&
    setTimeout(() => {
      killedAt = performance.now();
      child.kill(kill.signal);
      if (kill.twice) child.kill(kill.signal);
    }, kill.afterMs);
  const watched = { isHung: false };
  const watch = setTimeout(() => {
    watched.isHung = true;
    child.kill('SIGKILL');
  }, HANG_MS);
  const [code, signal] = await ended;
  clearTimeout(killer);
  clearTimeout(watch);
  if (watched.isHung) return { kind: 'hung', end: 'hung', stderr };
  const waited = kill?.signal === 'SIGKILL' ? undefined : killedAt;
  const endedAfterMs = waited === undefined ? undefined : performance.now() - waited;
  return {
    ...classify(code, signal, stderr),
    stderr,
    ...(endedAfterMs !== undefined && { endedAfterMs }),
  };
}

function classify(
  code: number | null,
  signal: NodeJS.Signals | null,
  stderr: string,
): Pick<Attempt, 'kind' | 'end'> {
  if (code === null) return { kind: 'killed', end: signal ?? 'a signal' };
  if (code === 0) return { kind: 'done', end: '0' };
  const name = /^error: [^]*?\[([a-z0-9.-]+)\]$/m.exec(stderr)?.[1];
  const isInterrupt = code === 130 || code === 143;
  const isCoded = FORESEEN.has(code) && (isInterrupt || name !== undefined);
  const hasStack = /^\s+at .*:\d+:\d+\)?$/m.test(stderr);
  if (!isCoded || hasStack) return { kind: 'uncoded', end: String(code) };
  return { kind: isInterrupt ? 'killed' : 'failed', end: `${code} ${name ?? ''}`.trim() };
}
