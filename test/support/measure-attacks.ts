import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SealiftError } from '../../src/base/errors.ts';
import { FILE_ATTACKS, Refused } from '../hostile/file-attacks.ts';
import { TEXT_ATTACKS } from '../hostile/text-attacks.ts';
import { forget, takePeak } from './peak-memory.ts';

/*
 * Runs attacks, one a line of standard input as `[title, size]`, in one process, and writes what each cost as
 * a line of JSON.
 */

const ATTACKS = { ...TEXT_ATTACKS, ...FILE_ATTACKS };

/** What one attack cost. */
export type Cost = {
  readonly title: string;
  readonly size: number;
  /** Seconds of processor time, of all threads. */
  readonly seconds: number;
  /** MiB that the process had in memory at most, and how much that was more than before. */
  readonly memory: number;
  readonly more: number;
  /** 0 if the input was accepted. */
  readonly exitCode: number;
  readonly code: string;
};

async function measure(title: string, size: number): Promise<Cost> {
  const folder = mkdtempSync(join(tmpdir(), 'sealift-attack-'));
  try {
    const run = await ATTACKS[title]?.prepare(size, folder);
    await forget();
    takePeak();
    const before = process.memoryUsage.rss() / 2 ** 20;
    const began = process.cpuUsage();
    const outcome = await outcomeOf(() => run?.());
    const { user, system } = process.cpuUsage(began);
    const memory = takePeak();
    const seconds = (user + system) / 1e6;
    return { title, size, seconds, memory, more: memory - before, ...outcome };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function outcomeOf(work: () => unknown): Promise<Pick<Cost, 'exitCode' | 'code'>> {
  try {
    await work();
    return { exitCode: 0, code: '' };
  } catch (error) {
    if (error instanceof SealiftError) return { exitCode: error.exitCode, code: error.code };
    if (error instanceof Refused) return { exitCode: error.exitCode, code: error.message };
    return { exitCode: 1, code: String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const [title, size] = JSON.parse(line) as [string, number];
  process.stdout.write(`${JSON.stringify(await measure(title, size))}\n`);
}
