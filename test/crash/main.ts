import { parseArgs } from 'node:util';
import { createRandom } from '../faults/random.ts';
import { follow, spoil, type Course } from './law.ts';
import { FAULTS, mayMeet, type Fault, type Step } from './steps.ts';
import { createCrashWorld } from './world.ts';

/*
 * Spoils each step of each command that writes: it is killed before it, and it fails.
 *
 *     npm run test:crash -- [--row TEXT] [--sample N] [--seed N] [--jobs N]
 *
 * With --sample, N steps of each row; without it, all.
 */

const { values } = parseArgs({
  options: {
    row: { type: 'string', default: '' },
    sample: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    jobs: { type: 'string', default: '2' },
  },
});

type Task = { readonly course: Course; readonly step: Step; readonly fault: Fault };

/** Another run does not come by every step at the same count: it is tried so many times. */
const TRIES = 4;

const seed = Number(values.seed);
const random = createRandom(seed);
const ends = new Map<string, Map<string, number>>();
let broken = 0;

const listTasks = (course: Course): Task[] =>
  course.steps.flatMap((step) =>
    FAULTS.filter((fault) => mayMeet(step, fault)).map((fault) => ({ course, step, fault })),
  );

function choose(tasks: Task[]): readonly Task[] {
  if (values.sample === undefined) return tasks;
  const chosen: Task[] = [];
  while (chosen.length < Number(values.sample) && tasks.length > 0) {
    chosen.push(...tasks.splice(random.below(tasks.length), 1));
  }
  return chosen;
}

async function judge({ course, step, fault }: Task): Promise<void> {
  const { name } = course.row;
  for (let attempt = 1; ; attempt++) {
    const { hit, end, problems } = await spoil(course, step, fault);
    if (hit === undefined && attempt < TRIES) continue;
    const counts = ends.get(name) ?? new Map<string, number>();
    ends.set(name, counts.set(`${fault} ${end}`, (counts.get(`${fault} ${end}`) ?? 0) + 1));
    if (problems.length === 0) return;
    broken++;
    console.log(`\nPROBLEM ${name}, ${fault} of ${step.call} ${step.nth}: ${hit ?? ''}`);
    for (const problem of problems) console.log(`  ${problem}`);
    return;
  }
}

async function main(): Promise<void> {
  console.log(`seed ${seed}`);
  const world = await createCrashWorld();
  try {
    for (const row of world.rows.filter(({ name }) => name.includes(values.row))) {
      const course = await follow(row, world.prepare(row)).catch((error: unknown) => {
        broken++;
        console.log(`\nPROBLEM ${String(error)}`);
      });
      if (!course) continue;
      const left = [...choose(listTasks(course))];
      const count = left.length;
      const work = async (): Promise<void> => {
        for (let task = left.pop(); task; task = left.pop()) await judge(task);
      };
      await Promise.all(Array.from({ length: Number(values.jobs) }, work));
      const list = [...(ends.get(row.name) ?? [])].map(([end, times]) => `${end}: ${times}`);
      console.log(
        `${row.name}: ${course.steps.length} steps, ${count} spoiled; ${list.join(', ')}`,
      );
    }
  } finally {
    await world.close();
  }
  console.log(broken === 0 ? 'the law holds' : `the law is broken ${broken} times`);
  process.exitCode = broken === 0 ? 0 : 1;
}

await main();
