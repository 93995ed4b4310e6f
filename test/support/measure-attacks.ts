import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SealiftError } from '../../src/base/errors.ts';
import { FILE_ATTACKS, Refused } from '../hostile/file-attacks.ts';
import { TEXT_ATTACKS } from '../hostile/text-attacks.ts';
import { beginEffort, type Effort } from './yardstick.ts';

/*
 * Runs attacks, one a line of standard input as `[title, size]`, in one process, and writes what each cost as
 * a line of JSON.
 */

const ATTACKS = { ...TEXT_ATTACKS, ...FILE_ATTACKS };

/** What one attack cost. */
export type Cost = Effort & {
  readonly title: string;
  readonly size: number;
  /** MiB by which the most memory was more than before. */
  readonly more: number;
  /** 0 if the input was accepted. */
  readonly exitCode: number;
  readonly code: string;
};

async function measure(title: string, size: number): Promise<Cost> {
  const folder = mkdtempSync(join(tmpdir(), 'sealift-attack-'));
  try {
    const run = await ATTACKS[title]?.prepare(size, folder);
    const end = await beginEffort();
    const before = process.memoryUsage.rss() / 2 ** 20;
    const outcome = await outcomeOf(() => run?.());
    const cost = end();
    return { title, size, ...cost, more: cost.memory - before, ...outcome };
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
