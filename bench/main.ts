import { spawn } from 'node:child_process';
import { existsSync, linkSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeBaseIso } from '../demo/base-iso.ts';
import { build, describe, LANES, prepare, rate, type Built, type Site } from './build.ts';
import { runCatalogs } from './catalogs.ts';
import { benchSites } from './config-isos.ts';
import { planOperators, type OperatorPlan } from './operators.ts';
import { addFigures, median, printFigures, type Figures } from './figures.ts';
import { benchCpu } from './cpu.ts';
import { benchHttps } from './https.ts';
import { benchObject } from './reuse-object.ts';
import { benchReuse } from './reuse.ts';
import { runReferenceChain } from './reference.ts';
import { benchServe } from './serve.ts';
import { benchSlowMedium } from './slow-medium.ts';
import { benchUpgrade } from './upgrade.ts';
import { readBare, runSealift, SEALIFT, shell, startSource, stop, type Source } from './run.ts';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

const { values } = parseArgs({
  options: {
    size: { type: 'string', default: '4GiB' },
    json: { type: 'string' },
    kills: { type: 'string', default: '20' },
    runs: { type: 'string', default: '3' },
    directory: { type: 'string', default: join(tmpdir(), 'sealift-bench') },
    only: {
      type: 'string',
      default: 'copy,http,https,cpu,reference,upgrade,plan,kill,catalogs,operators,sites',
    },
    sites: { type: 'string', default: '1000' },
  },
});

const parts = new Set(values.only.split(','));
requireTools();
const directory = values.directory;
const size = parseSize(values.size);
const runs = Number(values.runs);
const base = join(directory, 'base.iso');
const site: Site = { directory, base };
const figures: Figures = { values: { size, runs }, rows: [] };

/** Says at once what the parts need and the machine has not. */
function requireTools(): void {
  const needed = [
    ...(parts.has('reference') ? ['docker-registry', 'skopeo', 'mkisofs'] : []),
    ...(parts.has('reuse') ? ['xdelta3', 'casync', 'zck', 'zsync', 'docker-registry'] : []),
    ...(parts.has('object') ? ['swift-proxy-server', 'memcached'] : []),
    ...(parts.has('serve') ? ['curl', 'nginx'] : []),
  ];
  const folders = (process.env['PATH'] ?? '').split(':').concat('/usr/sbin');
  const missing = needed.filter((tool) => !folders.some((each) => existsSync(join(each, tool))));
  if (missing.length === 0) return;
  console.error(
    `the bench needs ${missing.join(', ')}: install them, or leave out "reference" with --only`,
  );
  process.exit(6);
}

/** The parts that pour a payload of the size that is asked for. */
async function benchPours(): Promise<void> {
  const source = await startSource({ size, images: 60, own: 4, base });
  console.log(
    `payload ${(source.payloadSize / GIB).toFixed(2)} GiB in ${source.blobs.length} blobs, ${source.images.length} images`,
  );
  try {
    if (parts.has('http')) await benchHttp(source);
    if (parts.has('cpu')) await benchCpu(source, site, figures);
    if (parts.has('copy')) await benchCopy(source);
    if (parts.has('reference')) await benchReference(source);
    if (parts.has('kill')) await benchKills(source);
  } finally {
    await source.stop();
  }
}

/** Builds from the loopback registry, against a reader that neither hashes nor writes. */
async function benchHttp(source: Source): Promise<void> {
  const ratios: number[] = [];
  const builds: Built[] = [];
  for (let index = 0; index < runs; index++) {
    const bare = (await readBare(source, { directory, connections: LANES })).wallSeconds;
    const built = await build(prepare('http', source, site));
    builds.push(built);
    ratios.push(bare / built.pour);
    console.log(
      `  http: bare ${rate(bare, source)}, pour ${rate(built.pour, source)}, ${describe(built)}`,
    );
  }
  const best = builds[0];
  if (!best) return;
  const written = median(builds.map(({ measures, isoSize }) => measures.writtenBytes / isoSize));
  const rss = Math.max(...builds.map(({ measures }) => measures.peakRssMiB));
  figures.values['buildSeconds'] = median(builds.map(({ seconds }) => seconds));
  addFigures(figures, {
    httpRatio: { value: median(ratios), atLeast: 0.2 },
    writtenRatio: { value: written, atMost: 1.01 },
    peakRssMiB: { value: rss, atMost: 300 },
  });
}

