import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../faults/random.ts';
import type { Certificates } from './certificates.ts';
import type { Load } from './customer.ts';
import type { Fleet } from './fleet.ts';
import type { Front } from './front.ts';
import type { Report } from './report.ts';
import type { Store } from './store.ts';

type Options = {
  readonly fleet: Fleet;
  readonly front: Front;
  readonly report: Report;
  readonly random: Random;
  readonly store: Store;
  /** Resolves when all replicas can read from the server of the store. */
  readonly settleStore: () => Promise<void>;
  readonly certificates: Certificates | undefined;
  readonly load: Pick<Load, 'versions' | 'isOver'>;
};

/** What goes wrong, one thing every few seconds, until the run is over. */
export async function startFaults(options: Options): Promise<void> {
  const { fleet, front, report, random, store, load } = options;
  const running = new Map<number | string, Promise<void>>();
  /** One of its kind at a time; others go on meanwhile. */
  const begin = (kind: number | string, act: () => Promise<void> | undefined): void => {
    if (running.has(kind)) return;
    const done = Promise.resolve(act())
      .catch((error: unknown) => {
        report.problem(`${kind}: ${String(error)}`);
      })
      .finally(() => running.delete(kind));
    running.set(kind, done);
  };
  const restart = (signal: 'SIGKILL' | 'SIGTERM'): void => {
    const slot = random.below(fleet.size);
    begin(slot, () => fleet.restart(slot, signal));
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
    () => store.swap(random.pick(load.versions)),
    () => {
      begin('database', () => fleet.crashDatabase?.());
    },
    () => {
      begin('store', () => store.goAway?.(random, options.settleStore));
    },
    () => {
      begin('certificate', () => options.certificates?.renew(fleet));
    },
  ];
  while (!load.isOver()) {
    await sleep(1000 + random.below(4000));
    await random.pick(faults)();
  }
  await Promise.all(running.values());
}
