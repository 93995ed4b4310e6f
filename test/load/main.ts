import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createRandom } from '../faults/random.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';
import { hasTool } from '../support/tools.ts';
import { ask } from './ask.ts';
import { actAsCustomers } from './acts.ts';
import { issueCertificates } from './certificates.ts';
import { call, type Created, type Load } from './customer.ts';
import { startFaults } from './faults.ts';
import { startFront, type Door } from './front.ts';
import { makeReleases, type Variant } from './releases.ts';
import { openFleet, type Fleet } from './fleet.ts';
import { createReport } from './report.ts';
import { CACHE_MIB, openStore, type Store } from './store.ts';
import { ONE_ADDRESS_LIMITS } from '../support/serve-limits.ts';
import { createTenants, type Tenants } from './tenants.ts';

/*
 * Customers of `sealift serve` while everything goes wrong: replicas that are killed or told to end, cut
 * connections, a database and a web server with ISOs that crash, ISOs that take each other's place, certificates
 * that are renewed, URLs that expire. Each byte that a customer gets is compared with what `sealift customize`
 * makes, each status with what the state allows.
 *
 *     npm run test:load -- [--minutes 5] [--seed N] [--customers 12] [--records files|postgres]
 *         [--tls yes|no] [--auth local|none] [--store remote|local]
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    customers: { type: 'string', default: '12' },
    // Default: mostly the first of them, by the seed; PostgreSQL and nginx where they are installed.
    records: { type: 'string' },
    tls: { type: 'string' },
    auth: { type: 'string' },
    store: { type: 'string' },
  },
});

/** What docs/service.md promises of one service. */
const MOST_MIB = 250;
/** Behind the last second of load: what goes on ends, and is read to its end. */
const END_MS = 240_000;

const seed = Number(values.seed);
const random = createRandom(seed);
const directory = mkdtempSync(join(tmpdir(), 'sealift-load-'));
const report = createReport();

const chose = (option: 'records' | 'tls' | 'auth' | 'store', first: string): boolean => {
  const isFirst = random.chance(0.8);
  const { [option]: wanted } = values;
  return wanted === undefined ? isFirst : wanted === first;
};

/** An InfraEnv of each version; the revision in the URL of its image names the ISO. */
type Probes = {
  readonly names: Map<string, Variant>;
  readonly ids: Map<string, string>;
};

const nameIn = (url: string): string => /[?&]revision=\d+-([0-9a-f]+)$/.exec(url)?.[1] ?? '';

async function placeProbes(load: Load, { timelines, swap }: Store, { names, ids }: Probes) {
  const post = async (target: string, body: object): Promise<Created> => {
    const asked = { what: 'probe', method: 'POST', target, body, allowed: [201] };
    return (await call(load, asked)).body as Created;
  };
  for (const [version, timeline] of timelines) {
    for (let turn = 0; turn < 2; turn += 1) {
      const cluster = await post('/clusters/disconnected', {
        name: 'x',
        openshift_version: version,
      });
      const { id = '' } = await post('/infra-envs', {
        ...{ name: 'x', cluster_id: cluster.id, image_type: 'disconnected-iso' },
        pull_secret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}',
      });
      const place = `/infra-envs/${id}/downloads/image-url`;
      const located = await call(load, { what: 'probe', target: place, allowed: [200] });
      const { long_url: url } = located.body as { readonly long_url: string };
      names.set(nameIn(url), timeline.current());
      ids.set(version, id);
      await swap(version);
    }
  }
}

