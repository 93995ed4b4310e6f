import { readFile } from 'node:fs/promises';
import { isErrno } from '../errno.ts';

/**
 * When a process began, which with its id names it for good: ids are used again. Clock ticks after
 * boot, proc(5), /proc/pid/stat field 22; undefined when there is no such process.
 */
export async function readStartTime(pid: number): Promise<string | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    // Field 2 may hold spaces and brackets.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return undefined;
    throw error;
  }
}
