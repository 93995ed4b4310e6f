import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Postgres } from '../support/postgres.ts';
import { ask } from './ask.ts';
import type { Certificates } from './certificates.ts';
import { readMemory } from '../support/process-tree.ts';
import { DRAIN_MS, listOpenFiles, startReplica, type Replica } from './replica.ts';
import type { Report } from './report.ts';
import { createAbsences } from './timeline.ts';

/** The replicas and their database. */
/** Each run has others. */
const UUIDS = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

export type Fleet = {
  /** Those that take connections. */
  readonly listServing: () => readonly Replica[];
  /** Ends a replica that serves, and starts another in its place. */
  readonly restart: (slot: number, signal: 'SIGKILL' | 'SIGTERM') => Promise<void>;
  readonly size: number;
  /** Resolves when replicas know that it is there again. */
  readonly crashDatabase?: () => Promise<void>;
  readonly wasDatabaseAway: (from: number, until: number) => boolean;
  /** Resolves when each replica that is there has passed, or has ended; those that start later are not asked. */
  readonly settle: (what: string, passes: (replica: Replica) => Promise<boolean>) => Promise<void>;
  /** MiB of a replica with its workers, at most. */
  readonly peak: () => number;
  /** Open files of each replica that has nothing to do, once `checkIdle` has looked. */
  readonly openFiles: readonly number[];
  /** @param replaced how many ISOs may still be open that are not in the store any more */
  readonly checkIdle: (replaced: number) => Promise<void>;
  /** What is cached is bounded. @param most bytes of each replica */
  readonly checkCaches: (most: number) => void;
  /** A replica removes what it has of customers that are gone when it starts. @param most of those that are there */
  readonly checkOverlays: (most: number) => Promise<void>;
  /** What replicas said on standard error, and how often; digits left out. */
  readonly listSaid: () => readonly (readonly [string, number])[];
  readonly close: () => Promise<void>;
};

type Options = {
  readonly directory: string;
  /** Beside those for records. */
  readonly args: readonly string[];
  readonly report: Report;
  readonly postgres: Postgres | undefined;
  readonly certificates: Certificates | undefined;
};

/** A process with no client has its listener, its ISOs, connections to the database and what Node.js holds. */
const MOST_OPEN = 40 + 2 * 32; // with what two workers leave open to pass requests on
/** A process that drains has its time, and a moment to end. */
const ENDING_MS = DRAIN_MS + 20_000;
/** A replica that does not know by then never will. */
const SETTLING_MS = 180_000;
/** A connection of a pool finds out a little later that the database is there again. */
const AFTERMATH_MS = 2000;

