import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { digestFile } from '../../src/base/disk/files.ts';
import { attemptBuild, type Attempt, type Kill, type KillSignal } from './attempt.ts';
import { FAULTS, startFaultyFront, type Fault } from './faulty-front.ts';
import { createRandom, type Random } from './random.ts';
import { chooseInputs, createWorld, mountDisk, type Inputs, type World } from './world.ts';

/*
 * Builds of a small world while everything goes wrong: kills, cuts, corrupt bytes, 429 and 5xx answers,
 * slow lines, full disks, edited inputs, on a machine whose processors are all busy. Each build is run
 * again until it ends; its ISO must be the one that a quiet build of the same inputs makes.
 *
 *     npm run test:faults -- [--builds 1000] [--minutes N] [--seed N] [--jobs 2]
 */

const { values } = parseArgs({
  options: {
    builds: { type: 'string', default: '1000' },
    /** Ends after so many minutes, but not before `least` builds. */
    minutes: { type: 'string', default: '600' },
    least: { type: 'string', default: '25' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    jobs: { type: 'string', default: '2' },
    stress: { type: 'string', default: '2' },
  },
});

/** Attempts that meet faults; the ones behind them are quiet and must bring the ISO. */
const FAULTY_ATTEMPTS = 4;
const MAX_ATTEMPTS = 8;
/** The law is 2 s; the rest is for a process to be noticed as ended on a machine this busy. */
const END_LIMIT_MS = 2500;

const seed = Number(values.seed);
const directory = mkdtempSync(join(tmpdir(), 'sealift-faults-'));
const ends = new Map<string, number>();
const met = new Map<Fault, number>();
const endedAfter: number[] = [];
const problems: string[] = [];
/** How long a quiet build takes on this machine, as busy as it is. */
let typicalMs = 4000;
const counts = { builds: 0, attempts: 0, hangs: 0, wrong: 0, uncoded: 0, unfinished: 0, late: 0 };

const count = <K>(map: Map<K, number>, key: K, by = 1): void => {
  map.set(key, (map.get(key) ?? 0) + by);
};

/** Digests of the ISOs of quiet builds. */
function createOracle(world: World): (inputs: Inputs) => Promise<string> {
  const known = new Map<string, Promise<string>>();
  const make = async (inputs: Inputs, name: string): Promise<string> => {
    const folder = join(directory, `quiet-${name.replaceAll(/\W/g, '')}`);
    world.write(folder, world.registry.host, { ...inputs, lanes: 2 });
    const started = performance.now();
    const { kind, stderr } = await attemptBuild(folder, undefined);
    typicalMs = performance.now() - started;
    if (kind !== 'done') throw new Error(`a quiet build failed:\n${stderr}`);
    const digest = await digestFile(join(folder, 'out.iso'));
    rmSync(folder, { recursive: true });
    return digest;
  };
  return (inputs) => {
    const name = JSON.stringify(inputs);
    const digest = known.get(name) ?? make(inputs, name);
    known.set(name, digest);
    return digest;
  };
}

function chooseKill(random: Random): Kill | undefined {
  if (!random.chance(0.6)) return undefined;
  const signal = random.pick<KillSignal>(['SIGKILL', 'SIGKILL', 'SIGINT', 'SIGTERM']);
  return { signal, afterMs: random.below(typicalMs * 1.2), twice: random.chance(0.2) };
}

function note(attempt: Attempt, name: string): void {
  counts.attempts++;
  count(ends, attempt.end);
  if (attempt.endedAfterMs !== undefined) {
    endedAfter.push(attempt.endedAfterMs);
    if (attempt.endedAfterMs > END_LIMIT_MS && attempt.kind === 'killed') counts.late++;
  }
  if (attempt.kind === 'hung') counts.hangs++;
  if (attempt.kind === 'uncoded') counts.uncoded++;
  if (attempt.kind === 'hung' || attempt.kind === 'uncoded') {
    problems.push(`${name}: ${attempt.end}\n${attempt.stderr.slice(-1500)}`);
  }
}

/** One output, run again until it is there. */
async function build(index: number, world: World, oracle: (inputs: Inputs) => Promise<string>) {
  const random = createRandom(seed + index);
  const name = `build ${index} (--seed ${seed + index} --builds 1)`;
  const folder = join(directory, `build-${index}`);
  const disk = random.chance(0.15) ? mountDisk(folder) : undefined;
  const front = await startFaultyFront(world.registry.host, random);
  const faults = FAULTS.filter(() => random.chance(0.5));
  let inputs = chooseInputs(random);
  let isDone = false;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const isFaulty = attempt <= FAULTY_ATTEMPTS;
    if (random.chance(0.3) && isFaulty) inputs = chooseInputs(random);
    disk?.clear();
    world.write(folder, front.host, { ...inputs, lanes: random.pick([1, 2, 8, 64]) });
    const filler = isFaulty ? disk && setTimeout(disk.fill, random.below(typicalMs)) : undefined;
    front.spoil(faults, isFaulty ? random.next() * 0.4 : 0);
    const result = await attemptBuild(folder, isFaulty ? chooseKill(random) : undefined);
    clearTimeout(filler);
    note(result, name);
    if (result.kind !== 'done') continue;
    isDone = true;
    const found = await digestFile(join(folder, 'out.iso'));
    const expected = await oracle(inputs);
    if (found !== expected || existsSync(join(folder, 'out.iso.partial'))) {
      counts.wrong++;
      problems.push(`${name}: the ISO is ${found}, a quiet build's is ${expected}`);
    }
    // A finished build may be built again of edited inputs, over its own output.
    if (!isFaulty || random.chance(0.7)) break;
  }
  if (!isDone) {
    counts.unfinished++;
    problems.push(`${name}: no attempt brought the ISO`);
  }
  counts.builds++;
  for (const [fault, times] of front.counts) count(met, fault, times);
  await front.close();
  disk?.unmount();
  rmSync(folder, { recursive: true, force: true });
}

