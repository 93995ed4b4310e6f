import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeBaseIso } from '../demo/base-iso.ts';
import { runReferenceChain } from './reference.ts';
import {
  run,
  runSealift,
  SEALIFT,
  shell,
  startSource,
  stop,
  type SealiftRun,
  type Source,
} from './run.ts';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
const LANES = 8;

const { values } = parseArgs({
  options: {
    size: { type: 'string', default: '4GiB' },
    json: { type: 'string' },
    kills: { type: 'string', default: '20' },
    runs: { type: 'string', default: '3' },
    directory: { type: 'string', default: join(tmpdir(), 'sealift-bench') },
    only: { type: 'string', default: 'copy,http,reference,plan,kill' },
  },
});

type Row = {
  readonly name: string;
  readonly value: number;
  readonly goal: string;
  readonly ok: boolean;
};

/** A measured build; `pour` in seconds. */
type Built = SealiftRun & {
  readonly pour: number;
  readonly isoSize: number;
  /** Bytes read again for the digest of the whole. */
  readonly readBack: number;
};

const parts = new Set(values.only.split(','));
const directory = values.directory;
const size = parseSize(values.size);
const runs = Number(values.runs);
const figures: Record<string, unknown> = { size, runs };
const rows: Row[] = [];

/** Builds from the loopback registry, against a reader that neither hashes nor writes. */
async function benchHttp(source: Source): Promise<void> {
  const list = join(directory, 'blobs.json');
  writeFileSync(list, JSON.stringify(source.blobs));
  const reader = fileURLToPath(new URL('./reader.ts', import.meta.url));
  const ratios: number[] = [];
  const builds: Built[] = [];
  for (let index = 0; index < runs; index++) {
    const bare = Number(
      (await run(process.execPath, ['--import', 'tsx', reader, source.host, String(LANES), list]))
        .stdout,
    );
    const built = await build('http');
    builds.push(built);
    ratios.push(bare / built.pour);
    console.log(`  http: bare ${rate(bare)}, pour ${rate(built.pour)}, ${describe(built)}`);
  }
  const best = builds[0];
  if (!best) return;
  const written = median(builds.map(({ measures, isoSize }) => measures.writtenBytes / isoSize));
  const rss = Math.max(...builds.map(({ measures }) => measures.peakRssMiB));
  figures['buildSeconds'] = median(builds.map(({ seconds }) => seconds));
  add('httpRatio', median(ratios), { atLeast: 0.5 });
  add('writtenRatio', written, { atMost: 1.01 });
  add('peakRssMiB', rss, { atMost: 300 });
}

/** Pours from local files, against cat of the same bytes. */
async function benchCopy(source: Source): Promise<void> {
  const blobs = join(directory, 'blobs');
  await source.dump(blobs);
  const ratios: number[] = [];
  for (let index = 0; index < runs; index++) {
    const work = prepare('copy');
    mkdirSync(join(work, '.sealift/cache/blobs'), { recursive: true });
    symlinkSync(blobs, join(work, '.sealift/cache/blobs/sha256'));
    await dropCaches();
    const cat = await shell('cat blobs/* base.iso > cat.bin && sync cat.bin', directory);
    rmSync(join(directory, 'cat.bin'));
    await dropCaches();
    const built = await build('copy', work);
    ratios.push(cat.seconds / built.pour);
    console.log(`  copy: cat ${rate(cat.seconds)}, pour ${rate(built.pour)}, ${describe(built)}`);
  }
  rmSync(blobs, { recursive: true });
  add('catRatio', median(ratios), { atLeast: 0.9 });
}

async function benchReference(source: Source): Promise<void> {
  const chain = await runReferenceChain(source, { directory: join(directory, 'reference'), base });
  console.log(`  reference chain: ${JSON.stringify(chain.steps)}`);
  const built = await build('wall');
  figures['referenceSeconds'] = chain.total;
  figures['referenceSteps'] = chain.steps;
  add('wallRatio', built.seconds / chain.total, { atMost: 0.25 });
}

/**
 * Kills a build at random moments of its pour and lets it continue, and counts what the registry had
 * to hand to its sockets: what was still under way when a build died counts as fetched twice.
 */
async function benchKills(source: Source): Promise<void> {
  const kills = Number(values.kills);
  const work = prepare('kill');
  const before = await source.bytesServed();
  let random = 12345;
  let done = 0;
  for (let index = 0; index < kills; index++) {
    random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
    const share = (index + random / 2 ** 31) / (kills + 1);
    done += Number(await buildUntil(work, before + share * source.payloadSize, source));
  }
  await runSealift(['build', '--output', 'out.iso'], work);
  const fetched = (await source.bytesServed()) - before;
  figures['kills'] = done;
  figures['refetchedBytes'] = fetched - source.payloadSize;
  console.log(
    `  kill: ${done} kills, ${((fetched - source.payloadSize) / MIB).toFixed(1)} MiB fetched twice`,
  );
  add('refetchRatio', fetched / source.payloadSize, { atMost: 1.05 });
}

