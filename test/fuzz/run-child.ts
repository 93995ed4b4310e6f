import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bundle } from '../../scripts/bundle.ts';
import { bugPlugin, type OldBug } from './old-bugs.ts';
import type { ReaderName } from './seeds.ts';

/** The most processor time that one case may take. */
const CASE_SECONDS = 5;
/** For a case that waits for something that never comes, on a machine this busy. */
const CASE_WALL_SECONDS = 60;
/** What V8 may have, below the bound of the whole process. */
const HEAP_MIB = 400;
const TICKS = 100;

const BUILT = fileURLToPath(new URL('../built', import.meta.url));
const KEY = 'throw-away-key.pem';

/**
 * Builds the program of the children, with the key that the seeds are signed with beside it.
 *
 * @param bug what its sources get back
 */
export async function buildChild(bug?: OldBug): Promise<string> {
  const options = bug && { name: `child-${process.pid}`, plugins: [bugPlugin(bug)] };
  const { program } = await bundle('test/fuzz/child.ts', BUILT, options);
  copyFileSync(fileURLToPath(new URL(`../support/${KEY}`, import.meta.url)), join(BUILT, KEY));
  return program;
}

/** How a child ended. */
export type ChildEnd = {
  /** The case it was at: all before it were good. */
  readonly index: number;
  /** What went wrong, and with which bytes; absent when nothing did. */
  readonly failure?: string;
  readonly bytes?: Buffer;
};

/** Runs the built child below `directory` and watches the time of each case. */
export async function runChild(
  program: string,
  {
    reader,
    directory,
    args,
  }: {
    readonly reader: ReaderName;
    readonly directory: string;
    readonly args: readonly string[];
  },
): Promise<ChildEnd> {
  const own = join(directory, `${reader}-${process.pid}`);
  mkdirSync(own, { recursive: true });
  const [progress, current] = [join(own, 'progress'), join(own, 'current')];
  const child = spawn(
    process.execPath,
    [
      ...['--expose-gc', `--max-old-space-size=${HEAP_MIB}`, program, '--reader', reader],
      ...['--directory', own, '--progress', progress],
      ...['--current', current, ...args],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, TMPDIR: own } },
  );
  let told = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (piece: Buffer) => (told = (told + piece.toString()).slice(-6000)));
  }
  const ended = new Promise<string>((resolve) => {
    child.on('close', (code, signal) => {
      resolve(code === 0 ? '' : told.trim() || `ended with ${code ?? signal ?? ''}`);
    });
  });
  const hang = await watch({ pid: child.pid ?? 0, progress, ended });
  if (hang !== undefined) child.kill('SIGKILL');
  const failure = hang ?? (await ended);
  await ended;
  const { index, size } = readProgress(progress);
  if (failure !== '' && index < 0) throw new Error(`${reader} did not start: ${failure}`);
  const bytes = failure !== '' && existsSync(current) && readFileSync(current).subarray(0, size);
  rmSync(own, { recursive: true, force: true });
  return { index, ...(failure !== '' && { failure }), ...(bytes && { bytes }) };
}

type Watched = {
  readonly pid: number;
  readonly progress: string;
  readonly ended: Promise<string>;
};

/** Until it has ended, or one case took too long. */
async function watch({ pid, progress, ended }: Watched): Promise<string | undefined> {
  const state = { isOver: false };
  void ended.then(() => (state.isOver = true));
  let at = -1;
  let since = { cpu: 0, wall: Date.now() };
  while (!state.isOver) {
    await Promise.race([sleep(250), ended]);
    const { index } = readProgress(progress);
    const { cpu, isRunning } = readUse(pid);
    if (index !== at) {
      at = index;
      since = { cpu, wall: Date.now() };
    }
    if (at < 0) continue;
    if (isRunning) since.wall = Date.now(); // it waits for a processor only
    if (cpu - since.cpu > CASE_SECONDS) return `hang: more than ${CASE_SECONDS} s`;
    if (Date.now() - since.wall > CASE_WALL_SECONDS * 1000) return 'hang: it waits for ever';
  }
  return undefined;
}

/** Nothing before the first case. */
function readProgress(progress: string): { readonly index: number; readonly size: number } {
  const bytes = existsSync(progress) ? readFileSync(progress) : Buffer.alloc(0);
  if (bytes.length < 16) return { index: -1, size: 0 };
  return { index: bytes.readDoubleLE(), size: bytes.readDoubleLE(8) };
}

/** proc(5): seconds of its processor time and its state, behind the name in parentheses. */
function readUse(pid: number): { readonly cpu: number; readonly isRunning: boolean } {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
    return { cpu: (Number(fields[11]) + Number(fields[12])) / TICKS, isRunning: fields[0] === 'R' };
  } catch {
    return { cpu: 0, isRunning: false };
  }
}
