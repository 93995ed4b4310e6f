import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { bundle } from '../scripts/bundle.ts';
import type { RequestCounts } from './count-requests.ts';
import type { PublishedOperators, Served, SourceShape } from './source-shape.ts';

export const SEALIFT = fileURLToPath(new URL('../dist/cli/start.cjs', import.meta.url));
const MEASURE = new URL('./measure.mjs', import.meta.url).href;

/** What the kernel counted for one process. */
export type Measures = {
  readonly writtenBytes: number;
  readonly readBytes: number;
  readonly peakRssMiB: number;
  readonly userSeconds: number;
  readonly systemSeconds: number;
};

export type Timed = { readonly seconds: number; readonly stdout: string };

/** Runs a program to its end and takes the wall time; its standard error is shown when it fails. */
export async function run(
  file: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Timed> {
  const started = performance.now();
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([
    collect(child.stdout),
    collect(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  const seconds = (performance.now() - started) / 1000;
  if (code === 0) return { seconds, stdout };
  throw new Error(
    `${file} ${args.join(' ')} ended with ${code ?? 'a signal'}:\n${stderr.slice(-3000)}`,
  );
}

/** A shell line: the reference chain is one of shell commands. */
export const shell = (line: string, cwd: string): Promise<Timed> =>
  run('/bin/bash', ['-euo', 'pipefail', '-c', line], { cwd });

async function collect(stream: NodeJS.ReadableStream | null): Promise<string> {
  let text = '';
  if (stream) for await (const piece of stream) text += String(piece);
  return text;
}

export type MeasuredRun = Timed & { readonly measures: Measures };

/** Runs sealift with the kernel's counters taken at its end. */
export const runSealift = (args: readonly string[], cwd: string): Promise<MeasuredRun> =>
  runMeasured(SEALIFT, args, cwd);

const bundles = new Map<string, Promise<string>>();

/** A script of this folder as the program is made: one file, so that its memory is that of the program. */
export async function bundleBench(name: string): Promise<string> {
  const folder = fileURLToPath(new URL('built', import.meta.url));
  const path =
    bundles.get(name) ?? bundle(`bench/${name}.ts`, folder).then(({ program }) => program);
  bundles.set(name, path);
  return path;
}

/** Runs a script of Node with the kernel's counters taken at its end. */
export async function runMeasured(
  script: string,
  args: readonly string[],
  cwd: string,
): Promise<MeasuredRun> {
  const file = `${cwd}/measures.json`;
  rmSync(file, { force: true });
  const timed = await run(process.execPath, ['--import', MEASURE, script, ...args], {
    cwd,
    env: { SEALIFT_BENCH_MEASURE: file, CI: 'true' },
  });
  return { ...timed, measures: JSON.parse(readFileSync(file, 'utf8')) as Measures };
}

export type Payload = {
  readonly host: string;
  readonly version: string;
  readonly pullspec: string;
  /** Where the shape has them. */
  readonly operators?: PublishedOperators;
  readonly payloadSize: number;
  readonly blobs: readonly { readonly digest: string; readonly size: number }[];
  readonly images: readonly { readonly name: string; readonly digest: string }[];
};

export type Source = Payload & {
  readonly bytesServed: () => Promise<Served>;
  /** What was asked since the last call. */
  readonly takeRequests: () => Promise<RequestCounts>;
  /** Writes every blob into a folder. */
  readonly dump: (folder: string) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Starts the source registry in a process of its own. */
export async function startSource(shape: SourceShape): Promise<Source> {
  const file = fileURLToPath(new URL('./source.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', file, JSON.stringify(shape)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async (): Promise<string> => {
    const line = await lines.next();
    if (line.done === true) throw new Error('the source registry ended');
    return line.value;
  };
  const payload = JSON.parse(await read()) as Payload;
  return {
    ...payload,
    async bytesServed() {
      child.stdin.write('bytes\n');
      return JSON.parse(await read()) as Served;
    },
    async takeRequests() {
      child.stdin.write('requests\n');
      return JSON.parse(await read()) as RequestCounts;
    },
    async dump(folder) {
      mkdirSync(folder, { recursive: true });
      child.stdin.write(`dump ${folder}\n`);
      await read();
    },
    stop: () => stop(child),
  };
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'close');
}

/** Runs the bare reader over all blobs of a source. */
export async function readBare(
  source: Source,
  options: { readonly directory: string; readonly connections: number; readonly ca?: string },
): Promise<{ readonly wallSeconds: number; readonly cpuSeconds: number }> {
  const { directory, connections, ca } = options;
  const list = `${directory}/blobs.json`;
  writeFileSync(list, JSON.stringify(source.blobs));
  const reader = fileURLToPath(new URL('./reader.ts', import.meta.url));
  const origin = `${ca === undefined ? 'http' : 'https'}://${source.host}`;
  const args = ['--import', 'tsx', reader, origin, String(connections), list];
  const { stdout } = await run(process.execPath, ca === undefined ? args : [...args, ca]);
  const [wallSeconds = NaN, cpuSeconds = NaN] = stdout.trim().split(' ').map(Number);
  return { wallSeconds, cpuSeconds };
}
