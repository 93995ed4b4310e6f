import { linkSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createRandom } from '../faults/random.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';
import { ask } from './ask.ts';
import { actAsCustomers } from './acts.ts';
import type { Load } from './customer.ts';
import { startFaults } from './faults.ts';
import { startFront } from './front.ts';
import { makeReleases, type Releases, type Variant } from './releases.ts';
import { openFleet, type Fleet } from './fleet.ts';
import { createReport } from './report.ts';
import { createTimeline, type Timeline } from './timeline.ts';

/*
 * Customers of `sealift serve` while everything goes wrong: replicas that are killed or told to end, cut
 * connections, a database that crashes, ISOs that take each other's place. Each byte that a customer gets is
 * compared with what `sealift customize` makes, each status with what the state allows.
 *
 *     npm run test:load -- [--minutes 5] [--seed N] [--customers 12] [--records files|postgres]
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    customers: { type: 'string', default: '12' },
    /** Default: by the seed, where PostgreSQL is installed. */
    records: { type: 'string' },
  },
});

const MOST_MIB = 250;
/** Behind the last second of load: what goes on ends, and is read to its end. */
const END_MS = 180_000;

/** A service keeps an ISO open for so long that was replaced, and looks at that when another one is. */
const REPLACED_MS = 310_000;

const seed = Number(values.seed);
const random = createRandom(seed);
const directory = mkdtempSync(join(tmpdir(), 'sealift-load-'));
const report = createReport();

/** The folder that replicas serve, where one ISO takes another's place. */
function openStore({ versions }: Releases): {
  readonly folder: string;
  readonly timelines: ReadonlyMap<string, Timeline<Variant>>;
  readonly swap: (version: string) => void;
  /** Of ISOs that were replaced, how many may still be open. */
  readonly countOpen: () => number;
} {
  const folder = join(directory, 'store');
  mkdirSync(folder);
  const timelines = new Map<string, Timeline<Variant>>();
  const swaps: number[] = [];
  const put = (version: string, { path }: Variant): void => {
    const aside = join(folder, `${version}.aside`);
    linkSync(path, aside);
    renameSync(aside, join(folder, `${version}.iso`));
  };
  for (const [version, [first]] of versions) {
    if (!first) continue;
    put(version, first);
    timelines.set(version, createTimeline(first));
  }
  return {
    folder,
    timelines,
    swap(version) {
      const timeline = timelines.get(version);
      const next = versions.get(version)?.find((one) => one !== timeline?.current());
      if (!timeline || !next) return;
      timeline.change(next, () => {
        put(version, next);
      });
      swaps.push(performance.now());
      report.count('ISOs replaced');
    },
    countOpen: () => swaps.filter((time) => time >= (swaps.at(-1) ?? 0) - REPLACED_MS).length,
  };
}

/** Asks for a URL of each ISO: its revision names it. */
async function learnNames(
  front: Load['front'],
  { timelines, swap }: ReturnType<typeof openStore>,
): Promise<ReadonlyMap<string, Variant>> {
  const names = new Map<string, Variant>();
  const post = async (target: string, body: object): Promise<Record<string, string>> => {
    const answer = await ask(front, {
      method: 'POST',
      target: `/api/assisted-install/v2${target}`,
      body,
    });
    if (answer.kind === 'answer') return JSON.parse(answer.text) as Record<string, string>;
    throw new Error(answer.message);
  };
  for (const [version, timeline] of timelines) {
    for (let turn = 0; turn < 2; turn += 1) {
      const cluster = await post('/clusters/disconnected', {
        name: 'x',
        openshift_version: version,
      });
      const { download_url: url = '' } = await post('/infra-envs', {
        ...{ name: 'x', cluster_id: cluster['id'], image_type: 'disconnected-iso' },
        pull_secret: '{"auths":{}}',
      });
      names.set(nameIn(url), timeline.current());
      swap(version);
    }
  }
  return names;
}

const nameIn = (url: string): string => /[?&]revision=\d+-([0-9a-f]+)$/.exec(url)?.[1] ?? '';

