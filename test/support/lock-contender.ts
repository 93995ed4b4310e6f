import { mkdir, rmdir } from 'node:fs/promises';
import { lockOutput } from './lease.ts';

/**
 * `lock-contender LOCK ROUNDS`: takes a lock as often as it can, and proves each time that nobody else
 * has it: two cannot make one directory. Prints how often it had the lock, `-` for each clash, and dies
 * by SIGKILL with the lock in its hands in the end.
 */
const [lock = '', rounds = ''] = process.argv.slice(2);

for (let round = 0; round < Number(rounds); round++) {
  const unlock = await lockOutput(lock).catch(() => undefined);
  if (!unlock) continue;
  await mkdir(`${lock}.held`).catch(() => process.stdout.write('-'));
  process.stdout.write('+');
  const isLast = round + 1 >= Number(rounds);
  await rmdir(`${lock}.held`);
  if (isLast) process.kill(process.pid, 'SIGKILL');
  await unlock();
}
