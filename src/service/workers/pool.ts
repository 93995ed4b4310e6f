import cluster from 'node:cluster';
import type { KeyPair } from '../../base/http/key-pair.ts';
import { sumAmounts } from '../../base/http/shares.ts';
import { startTimer, waitFor } from '../../base/wait.ts';
import type { WorkerReports } from '../reports.ts';
import {
  forgetInMember,
  killMember,
  type Member,
  startMember,
  tellMember,
  whenEnded,
} from './member.ts';
import type { Amount, ToWorker, WorkerReport, WorkerSettings } from './messages.ts';
import { readAnswers, readReading } from './reports.ts';

/*
 * Owns the workers of `sealift serve`, from the first process: their start and end, what they must forget, and the sums of
 * their reports. The workers share the listening sockets (cluster's SCHED_NONE), so no connection passes through here.
 */

export type PoolOptions = {
  /** Path of the program of a worker. */
  readonly program: string;
  readonly count: number;
  readonly warn: (message: string) => void;
};

export type PoolStart = {
  /** Settings of all workers together. */
  readonly settings: Omit<WorkerSettings, 'part'>;
  /** Receives the answers of workers. */
  readonly reports: WorkerReports;
  /** Requests in flight of each tenant in this process. */
  readonly listTenants: () => ReadonlyMap<string, number>;
};

export type Pool = {
  /** Starts the workers. Resolves when all of them listen. @throws Error with the reason why one does not */
  readonly start: (start: PoolStart) => Promise<void>;
  /** Resolves when no worker answers with what it knew of the record, or of any. */
  readonly forget: (record?: string) => Promise<void>;
  readonly renew: (pair: KeyPair) => void;
  /** Requests in flight of a tenant in all workers. */
  readonly countTenant: (tenant: string) => number;
  /** Resolves when every worker has ended; when the signal is aborted, they end at once. @throws the signal's reason */
  readonly drain: (signal: AbortSignal) => Promise<void>;
};

/** Milliseconds after its start in which a worker that ends is not replaced at once, and the pause then. */
const EARLY = 1000;
/** Milliseconds between the sums that workers get. */
const SUM_EVERY = 100;
/** Milliseconds for workers to close what is still open. */
const CUT_WITHIN = 1000;

export function createPool({ program, count, warn }: PoolOptions): Pool {
  const members = new Set<Member>();
  let started: PoolStart | undefined;
  let pair: KeyPair | undefined;
  let isDraining = false;
  let changes = 0;
  const fork = (listening: (failure?: Error) => void): void => {
    const member = startMember({
      listening,
      ready(each) {
        if (started)
          tellMember(each, { type: 'start', settings: shareSettings(started, count, pair) });
      },
      report(_, report) {
        if (started) passReport(report, started.reports);
      },
      ended(each, why) {
        members.delete(each);
        listening(new Error(`it ended (${why})`));
        if (isDraining) return;
        warn(`a worker process ended (${why}): another one is started`);
        const isEarly = performance.now() - each.since < EARLY;
        startTimer(isEarly ? EARLY : 0, replace);
      },
    });
    members.add(member);
  };
  const replace = (): void => {
    if (isDraining) return;
    fork((failure) => {
      if (failure && !isDraining) warn(`a worker process does not listen: ${failure.message}`);
    });
  };
  return {
    async start(given) {
      started = given;
      cluster.schedulingPolicy = cluster.SCHED_NONE;
      cluster.setupPrimary({ exec: program, args: [], execArgv: [] });
      // One after the other: while a port is busy, they would bind it in turns.
      for (let index = 0; index < count; index += 1) await untilListening(fork);
      keepSummed(members, given, () => isDraining);
    },
    async forget(record) {
      changes += 1;
      const about = record === undefined ? {} : { record };
      const message = { type: 'forget', number: changes, ...about } as const;
      // Also those that do not listen on all of their addresses yet: clients are answered on the first.
      const started = [...members].filter(({ isReady }) => isReady);
      await Promise.all(started.map((member) => forgetInMember(member, message)));
    },
    renew(next) {
      pair = next;
      for (const member of members) tellMember(member, { type: 'renew', pair: next });
    },
    countTenant: (tenant) =>
      sumAmounts([...members].map(({ tenants }) => tenants)).get(tenant) ?? 0,
    drain(signal) {
      isDraining = true;
      return drainMembers(members, signal);
    },
  };
}

const shareSettings = (
  { settings }: PoolStart,
  count: number,
  tls: KeyPair | undefined = settings.tls,
): WorkerSettings => ({
  ...settings,
  connections: Math.ceil(settings.connections / count),
  part: 1 / count,
  ...(tls && { tls }),
});

const untilListening = (fork: (listening: (failure?: Error) => void) => void): Promise<undefined> =>
  waitFor<undefined>(new AbortController().signal, (resolve, reject) => {
    fork((failure) => {
      if (failure) reject(failure);
      else resolve(undefined);
    });
  });

function passReport(report: WorkerReport, { answered, reading }: WorkerReports): void {
  for (const answer of readAnswers(report)) answered(answer);
  for (const each of readReading(report)) reading(each);
}

async function drainMembers(members: ReadonlySet<Member>, signal: AbortSignal): Promise<void> {
  const ended = Promise.all([...members].map(whenEnded));
  for (const member of members) {
    if (member.isReady) tellMember(member, { type: 'drain' });
    else killMember(member);
  }
  try {
    await waitFor<unknown>(signal, (resolve, reject) => {
      ended.then(resolve, reject);
    });
  } catch (error) {
    for (const member of members) tellMember(member, { type: 'cut' });
    const kill = startTimer(CUT_WITHIN, () => {
      members.forEach(killMember);
    });
    await ended;
    kill.stop();
    throw error;
  }
}

/** Tells each worker what owners have in all other processes, whenever that has changed. */
function keepSummed(
  members: ReadonlySet<Member>,
  { settings, listTenants }: PoolStart,
  isOver: () => boolean,
): void {
  const told = new WeakMap<Member, string>();
  const sum = (): void => {
    if (isOver()) return;
    const tenants = sumAmounts([listTenants(), ...[...members].map((each) => each.tenants)]);
    const owners = sumAmounts([...members].map((each) => each.owners));
    for (const member of members) {
      const message: ToWorker = {
        type: 'elsewhere',
        tenants: listOthers(tenants, member.tenants, settings.tenant),
        owners: listOthers(owners, member.owners, settings.each),
      };
      const text = JSON.stringify(message);
      if (!member.isListening || told.get(member) === text) continue;
      told.set(member, text);
      tellMember(member, message);
    }
    startTimer(SUM_EVERY, sum).unref();
  };
  sum();
}

/** Part of a limit from which on an owner's amounts are told. */
const NOTABLE = 1 / 4;

/** Lists the amounts that others hold, of owners who have a good part of what they may have. */
function listOthers(
  sums: ReadonlyMap<string, number>,
  own: ReadonlyMap<string, number>,
  most: number,
): readonly Amount[] {
  return [...sums].flatMap(([owner, sum]): Amount[] => {
    const others = sum - (own.get(owner) ?? 0);
    return sum >= most * NOTABLE && others > 0 ? [[owner, others]] : [];
  });
}