export async function openFleet(options: Options): Promise<Fleet> {
  const { directory, args, report, postgres, certificates } = options;
  const database = postgres?.createDatabase();
  const slots: (Replica | undefined)[] = [];
  const all: Replica[] = [];
  const away = createAbsences(AFTERMATH_MS);
  const starting = new Set<{ readonly since: number }>();
  const openFiles: number[] = [];
  let peak = 0;
  const start = async (slot: number): Promise<void> => {
    const data = join(directory, `data-${slot}`);
    mkdirSync(data, { recursive: true });
    const records = database === undefined ? [] : ['--database', database];
    const words = ['--data', data, '--key', 'file:serve.key', ...args, ...records];
    for (let attempt = 0; ; attempt += 1) {
      const start = { since: performance.now() };
      starting.add(start);
      try {
        const replica = await startReplica(directory, words);
        all.push(replica);
        slots[slot] = replica;
        return;
      } catch (error) {
        // Of two files, one may be the renewed one.
        const isTorn = String(error).includes('registry.tls-mismatch');
        const isAway = away.had(start.since, performance.now());
        if (attempt > 5 || !(isAway || isTorn)) throw error;
        await sleep(500);
      } finally {
        starting.delete(start);
      }
    }
  };
  const settle: Fleet['settle'] = async (what, passes) => {
    const since = performance.now();
    const passed = new Set<Replica>();
    const isOpen = (one: Replica | undefined): one is Replica =>
      one !== undefined && one.since <= since && !passed.has(one);
    while (slots.some(isOpen) || [...starting].some((one) => one.since <= since)) {
      for (const one of slots.filter(isOpen)) if (await passes(one)) passed.add(one);
      await sleep(300);
      if (performance.now() - since < SETTLING_MS) continue;
      report.problem(`a replica does not have ${what} after ${SETTLING_MS} ms`);
      return;
    }
  };
  const isReady = async ({ port }: Replica): Promise<boolean> => {
    const door = { port, certificates, excuseOf: () => undefined };
    const answer = await ask(door, { target: '/ready' });
    return answer.kind === 'answer' && answer.status === 200;
  };
  const size = postgres ? 2 : 1;
  for (let slot = 0; slot < size; slot += 1) await start(slot);
  const sampler = setInterval(() => {
    peak = Math.max(peak, ...all.map(({ process: { pid = 0 } }) => readMemory(pid)));
  }, 500);
  return {
    listServing: () => slots.filter((one) => one !== undefined),
    size,
    wasDatabaseAway: away.had,
    settle,
    peak: () => peak,
    openFiles,
    async restart(slot, signal) {
      const replica = slots[slot];
      if (!replica) return;
      slots[slot] = undefined;
      report.count(`replicas ended by ${signal}`);
      const ended = replica.end(signal);
      const code = await Promise.race([ended, sleep(ENDING_MS, 'hang' as const, { ref: false })]);
      if (code === 'hang') {
        report.problem(`a replica has not ended ${ENDING_MS} ms after ${signal}`);
        await replica.end('SIGKILL');
      } else if (signal === 'SIGTERM' && code !== 143 && code !== signal) {
        report.problem(`a replica ended with ${code}: ${replica.said.join('\n')}`);
      }
      await start(slot);
    },
    ...(postgres && {
      async crashDatabase() {
        const end = away.begin();
        await postgres.crash();
        await settle('the database that is back', isReady);
        end();
        report.count('crashes of the database');
      },
    }),
    async checkIdle(replaced) {
      await sleep(2000); // connections end
      for (const [slot, replica] of slots.entries()) {
        if (!replica) continue;
        const files = listOpenFiles(replica);
        openFiles.push(files.length);
        const gone = files.filter((path) => path.endsWith(' (deleted)'));
        if (gone.length > replaced || files.length - gone.length > MOST_OPEN) {
          report.problem(`replica ${slot} has ${files.length} open files: ${files.join(', ')}`);
        }
      }
    },
    checkCaches(most) {
      for (const slot of slots.keys()) {
        const folder = join(directory, `data-${slot}`, 'cache');
        const sizes = readdirSync(folder).map((name) => statSync(join(folder, name)).size);
        const size = sizes.reduce((sum, one) => sum + one, 0);
        if (size > most) report.problem(`replica ${slot} has ${size} bytes in its cache`);
        report.count('MiB in caches at the end', Math.round(size / 2 ** 20));
      }
    },
    async checkOverlays(most) {
      for (const [slot, replica] of slots.entries()) {
        await replica?.end('SIGTERM');
        await start(slot);
        const folder = join(directory, `data-${slot}`, 'overlays');
        const list = (): readonly string[] =>
          readdirSync(folder).filter((name) => !name.endsWith('.tmp'));
        for (let looks = 0; list().length > most && looks < 100; looks += 1) await sleep(100);
        if (list().length <= most) continue;
        report.problem(
          `replica ${slot} keeps ${list().length} overlays, and needs ${most} at most`,
        );
      }
    },
    listSaid() {
      const said = new Map<string, number>();
      for (const line of all.flatMap(({ said }) => said)) {
        const form = line.replaceAll(UUIDS, 'ID').replaceAll(/\d+/g, 'N').replaceAll(directory, '');
        said.set(form, (said.get(form) ?? 0) + 1);
      }
      return [...said];
    },
    async close() {
      clearInterval(sampler);
      for (const replica of slots) await replica?.end('SIGTERM');
    },
  };
}
