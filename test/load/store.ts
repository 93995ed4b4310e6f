import { linkSync, mkdirSync, renameSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../faults/random.ts';
import { startNginx } from '../support/nginx.ts';
import type { Releases, Variant } from './releases.ts';
import type { Report } from './report.ts';
import { createAbsences, createTimeline, type Timeline } from './timeline.ts';

/** What replicas serve: a folder, where one ISO takes another's place, and maybe a web server with the others. */
export type Store = {
  readonly args: readonly string[];
  readonly timelines: ReadonlyMap<string, Timeline<Variant>>;
  readonly swap: (version: string) => Promise<void>;
  /** Of ISOs that were replaced, how many may still be open. */
  readonly countOpen: () => number;
  readonly isRemote: (version: string) => boolean;
  /** Whether the server was away in this time, or replicas did not know yet that it was there. */
  readonly wasAway: (from: number, until: number) => boolean;
  /** Its server dies or hangs, and comes back a while later; `settle` resolves when replicas know. */
  readonly goAway?: (random: Random, settle: () => Promise<void>) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** A service keeps an ISO open for so long that was replaced, and looks at that when another one is. */
const REPLACED_MS = 310_000;

/** Less than the ISOs elsewhere have: what was read least lately goes. */
export const CACHE_MIB = 24;

type Options = {
  readonly directory: string;
  readonly releases: Releases;
  readonly report: Report;
  readonly hasServer: boolean;
};

export async function openStore(options: Options): Promise<Store> {
  const { directory, report } = options;
  const { versions } = options.releases;
  const folder = join(directory, 'store');
  mkdirSync(folder);
  const server = options.hasServer ? await openServer(directory, report) : undefined;
  // What is never replaced.
  const isRemote = (version: string): boolean =>
    server !== undefined && versions.get(version)?.length === 1;
  const timelines = new Map<string, Timeline<Variant>>();
  const swaps: number[] = [];
  const put = (version: string, { path }: Variant): void => {
    const to = isRemote(version) && server ? server.folder : folder;
    const aside = join(to, `${version}.aside`);
    linkSync(path, aside);
    renameSync(aside, join(to, `${version}.iso`));
  };
  for (const [version, [first]] of versions) {
    if (!first) continue;
    put(version, first);
    timelines.set(version, createTimeline(first));
  }
  const remote = [...versions.keys()].filter(isRemote);
  return {
    args: [
      ...['--store', folder, '--cache-size', `${CACHE_MIB}MiB`],
      ...remote.flatMap((version) => ['--store', `${server?.origin ?? ''}/${version}.iso`]),
    ],
    timelines,
    async swap(version) {
      const timeline = timelines.get(version);
      const next = versions.get(version)?.find((one) => one !== timeline?.current());
      if (!timeline || !next) return;
      await timeline.change(next, () => {
        put(version, next);
      });
      swaps.push(performance.now());
      report.count('ISOs replaced');
    },
    countOpen: () => swaps.filter((time) => time >= (swaps.at(-1) ?? 0) - REPLACED_MS).length,
    isRemote,
    wasAway: (from, until) => server?.wasAway(from, until) === true,
    ...(server && { goAway: server.goAway }),
    close: async () => server?.close(),
  };
}

type Server = Required<Pick<Store, 'wasAway' | 'goAway' | 'close'>> & {
  readonly origin: string;
  readonly folder: string;
};

async function openServer(directory: string, report: Report): Promise<Server> {
  const place = join(directory, 'nginx');
  const port = await choosePort();
  let nginx = await startNginx(place, port);
  const absences = createAbsences();
  return {
    origin: `http://127.0.0.1:${port}`,
    folder: join(place, 'files'),
    wasAway: absences.had,
    async goAway(random, settle) {
      const end = absences.begin();
      const hangs = random.chance(0.3);
      if (hangs) nginx.pause();
      else await nginx.kill();
      // Replicas ask for 30 seconds before they give up.
      await sleep(random.chance(0.5) ? random.below(5000) : random.below(40_000));
      if (hangs) nginx.resume();
      else nginx = await startNginx(place, port);
      await settle();
      end();
      report.count(hangs ? 'hangs of the store' : 'crashes of the store');
    },
    close: () => nginx.kill(),
  };
}

/** Below those that connections get: while the server is away, nobody takes its port. */
async function choosePort(): Promise<number> {
  for (let port = 20_000 + (process.pid % 10_000); ; port += 1) {
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => {
        resolve(false);
      });
      server.listen(port, '127.0.0.1', () => {
        resolve(true);
      });
    });
    await new Promise((resolve) => server.close(resolve));
    if (isFree) return port;
  }
}