const startStress = (): ChildProcess =>
  spawn(process.execPath, ['-e', 'for (;;) Math.sqrt(Math.random());'], { stdio: 'ignore' });

const list = (map: ReadonlyMap<string, number>): string =>
  [...map]
    .sort(([, a], [, b]) => b - a)
    .map(([key, times]) => `${key}: ${times}`)
    .join(', ');

async function main(): Promise<void> {
  console.log(`seed ${seed}`);
  const stress = Array.from({ length: Number(values.stress) }, startStress);
  const world = await createWorld(directory);
  try {
    const oracle = createOracle(world);
    await oracle({ key: 0, base: 0, stopRegistry: false });
    const until = performance.now() + Number(values.minutes) * 60_000;
    let next = 0;
    const isTime = (): boolean =>
      next < Number(values.builds) && (next < Number(values.least) || performance.now() < until);
    const work = async (): Promise<void> => {
      while (isTime()) {
        await build(next++, world, oracle);
        if (counts.builds % 10 === 0)
          console.log(`  ${counts.builds} builds, ${counts.attempts} attempts`);
      }
    };
    await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  } finally {
    for (const child of stress) child.kill('SIGKILL');
    await world.close();
  }
  rmSync(directory, { recursive: true, force: true }); // not after an error, which it would hide
}

await main();
const slowest = Math.max(0, ...endedAfter);
console.log(`ends: ${list(ends)}`);
console.log(`faults met: ${list(met)}`);
console.log(
  `${endedAfter.length} times stopped by SIGINT or SIGTERM; the slowest end took ${Math.round(slowest)} ms`,
);
for (const problem of problems) console.log(`\nPROBLEM ${problem}`);
console.log(
  `\n${counts.builds} builds in ${counts.attempts} attempts: ${counts.hangs} hangs, ${counts.wrong} wrong ISOs, ` +
    `${counts.uncoded} failures without a code, ${counts.unfinished} unfinished, ${counts.late} later than ${END_LIMIT_MS} ms after their signal`,
);
const bad = counts.hangs + counts.wrong + counts.uncoded + counts.unfinished + counts.late;
process.exitCode = bad === 0 ? 0 : 1;
