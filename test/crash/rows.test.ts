import { randomInt } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRandom, type Random } from '../faults/random.ts';
import { requireTool } from '../support/tools.ts';
import { follow } from './law.ts';
import { describeProblem, judgeTask, sampleTasks } from './tasks.ts';
import { createCrashWorld, type CrashWorld } from './world.ts';

const hasTools = ['strace', 'docker-registry', 'genisoimage', 'isohybrid', 'openssl']
  .map(requireTool)
  .every(Boolean);

/** Milliseconds after which no other command is tried; the long form is `npm run test:crash`. */
const BUDGET = 15_000;
const STEPS = 3;

/** Whether this process may trace others; in CI it must. */
function mayTrace(): boolean {
  if (spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status === 0) return true;
  if (process.env['CI'] === 'true') throw new Error('CI needs the right to trace processes');
  console.warn('crash tests are skipped: this process may not trace others');
  return false;
}

describe.skipIf(!hasTools || !mayTrace())('a command that writes', () => {
  let world: CrashWorld;
  let random: Random;
  beforeAll(async () => {
    const seed = process.env['SEALIFT_CRASH_SEED'] ?? String(randomInt(2 ** 31));
    console.log(`crash tests run with SEALIFT_CRASH_SEED=${seed}`);
    random = createRandom(Number(seed));
    world = await createCrashWorld();
  });
  afterAll(() => world.close());

  it('leaves old or new bytes wherever it is killed or fails, and ends when it runs again', async () => {
    const started = performance.now();
    const rows = [...world.rows];
    const problems: string[] = [];
    while (rows.length > 0 && performance.now() - started < BUDGET) {
      const [row] = rows.splice(random.below(rows.length), 1);
      if (!row) break;
      const course = await follow(row, world.prepare(row));
      const judged = sampleTasks(course, STEPS, random).map(async (task) => {
        const verdict = await judgeTask(task);
        if (verdict.problems.length > 0) problems.push(describeProblem(task, verdict));
        return verdict.hit === undefined ? 0 : 1;
      });
      await Promise.all(judged);
    }
    expect(problems).toEqual([]);
  });
});
