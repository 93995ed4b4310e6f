import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import type { CpuTimes } from './cpu.ts';

/** Seconds of the processor that one file may take. */
const MOST = 60;
const SHOWN = 10;

/**
 * Reporter: lists the files that took the most processor time (`cpu.ts` measures it), at the end of a run, and in the
 * file that SLOWEST_FILES names.
 */
export default class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const costs = modules.flatMap((module) => {
      const { cpu } = module.meta() as { readonly cpu?: CpuTimes };
      return cpu ? [{ file: module.relativeModuleId, seconds: cpu.worker + cpu.children }] : [];
    });
    if (costs.length === 0) return; // not measured in this suite
    const text = formatSlowest(costs);
    process.stdout.write(`\n${text}`);
    const { SLOWEST_FILES: path } = process.env;
    if (path !== undefined) writeFileSync(path, text);
  }
}

type Cost = { readonly file: string; readonly seconds: number };

/** One line a file, the slowest first, after a line with the sum. */
export function formatSlowest(costs: readonly Cost[]): string {
  const sum = costs.reduce((total, { seconds }) => total + seconds, 0);
  const slowest = [...costs].sort((one, other) => other.seconds - one.seconds).slice(0, SHOWN);
  const lines = slowest.map(({ file, seconds }) => {
    const note = seconds > MOST ? `  more than ${MOST} s: split it, or try fewer cases` : '';
    return `${seconds.toFixed(1).padStart(8)} s  ${file}${note}`;
  });
  return [`processor time of all test files: ${sum.toFixed(0)} s; most:`, ...lines, ''].join('\n');
}
