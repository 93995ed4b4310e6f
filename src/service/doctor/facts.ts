import { readFileIfPresent } from '../../base/disk/files.ts';
import type { DoctorMachine } from './machine.ts';

export async function readMachineFacts(): Promise<
  Pick<DoctorMachine, 'node' | 'user' | 'coreLimit'>
> {
  return { node: process.version, user: process.geteuid?.(), coreLimit: await readCoreLimit() };
}

/** The soft limit of core dumps: proc_pid_limits(5). */
async function readCoreLimit(): Promise<number | undefined> {
  const text = (await readFileIfPresent('/proc/self/limits'))?.toString('latin1') ?? '';
  const [, soft] = /^Max core file size +(\S+)/m.exec(text) ?? [];
  if (soft === undefined) return undefined;
  return soft === 'unlimited' ? Infinity : Number(soft);
}
