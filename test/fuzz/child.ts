import { openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { SealiftError } from '../../src/base/errors.ts';
import { createRandom } from '../faults/random.ts';
import { unpackCase } from './kept-case.ts';
import { makeCase } from './make-case.ts';
import { BugFound, readerOf } from './readers.ts';
import type { ReaderName } from './seeds.ts';

/*
 * Reads one mutated file after the other with one reader, then the files that are named. Before each it writes the case and its number to files, so that the parent knows which one
 * it was when this process hangs, dies or is killed. Ends with 0, or with 70 behind a failure on stdout.
 */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    reader: { type: 'string' },
    directory: { type: 'string' },
    progress: { type: 'string' },
    current: { type: 'string' },
    seed: { type: 'string', default: '0' },
    first: { type: 'string', default: '0' },
    /** Until both are over. */
    seconds: { type: 'string', default: '0' },
    count: { type: 'string', default: '0' },
  },
});

const FAILED = 70;
/** The most that one case may take. */
const MEMORY_MIB = 500;

const { reader: name = '', directory = '', progress = '', current = '' } = values;
const reader = readerOf(name as ReaderName);
const progressFile = openSync(progress, 'w');
const currentFile = openSync(current, 'w');
const cell = Buffer.alloc(16);

/** Which case is next, and its bytes: those of a longer one before it stay behind them. */
function note(index: number, bytes: Uint8Array): void {
  writeSync(currentFile, bytes, 0, bytes.length, 0);
  cell.writeDoubleLE(index);
  cell.writeDoubleLE(bytes.length, 8);
  writeSync(progressFile, cell, 0, cell.length, 0);
}

/** Peak of the resident memory in MiB since it was reset (proc(5), clear_refs). */
function takePeak(): number {
  const [, peak = '0'] = /VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'latin1')) ?? [];
  writeFileSync('/proc/self/clear_refs', '5');
  return Number(peak) / 1024;
}

const fail = (what: string): never => {
  writeSync(1, `${what.slice(0, 4000)}\n`);
  process.exit(FAILED);
};

for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    fail(`uncaught: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  });
}

/** Whether the program would print an error with a code: one is in the chain of causes. */
function isForeseen(error: unknown): boolean {
  for (let link = error, depth = 0; depth < 16; depth++) {
    if (link instanceof SealiftError) return true;
    if (!(link instanceof Error)) return false;
    link = link.cause;
  }
  return false;
}

async function read(bytes: Buffer, turn: number): Promise<void> {
  try {
    await reader.read(bytes, { directory, turn });
  } catch (error) {
    if (isForeseen(error)) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    fail(error instanceof BugFound ? error.message : `uncoded: ${text}`);
  }
}

/** Every hundredth time and where memory is high, garbage is not the reader's. */
function checkMemory(index: number, isAlone: boolean): void {
  if (!isAlone && index % 100 === 0) global.gc?.();
  const peak = takePeak();
  if (peak > MEMORY_MIB) fail(`memory: ${Math.round(peak)} MiB`);
}

async function readMany(): Promise<void> {
  const seeds = await reader.seeds();
  const end = Date.now() + Number(values.seconds) * 1000;
  const first = Number(values.first);
  for (let index = first; Date.now() < end || index < first + Number(values.count); index++) {
    const random = createRandom((Number(values.seed) + index * 7919) >>> 0);
    const bytes = makeCase({ seeds, shape: reader.shape, random });
    note(index, bytes);
    await read(bytes, index);
    checkMemory(index, false);
  }
}

await readMany();
for (const [index, line] of positionals.entries()) {
  const [path = '', turn = '0'] = line.split('#');
  const bytes = unpackCase(readFileSync(path));
  note(index, bytes);
  await read(bytes, Number(turn));
  checkMemory(index, true);
}
process.exit(0);