/** Pours from local files, against cat of the same bytes. */
async function benchCopy(source: Source): Promise<void> {
  const blobs = join(directory, 'blobs');
  await source.dump(blobs);
  const ratios: number[] = [];
  for (let index = 0; index < runs; index++) {
    const work = prepare('copy', source, site);
    const cache = join(work, '.sealift/cache/blobs/sha256');
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(blobs)) linkSync(join(blobs, name), join(cache, name));
    await dropCaches();
    const cat = await shell('cat blobs/* base.iso > cat.bin && sync cat.bin', directory);
    rmSync(join(directory, 'cat.bin'));
    await dropCaches();
    const built = await build(work);
    ratios.push(cat.seconds / built.pour);
    console.log(
      `  copy: cat ${rate(cat.seconds, source)}, pour ${rate(built.pour, source)}, ${describe(built)}`,
    );
  }
  rmSync(blobs, { recursive: true });
  addFigures(figures, { catRatio: { value: median(ratios), atLeast: 0.9 } });
}

async function benchReference(source: Source): Promise<void> {
  const chain = await runReferenceChain(source, { directory: join(directory, 'reference'), base });
  console.log(`  reference chain: ${JSON.stringify(chain.steps)}`);
  const built = await build(prepare('wall', source, site));
  figures.values['referenceSeconds'] = chain.total;
  figures.values['referenceSteps'] = chain.steps;
  addFigures(figures, { wallRatio: { value: built.seconds / chain.total, atMost: 0.25 } });
}

/**
 * Kills a build at random moments of its pour and lets it continue, and counts what the registry had
 * to hand to its sockets: what was still under way when a build died counts as fetched twice.
 */
async function benchKills(source: Source): Promise<void> {
  const kills = Number(values.kills);
  const work = prepare('kill', source, site);
  const { served: before } = await source.bytesServed();
  let undelivered = 0;
  let random = 12345;
  let done = 0;
  for (let index = 0; index < kills; index++) {
    random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
    const share = (index + random / 2 ** 31) / (kills + 1);
    const lost = await buildUntil(work, before + share * source.payloadSize, source);
    undelivered += lost ?? 0;
    done += Number(lost !== undefined);
  }
  await runSealift(['build', '--output', 'out.iso'], work);
  const { served } = await source.bytesServed();
  const fetched = served - undelivered - before;
  figures.values['kills'] = done;
  figures.values['refetchedBytes'] = fetched - source.payloadSize;
  console.log(
    `  kill: ${done} kills, ${((fetched - source.payloadSize) / MIB).toFixed(1)} MiB fetched twice, ${(undelivered / MIB).toFixed(1)} MiB sent to nobody`,
  );
  addFigures(figures, { refetchRatio: { value: fetched / source.payloadSize, atMost: 1.02 } });
}

/** Kills a build when so many bytes were served; bytes it had not received, or undefined when it was done. */
async function buildUntil(
  work: string,
  bytes: number,
  source: Source,
): Promise<number | undefined> {
  const child = spawn(process.execPath, [SEALIFT, 'build', '--output', 'out.iso'], {
    cwd: work,
    stdio: 'ignore',
  });
  let last = await source.bytesServed();
  while (child.exitCode === null && last.served - last.undelivered < bytes) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    last = await source.bytesServed();
  }
  const isRunning = child.exitCode === null;
  await stop(child);
  return isRunning ? last.undelivered : undefined;
}

