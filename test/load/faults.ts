import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../faults/random.ts';
import type { Load } from './customer.ts';
import type { Fleet } from './fleet.ts';
import type { Front } from './front.ts';
import type { Report } from './report.ts';

type Options = {
  readonly fleet: Fleet;
  readonly front: Front;
  readonly report: Report;
  readonly random: Random;
  readonly swap: (version: string) => void;
  readonly load: Pick<Load, 'versions' | 'isOver'>;
};

/** What goes wrong, one thing every few seconds, until the run is over. */
export async function startFaults(options: Options): Promise<void> {
  const { fleet, front, report, random, swap, load } = options;
  const restarting = new Map<number, Promise<void>>();
  const restart = (signal: 'SIGKILL' | 'SIGTERM'): void => {
    const slot = random.below(fleet.size);
    if (restarting.has(slot)) return;
    const done = fleet.restart(slot, signal).finally(() => restarting.delete(slot));
    restarting.set(slot, done);
    // Whoever waits at the end is told.
    done.catch(() => undefined);
  };
  const faults: readonly [() => unknown, ...(() => unknown)[]] = [
    () => {
      restart('SIGKILL');
    },
    () => {
      restart('SIGTERM');
    },
    () => {
      report.count('connections cut', front.cut(random));
    },
    () => {
      swap(random.pick(load.versions));
    },
    () => fleet.crashDatabase?.(),
  ];
  while (!load.isOver()) {
    await sleep(1000 + random.below(4000));
    await random.pick(faults)();
  }
  await Promise.all(restarting.values());
}
