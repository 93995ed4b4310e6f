import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from '../../scripts/bundle.ts';
import type { Cost } from '../support/measure-attacks.ts';
import { FILE_ATTACKS } from './file-attacks.ts';
import { TEXT_ATTACKS } from './text-attacks.ts';

const BUILT = fileURLToPath(new URL('../built', import.meta.url));

/** The bounds of the largest run: times the work of `yardstick.ts`, and MiB more than before. */
const EFFORT = 50;
const MEMORY = 200;
/** Four times the input may take this many times as long; work under the floor is not measured well. */
const GROWTH = 12;
const FLOOR = 15;
const PATIENCE_MS = 60_000;

/** The process that runs the attacks, one after the other. */
function startAttacker(program: string) {
  const child = spawn(process.execPath, ['--expose-gc', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.on('error', () => undefined); // it ended: the answers are missing too
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, answers, ended: once(child, 'exit') };
}

type Attacker = ReturnType<typeof startAttacker>;

/** Costs of an attack at N and at 4N; fewer where the process ended instead. */
async function measure({ child, answers }: Attacker, title: string, size: number): Promise<Cost[]> {
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  const costs: Cost[] = [];
  for (const times of [1, 4]) {
    child.stdin.write(`${JSON.stringify([title, times * size])}\n`);
    const answer = await answers.next();
    if (answer.done === true) break;
    costs.push(JSON.parse(answer.value) as Cost);
  }
  clearTimeout(timer);
  return costs;
}

function formatCosts(title: string, costs: readonly Cost[]): string {
  const efforts = costs.map((cost) => cost.effort.toFixed(1)).join(' / ');
  const memory = Math.max(...costs.map(({ more }) => more)).toFixed(0);
  const ends = [...new Set(costs.map(({ exitCode, code }) => `${exitCode} ${code}`.trim()))];
  return `${title.padEnd(58)} ${efforts}  +${memory} MiB  ${ends.join(', ')}`;
}

/** `ATTACK_TABLE=1` prints what each attack costs. */
const isPrinted = process.env['ATTACK_TABLE'] !== undefined;

describe('a hostile input takes time in proportion to its size, and ends with a code', () => {
  let program: string;
  let attacker: Attacker;
  const lines: string[] = [];
  beforeAll(async () => {
    ({ program } = await bundle('test/support/measure-attacks.ts', BUILT));
    attacker = startAttacker(program);
  });
  afterAll(async () => {
    attacker.child.stdin.end();
    await attacker.ended; // else its processor time is not counted
    if (isPrinted) process.stdout.write(`${lines.join('\n')}\n`);
  });

  it.each(Object.entries({ ...TEXT_ATTACKS, ...FILE_ATTACKS }))('%s', async (title, { size }) => {
    const costs = await measure(attacker, title, size);
    if (costs.length < 2) attacker = startAttacker(program);
    lines.push(formatCosts(title, costs));
    expect(costs).toHaveLength(2);
    expect(costs.filter(({ exitCode }) => exitCode === 1 || exitCode > 9)).toEqual([]);
    expect(costs.filter(({ effort }) => effort > EFFORT)).toEqual([]);
    expect(costs.filter(({ more }) => more > MEMORY)).toEqual([]);
    const [first, last] = costs.map(({ effort }) => effort);
    expect(last).toBeLessThan(Math.max(FLOOR, GROWTH * (first ?? 0)));
  });
});
