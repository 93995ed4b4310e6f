import type { Random } from '../faults/random.ts';
import { spoil, type Course, type Verdict } from './law.ts';
import { mayCutPower } from './copies.ts';
import { FAULTS, isCut, mayMeet, type Fault, type Step } from './steps.ts';

/** One step of one command, and what happens to it. */
export type Task = { readonly course: Course; readonly step: Step; readonly fault: Fault };

/** Another run does not come by every step at the same count: it is tried so many times. */
const TRIES = 4;

/** The faults that this process may bring about. */
const POSSIBLE = mayCutPower() ? FAULTS : FAULTS.filter((fault) => !isCut(fault));

export const listTasks = (course: Course): readonly Task[] =>
  course.steps.flatMap((step) =>
    POSSIBLE.filter((fault) => mayMeet(step, fault)).map((fault) => ({ course, step, fault })),
  );

/** Chooses tasks of a command: first the call, so that a thousand writes do not hide one rename. */
export function sampleTasks(course: Course, count: number, random: Random): readonly Task[] {
  const left = new Map<string, Task[]>();
  for (const task of listTasks(course)) {
    const key = `${task.step.call} ${task.fault}`;
    left.set(key, [...(left.get(key) ?? []), task]);
  }
  const chosen: Task[] = [];
  while (chosen.length < count && left.size > 0) {
    const [key = '', tasks = []] = [...left][random.below(left.size)] ?? [];
    chosen.push(...tasks.splice(random.below(tasks.length), 1));
    if (tasks.length === 0) left.delete(key);
  }
  return chosen;
}

/** Spoils a step, again if the run did not come by it. */
export async function judgeTask({ course, step, fault }: Task): Promise<Verdict> {
  for (let attempt = 1; ; attempt++) {
    const verdict = await spoil(course, step, fault);
    if (verdict.hit !== undefined || attempt === TRIES) return verdict;
  }
}

/** A problem with what repeats it. */
export const describeProblem = (
  { course, step, fault }: Task,
  { hit = '', problems }: Verdict,
): string =>
  [
    `${course.row.name}: ${fault} at ${hit}`,
    ...problems.map((problem) => `  ${problem}`),
    `  repeat: npm run test:crash -- --row '${course.row.name}' --step '${step.call} ${step.nth}' --fault ${fault}`,
  ].join('\n');
