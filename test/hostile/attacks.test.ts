import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from '../../scripts/bundle.ts';
import type { Cost } from '../support/measure-attacks.ts';
import { FILE_ATTACKS } from './file-attacks.ts';
import { TEXT_ATTACKS } from './text-attacks.ts';

const BUILT = fileURLToPath(new URL('../built', import.meta.url));

/** The bounds of the largest run: seconds of the processor, and MiB more than before. */
const SECONDS = 1;
const MEMORY = 200;
/** Four times the input may take this many times as long; work under the floor is not measured well. */
const GROWTH = 10;
const FLOOR = 0.3;

/** Costs of an attack at N, 2N and 4N, in a process of its own. */
async function measure(program: string, title: string, size: number): Promise<readonly Cost[]> {
  const child = spawn(process.execPath, ['--expose-gc', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });
  child.stdin.end([1, 2, 4].map((times) => `${JSON.stringify([title, times * size])}\n`).join(''));
  const costs: Cost[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    costs.push(JSON.parse(line) as Cost);
  }
  return costs;
}

function formatCosts(title: string, costs: readonly Cost[]): string {
  const seconds = costs.map((cost) => cost.seconds.toFixed(2)).join(' / ');
  const memory = Math.max(...costs.map(({ more }) => more)).toFixed(0);
  const ends = [...new Set(costs.map(({ exitCode, code }) => `${exitCode} ${code}`.trim()))];
  return `${title.padEnd(58)} ${seconds} s  +${memory} MiB  ${ends.join(', ')}`;
}

/** `ATTACK_TABLE=1` prints what each attack costs. */
const isPrinted = process.env['ATTACK_TABLE'] !== undefined;

describe('a hostile input takes time in proportion to its size, and ends with a code', () => {
  let program: string;
  const lines: string[] = [];
  beforeAll(async () => {
    ({ program } = await bundle('test/support/measure-attacks.ts', BUILT));
  });
  afterAll(() => {
    if (isPrinted) process.stdout.write(`${lines.join('\n')}\n`);
  });

  it.each(Object.entries({ ...TEXT_ATTACKS, ...FILE_ATTACKS }))('%s', async (title, { size }) => {
    const costs = await measure(program, title, size);
    lines.push(formatCosts(title, costs));
    expect(costs).toHaveLength(3);
    expect(costs.filter(({ exitCode }) => exitCode === 1 || exitCode > 9)).toEqual([]);
    expect(costs.filter(({ seconds }) => seconds > SECONDS)).toEqual([]);
    expect(costs.filter(({ more }) => more > MEMORY)).toEqual([]);
    const [first, , last] = costs.map(({ seconds }) => seconds);
    expect(last).toBeLessThan(Math.max(FLOOR, GROWTH * (first ?? 0)));
  });
});
