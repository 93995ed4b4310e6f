import { readFileSync } from 'node:fs';
import { afterAll } from 'vitest';

/**
 * Setup of each test file: measures its processor time, for `slowest-files.ts`. A worker that began with this file has
 * its start counted too.
 */
export type CpuTimes = {
  /** Seconds, user and system, of the process that runs the file. */
  readonly worker: number;
  /** Those of the processes that it started and waited for. */
  readonly children: number;
};

const kept = globalThis as { cpuBefore?: CpuTimes };
const before = kept.cpuBefore ?? { worker: 0, children: 0 };

// eslint-disable-next-line no-empty-pattern -- vitest reads from it that no fixture is wanted
afterAll(({}, { file }) => {
  const now = readTimes();
  kept.cpuBefore = now;
  const cpu = { worker: now.worker - before.worker, children: now.children - before.children };
  Object.assign(file.meta, { cpu });
});

/** Fields 14 to 17 of proc_pid_stat(5), which are in ticks of 10 ms. */
function readTimes(): CpuTimes {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, ...children] = fields
    .slice(11, 15)
    .map((field) => Number(field) / 100);
  return { worker: user + system, children: (children[0] ?? 0) + (children[1] ?? 0) };
}
