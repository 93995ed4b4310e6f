import { readdirSync, readFileSync } from 'node:fs';

/* Figures of a process with all that it started. */

/** Processor time that all threads have had, in milliseconds. */
export function readCpu(pid: number): number {
  let nanoseconds = 0;
  for (const each of listTree(pid)) {
    for (const thread of readdirSync(`/proc/${each}/task`)) {
      const text = readFileSync(`/proc/${each}/task/${thread}/schedstat`, 'latin1');
      nanoseconds += Number(text.split(' ')[0]);
    }
  }
  return nanoseconds / 1e6;
}

/** What is theirs, and their part of what they share, in MiB. A process that has ended has none. */
export const readMemory = (pid: number): number =>
  listTree(pid)
    .map((each) => readOf(each, 'smaps_rollup'))
    .reduce((sum, text) => sum + Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024, 0);

function listTree(pid: number): readonly number[] {
  const children = readOf(pid, `task/${pid}/children`).trim();
  const pids = children.split(' ').filter(Boolean).map(Number);
  return [pid, ...pids.flatMap(listTree)];
}

function readOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1');
  } catch {
    return '';
  }
}