function printSummary(fleet: Fleet): void {
  const counts = [...report.counts].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [what, times] of counts) console.log(`  ${what}: ${times}`);
  for (const [line, times] of fleet.listSaid()) console.log(`  said ${times} times: ${line}`);
  console.log(
    `memory of all processes: ${fleet.peak().toFixed(0)} MiB at most (goal ${MOST_MIB}); ` +
      `open files of each at the end: ${fleet.openFiles.join(', ')}`,
  );
  for (const problem of report.problems) console.log(`\nPROBLEM ${problem}`);
  const count = (what: string): number => report.counts.get(what) ?? 0;
  console.log(
    `\n${count('customers')} customers, ${(count('bytes compared') / 2 ** 30).toFixed(1)} GiB compared, ` +
      `${count('digests checked')} digests checked, ${count('wrong bytes')} wrong bytes, ` +
      `${report.problems.length} problems (--seed ${seed})`,
  );
}

async function main(): Promise<void> {
  const isPostgres =
    hasPostgres && (values.records ?? (random.chance(0.8) ? 'postgres' : 'files')) === 'postgres';
  console.log(`seed ${seed}, records in ${isPostgres ? 'PostgreSQL, two replicas' : 'files'}`);
  const releases = await makeReleases(join(directory, 'releases'));
  const store = openStore(releases);
  writeFileSync(join(directory, 'serve.key'), 'a key of the load test, of 32 bytes or more');
  const postgres = isPostgres ? await startPostgres() : undefined;
  const fleet = await openFleet({ directory, store: store.folder, report, postgres });
  const front = await startFront(fleet.listServing);
  const names = await learnNames(front, store);
  console.log('the store is ready: load begins');
  const until = performance.now() + Number(values.minutes) * 60_000;
  const load: Load = {
    ...{ front, report, wasDatabaseAway: fleet.wasDatabaseAway },
    versions: [...releases.versions.keys()] as [string, ...string[]],
    storeOf(version) {
      const timeline = store.timelines.get(version);
      if (timeline) return timeline;
      throw new Error(`no timeline of ${version}`);
    },
    variantOf: (url) => names.get(nameIn(url)),
    isOver: () => performance.now() > until || report.problems.length > 100,
    rest: () => sleep(200),
    ...{ known: new Set(), removed: new Set() },
  };
  const faults = startFaults({ fleet, front, report, random, swap: store.swap, load });
  const customers = Array.from({ length: Number(values.customers) }, (_, index) =>
    actAsCustomers(load, createRandom(seed + 1 + index)),
  );
  const ended = new AbortController();
  const progress = setInterval(() => {
    const gib = (report.counts.get('bytes compared') ?? 0) / 2 ** 30;
    console.log(`  ${gib.toFixed(1)} GiB compared, ${report.problems.length} problems`);
  }, 60_000);
  const limit = sleep(until - performance.now() + END_MS, undefined, { signal: ended.signal }).then(
    () => {
      report.problem('customers are left that do not end: a hang');
    },
    () => undefined,
  );
  await Promise.race([Promise.all([...customers, faults]), limit]);
  ended.abort();
  clearInterval(progress);
  await checkEnd(load, fleet, store.countOpen());
  await fleet.close();
  front.close();
  await postgres?.stop();
  releases.close();
  printSummary(fleet);
  const isLarge = fleet.peak() > MOST_MIB;
  if (report.problems.length > 0 || isLarge) process.exitCode = 1;
  rmSync(directory, { recursive: true, force: true });
}

/** What was removed is not there, and idle processes hold what they held at first. */
async function checkEnd(load: Load, fleet: Fleet, replaced: number): Promise<void> {
  for (const [what, target] of [
    ['clusters', '/api/assisted-install/v2/clusters'],
    ['InfraEnvs', '/api/assisted-install/v2/infra-envs'],
  ] as const) {
    const answer = await ask(load.front, { target });
    if (answer.kind !== 'answer' || answer.status !== 200) {
      report.problem(`the ${what} are not listed at the end`);
      continue;
    }
    const ids = new Set((JSON.parse(answer.text) as { readonly id: string }[]).map(({ id }) => id));
    const risen = [...ids].filter((id) => load.removed.has(id));
    if (risen.length > 0) report.problem(`removed ${what} are listed: ${risen.join()}`);
    report.count(`${what} at the end`, ids.size);
  }
  await fleet.checkIdle(replaced);
  // Of each InfraEnv there may be one for both ISOs of its version.
  await fleet.checkOverlays(2 * (report.counts.get('InfraEnvs at the end') ?? 0));
}

await main();