/** Whether a replica reads the ISOs that are elsewhere. */
async function seesStore(load: Load, ids: Probes['ids'], door: Door): Promise<boolean> {
  for (const [version, id] of ids) {
    if (!load.isRemote(version)) continue;
    const { token } = load.tenant;
    const answer = await ask(door, {
      target: `/api/assisted-install/v2/infra-envs/${id}/downloads/image-url`,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
    if (answer.kind !== 'answer' || answer.status !== 200) return false;
    const { url } = JSON.parse(answer.text) as { readonly url: string };
    const first = await ask(door, { target: url, headers: { range: 'bytes=0-9' } });
    if (first.kind !== 'answer' || first.status !== 206) return false;
  }
  return true;
}

function printSummary(fleet: Fleet): void {
  const counts = [...report.counts].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [what, times] of counts) console.log(`  ${what}: ${times}`);
  for (const [line, times] of fleet.listSaid()) console.log(`  said ${times} times: ${line}`);
  console.log(
    `memory of a replica and its workers: ${fleet.peak().toFixed(0)} MiB at most (goal ${MOST_MIB}); ` +
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

async function prepare() {
  const isPostgres = chose('records', 'postgres') && hasPostgres;
  const isTls = chose('tls', 'yes');
  const isLocal = chose('auth', 'local');
  const hasServer = chose('store', 'remote') && hasTool('nginx');
  const records = isPostgres ? 'PostgreSQL, two replicas' : 'files';
  const kind = [isTls && 'TLS', isLocal && 'tokens', hasServer && 'a web server with ISOs'];
  console.log(`seed ${seed}, records in ${[records, ...kind.filter(Boolean)].join(', ')}`);
  const releases = await makeReleases(join(directory, 'releases'));
  const store = await openStore({ directory, releases, report, hasServer });
  writeFileSync(join(directory, 'serve.key'), 'a key of the load test, of 32 bytes or more');
  const certificates = isTls ? await issueCertificates(directory, report) : undefined;
  const tenants: Tenants = isLocal
    ? await createTenants(directory)
    : { args: [], all: [{ name: 'everybody' }], refused: [] };
  const postgres = isPostgres ? await startPostgres() : undefined;
  const tls = certificates ? ['--tls-cert', 'tls.crt', '--tls-key', 'tls.key'] : [];
  const args = [...store.args, ...tenants.args, ...tls, ...ONE_ADDRESS_LIMITS];
  const fleet = await openFleet({ directory, args, report, postgres, certificates });
  const front = await startFront(fleet.listServing, certificates);
  return { releases, store, certificates, tenants, postgres, fleet, front };
}

async function main(): Promise<void> {
  const prepared = await prepare();
  const { releases, store, certificates, tenants, postgres, fleet, front } = prepared;
  const probes: Probes = { names: new Map(), ids: new Map() };
  let until = Infinity;
  const load: Load = {
    ...{ front, report, wasDatabaseAway: fleet.wasDatabaseAway, wasStoreAway: store.wasAway },
    versions: [...releases.versions.keys()] as [string, ...string[]],
    storeOf(version) {
      const timeline = store.timelines.get(version);
      if (timeline) return timeline;
      throw new Error(`no timeline of ${version}`);
    },
    variantOf: (url) => probes.names.get(nameIn(url)),
    isRemote: store.isRemote,
    isOver: () => performance.now() > until || report.problems.length > 100,
    rest: () => sleep(200),
    ...{ tenant: tenants.all[0], tenants: tenants.all, refused: tenants.refused },
    ...{ known: new Map(), removed: new Set() },
  };
  await placeProbes(load, store, probes);
  console.log('the store is ready: load begins');
  until = performance.now() + Number(values.minutes) * 60_000;
  const settleStore = (): Promise<void> =>
    fleet.settle('the store that is back', ({ port }) =>
      seesStore(load, probes.ids, { port, certificates, excuseOf: () => 'no replica' }),
    );
  const faults = startFaults({
    ...{ fleet, front, report, random, store, settleStore, certificates, load },
  });
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
      report.problem('some customers do not end: a hang');
    },
    () => undefined,
  );
  await Promise.race([Promise.all([...customers, faults]), limit]);
  ended.abort();
  clearInterval(progress);
  await checkEnd(load, fleet, store.countOpen());
  await fleet.close();
  fleet.checkCaches(CACHE_MIB << 20);
  await store.close();
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
    ['clusters', '/clusters'],
    ['InfraEnvs', '/infra-envs'],
  ] as const) {
    const ids: string[] = [];
    for (const tenant of load.tenants) {
      const listed = await call(
        { ...load, tenant },
        { what: 'at-the-end', target, allowed: [200] },
      );
      const known = (listed.body ?? []) as Required<Created>[]; // without an answer: a problem by itself
      ids.push(...known.map(({ id }) => id));
    }
    const risen = ids.filter((id) => load.removed.has(id));
    if (risen.length > 0) report.problem(`removed ${what} are listed: ${risen.join()}`);
    report.count(`${what} at the end`, ids.length);
  }
  await fleet.checkIdle(replaced);
  // Of each InfraEnv there may be one for both ISOs of its version.
  await fleet.checkOverlays(2 * (report.counts.get('InfraEnvs at the end') ?? 0));
}

await main();