/** Kills a build when so many bytes were served; false when it was done before. */
async function buildUntil(work: string, bytes: number, source: Source): Promise<boolean> {
  const child = spawn(process.execPath, [SEALIFT, 'build', '--output', 'out.iso'], {
    ...{ cwd: work, stdio: 'ignore' },
  });
  while (child.exitCode === null && (await source.bytesServed()) < bytes) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const isRunning = child.exitCode === null;
  await stop(child);
  return isRunning;
}

async function benchPlan(): Promise<void> {
  const small = await startSource({ size: 64 * MIB, images: 197, own: 4, base });
  try {
    const seconds: number[] = [];
    for (let index = 0; index < runs; index++) {
      const work = prepare('plan', small);
      seconds.push((await runSealift(['plan', '-o', 'json'], work)).seconds);
    }
    add('planSeconds', median(seconds), { atMost: 5 });
  } finally {
    await small.stop();
  }
}

/** A folder of its own with a configuration, and nothing cached. */
function prepare(name: string, from: Source = source): string {
  const work = join(directory, name);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work);
  writeFileSync(
    join(work, 'appliance-config.yaml'),
    [
      ...['apiVersion: v1beta1', 'kind: ApplianceConfig', 'ocpRelease:', '  version: "4.21.0"'],
      `  url: ${from.pullspec}`,
      `pullSecret: '{"auths":{"${from.host}":{"auth":"YmVuY2g6YmVuY2g="}}}'`,
      'build:',
      '  ignition: embedded',
      `  baseIso: ${base}`,
      `  concurrency: ${LANES}`,
      '',
    ].join('\n'),
  );
  return work;
}

async function build(name: string, work = prepare(name)): Promise<Built> {
  const built = await runSealift(['build', '--output', 'out.iso'], work);
  const told = JSON.parse(readFileSync(join(work, 'out.iso.report.json'), 'utf8')) as {
    stages: { stage: string; milliseconds: number }[];
    bytes: { readBack: number };
  };
  const pour = (told.stages.find(({ stage }) => stage === 'pour ISO')?.milliseconds ?? NaN) / 1000;
  const isoSize = statSync(join(work, 'out.iso')).size;
  rmSync(work, { recursive: true });
  return { ...built, pour, isoSize, readBack: told.bytes.readBack };
}

const rate = (seconds: number): string => `${(source.payloadSize / 1e6 / seconds).toFixed(0)} MB/s`;

const describe = ({ measures, isoSize, readBack }: Built): string =>
  `RSS ${measures.peakRssMiB.toFixed(0)} MiB, written ${(measures.writtenBytes / isoSize).toFixed(4)}, ` +
  `read back ${(readBack / isoSize).toFixed(3)}, CPU ${measures.userSeconds.toFixed(1)} + ${measures.systemSeconds.toFixed(1)} s`;

/** Both sides start from the disk. */
const dropCaches = (): Promise<unknown> =>
  shell('sync; echo 3 > /proc/sys/vm/drop_caches 2>/dev/null || true', directory);

function median(list: readonly number[]): number {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

function add(name: string, value: number, goal: { atLeast?: number; atMost?: number }): void {
  const { atLeast = -Infinity, atMost = Infinity } = goal;
  const text = goal.atLeast === undefined ? `<= ${atMost}` : `>= ${atLeast}`;
  rows.push({ name, value, goal: text, ok: value >= atLeast && value <= atMost });
  figures[name] = value;
}

function report(): void {
  console.log('\nfigure         reached     goal');
  for (const { name, value, goal, ok } of rows) {
    console.log(
      `${name.padEnd(14)} ${value.toFixed(3).padStart(8)}   ${goal.padEnd(8)} ${ok ? 'reached' : 'MISSED'}`,
    );
  }
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify(figures, null, 2)}\n`);
  rmSync(directory, { recursive: true, force: true });
}

function parseSize(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(GiB|MiB)$/.exec(text);
  if (!match) throw new Error(`--size is "${text}", not like 4GiB`);
  return Math.floor(Number(match[1]) * (match[2] === 'GiB' ? GIB : MIB));
}

rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
const base = join(directory, 'base.iso');
await makeBaseIso(base, 32 * MIB);
const source = await startSource({ size, images: 60, own: 4, base });
console.log(
  `payload ${(source.payloadSize / GIB).toFixed(2)} GiB in ${source.blobs.length} blobs, ${source.images.length} images`,
);
try {
  if (parts.has('http')) await benchHttp(source);
  if (parts.has('copy')) await benchCopy(source);
  if (parts.has('reference')) await benchReference(source);
  if (parts.has('kill')) await benchKills(source);
} finally {
  await source.stop();
}
if (parts.has('plan')) await benchPlan();
report();