async function benchPlan(): Promise<void> {
  const small = await startSource({ size: 64 * MIB, images: 197, own: 4, base });
  try {
    const seconds: number[] = [];
    for (let index = 0; index < runs; index++) {
      const work = prepare('plan', small, site);
      seconds.push((await runSealift(['plan', '-o', 'json'], work)).seconds);
    }
    addFigures(figures, { planSeconds: { value: median(seconds), atMost: 5 } });
  } finally {
    await small.stop();
  }
}

/** Ten catalogs with 5,000 bundles are read and filtered, and the densest upgrade graph is filtered. */
async function benchCatalogs(): Promise<void> {
  const { catalogs, dense } = await runCatalogs(join(directory, 'catalogs'), runs);
  const rss = Math.max(...catalogs.map(({ measures }) => measures.peakRssMiB));
  addFigures(figures, {
    catalogSeconds: { value: median(catalogs.map(({ seconds }) => seconds)), atMost: 3 },
    catalogRssMiB: { value: rss, atMost: 400 },
    denseGraphSeconds: {
      value: median(dense.map(({ filterSeconds }) => filterSeconds)),
      atMost: 0.5,
    },
  });
}

/** Plans 200 images of a release and 190 of operators, each for four architectures and signed. */
async function benchOperators(): Promise<void> {
  const operators = { packages: 14, images: 190 };
  const source = await startSource({ size: 64 * MIB, images: 197, own: 4, base, operators });
  try {
    const plans: OperatorPlan[] = [];
    for (let index = 0; index < runs; index++) {
      plans.push(await planOperators(prepare('operators', source, site), source));
    }
    const repeated = plans.map(
      ({ requests: { manifests, signatureTags } }) => manifests.repeated + signatureTags.repeated,
    );
    addFigures(figures, {
      operatorPlanSeconds: { value: median(plans.map(({ seconds }) => seconds)), atMost: 10 },
      manifestRequestsRepeated: { value: Math.max(...repeated), atMost: 0 },
    });
  } finally {
    await source.stop();
  }
}

/** Both sides start from the disk. */
const dropCaches = (): Promise<unknown> =>
  shell('sync; echo 3 > /proc/sys/vm/drop_caches 2>/dev/null || true', directory);

function report(): void {
  printFigures(figures);
  if (values.json !== undefined) {
    writeFileSync(values.json, `${JSON.stringify(figures.values, null, 2)}\n`);
  }
  rmSync(directory, { recursive: true, force: true });
}

function parseSize(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(GiB|MiB)$/.exec(text);
  if (!match) throw new Error(`--size is "${text}", not like 4GiB`);
  return Math.floor(Number(match[1]) * (match[2] === 'GiB' ? GIB : MIB));
}

rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
await makeBaseIso(base, 32 * MIB);
if (['http', 'cpu', 'copy', 'reference', 'kill'].some((part) => parts.has(part)))
  await benchPours();
if (parts.has('https'))
  await benchHttps({ size, images: 60, own: 4, base }, site, { figures, runs });
if (parts.has('upgrade'))
  await benchUpgrade({ size, images: 60, own: 4, base }, site, { figures, runs });
if (parts.has('serve')) await benchServe(figures, { site, runs });
if (parts.has('reuse')) await benchReuse({ size, images: 60, own: 4, base }, site, figures);
if (parts.has('object')) await benchObject({ size, images: 60, own: 4, base }, site, figures);
if (parts.has('plan')) await benchPlan();
if (parts.has('catalogs')) await benchCatalogs();
if (parts.has('operators')) await benchOperators();
if (parts.has('sites')) {
  const count = Number(values.sites);
  await benchSites(figures, { directory: join(directory, 'sites'), count, runs });
}
// Takes the programs of the boot tests, and long: only when it is asked for.
if (parts.has('slow-medium')) await benchSlowMedium(figures, { directory, size });
report();
