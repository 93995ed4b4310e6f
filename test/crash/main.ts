import { parseArgs } from 'node:util';
import { createRandom } from '../faults/random.ts';
import { follow, type Course } from './law.ts';
import type { Row } from './rows.ts';
import { describeProblem, judgeTask, listTasks, sampleTasks, type Task } from './tasks.ts';
import { createCrashWorld } from './world.ts';

/*
 * Spoils each step of each command that writes: it is killed before it, the power is cut, and it fails.
 *
 *     npm run test:crash -- [--row NAME] [--sample N] [--minutes N] [--seed N] [--jobs N]
 *                           [--step 'CALL NTH'] [--fault kill|cut|torn|EIO|ENOSPC|EMFILE]
 *
 * With --sample, N steps of each row; without it, all. With --minutes, the rows come in the order that
 * the seed gives, and none begins later. --row takes a part of names.
 */

const { values } = parseArgs({
  options: {
    row: { type: 'string', default: '' },
    sample: { type: 'string' },
    minutes: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    jobs: { type: 'string', default: '2' },
    step: { type: 'string' },
    fault: { type: 'string' },
  },
});

const random = createRandom(Number(values.seed));
let broken = 0;

function choose(course: Course): readonly Task[] {
  if (values.sample !== undefined) return sampleTasks(course, Number(values.sample), random);
  return listTasks(course).filter(
    ({ step, fault }) =>
      (values.step === undefined || values.step === `${step.call} ${step.nth}`) &&
      (values.fault === undefined || values.fault === fault),
  );
}

async function judgeCourse(course: Course): Promise<void> {
  const ends = new Map<string, number>();
  const left = [...choose(course)];
  const count = left.length;
  const work = async (): Promise<void> => {
    for (let task = left.pop(); task; task = left.pop()) {
      const verdict = await judgeTask(task);
      const end = `${task.fault}: ${verdict.end}`;
      ends.set(end, (ends.get(end) ?? 0) + 1);
      if (verdict.problems.length === 0) continue;
      broken++;
      console.log(`\nPROBLEM ${describeProblem(task, verdict)}`);
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  const list = [...ends].sort().map(([end, times]) => `${times} x ${end}`);
  const { row, steps } = course;
  console.log(`${row.name}: ${steps.length} steps, ${count} spoiled; ${list.join(', ')}`);
}

/** The rows in the order of the table, or in a random one. */
function order(rows: readonly Row[]): readonly Row[] {
  const left = rows.filter(({ name }) => name.includes(values.row));
  if (values.minutes === undefined) return left;
  return left
    .map((row) => ({ row, key: random.below(2 ** 31) }))
    .sort((a, b) => a.key - b.key)
    .map(({ row }) => row);
}

async function main(): Promise<void> {
  console.log(`seed ${values.seed}`);
  const end = performance.now() + Number(values.minutes ?? Infinity) * 60_000;
  const world = await createCrashWorld();
  const rows = order(world.rows);
  let tried = 0;
  try {
    for (const row of rows) {
      if (performance.now() > end) break;
      tried++;
      try {
        await judgeCourse(await follow(row, world.prepare(row)));
      } catch (error) {
        broken++;
        console.log(`\nPROBLEM ${String(error)}`);
      }
    }
  } finally {
    await world.close();
  }
  const verdict = broken === 0 ? 'the law holds' : `the law is broken ${broken} times`;
  console.log(`${tried} of ${rows.length} commands: ${verdict}`);
  process.exitCode = broken === 0 ? 0 : 1;
}

await main();
