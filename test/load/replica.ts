import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SEALIFT = fileURLToPath(new URL('../../dist/cli/start.cjs', import.meta.url));

/** `--drain`, in milliseconds. */
export const DRAIN_MS = 30_000;

/** A process of `sealift serve`. */
export type Replica = {
  readonly process: ChildProcess;
  readonly port: number;
  /** When it was started, by `performance.now()`. */
  readonly since: number;
  /** Set when it was told to end. */
  readonly ending: { readonly signal: 'SIGKILL' | 'SIGTERM'; readonly since: number } | undefined;
  /** Sends the signal; resolves with the exit code, or the signal that ended it. */
  readonly end: (signal: 'SIGKILL' | 'SIGTERM') => Promise<number | string>;
  /** What it said on standard error, without what it always says. */
  readonly said: readonly string[];
};

/** @throws Error with what it said, when it ends before it serves */
export async function startReplica(directory: string, args: readonly string[]): Promise<Replica> {
  const since = performance.now();
  const words = ['serve', '--listen', '127.0.0.1:0', '--drain', `${DRAIN_MS / 1000}s`, ...args];
  const child = spawn(process.execPath, [SEALIFT, ...words], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: directory, CI: 'true' },
  });
  const said: string[] = [];
  let ending: Replica['ending'];
  // 'close' comes when its last words are read, too.
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  const port = await new Promise<number>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      const [, serving] = /^serving on https?:\/\/127\.0\.0\.1:(\d+);/.exec(line) ?? [];
      if (serving !== undefined) resolve(Number(serving));
      else if (!/^draining: |^sealift was interrupted/.test(line)) said.push(line);
    });
    void exited.then((code) => {
      reject(new Error(`sealift serve ended with ${code}: ${said.join('\n')}`));
    });
  });
  void exited.then((code) => {
    if (!ending) console.log(`a replica ended by itself (${code}): ${said.slice(-20).join('\n')}`);
  });
  return {
    process: child,
    port,
    since,
    said,
    get ending() {
      return ending;
    },
    async end(signal) {
      ending = { signal, since: performance.now() };
      child.kill(signal);
      return exited;
    },
  };
}

/** What its open files are: paths, and `socket:[...]`. */
export function listOpenFiles({ process: { pid = 0 } }: Replica): readonly string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(`${folder}/${name}`)];
    } catch {
      return []; // closed meanwhile
    }
  });
}
