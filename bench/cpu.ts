import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build, LANES, prepare, type Site } from './build.ts';
import { addFigures, median, type Figures } from './figures.ts';
import { readBare, run, runSealift, type Source } from './run.ts';

const BARE = fileURLToPath(new URL('./bare-work.mjs', import.meta.url));
const GIB = 1024 ** 3;
const RUNS = 5;

/**
 * Core-seconds that a build takes for a GiB of payload, over what no builder can do without: two
 * threads that hash the same pieces at once (blobs, and the whole ISO), the bare reader, a bare write.
 * What the program takes before its first byte (start, plan) is measured by `plan` and taken off.
 */
export async function benchCpu(source: Source, site: Site, figures: Figures): Promise<void> {
  const { directory } = site;
  const gib = source.payloadSize / GIB;
  const split: Record<string, number[]> = {};
  const add = (name: string, seconds: number): void => {
    (split[name] ??= []).push(seconds / gib);
  };
  const bare = async (...args: string[]): Promise<number> =>
    Number((await run(process.execPath, [BARE, ...args])).stdout);
  for (let index = 0; index < RUNS; index++) {
    add('hash twice', await bare('hash', String(source.payloadSize)));
    add('read', (await readBare(source, { directory, connections: LANES })).cpuSeconds);
    add('write', await bare('write', String(source.payloadSize), `${directory}/bare.bin`));
    const work = prepare('cpu-plan', source, site);
    const { measures: plan } = await runSealift(['plan'], work);
    rmSync(work, { recursive: true });
    const { measures } = await build(prepare('cpu', source, site));
    add('start and plan', plan.userSeconds + plan.systemSeconds);
    add('build', measures.userSeconds + measures.systemSeconds);
  }
  const medians = Object.fromEntries(
    Object.entries(split).map(([name, list]) => [name, median(list)]),
  );
  for (const [name, seconds] of Object.entries(medians)) {
    console.log(`  cpu: ${name.padEnd(15)} ${seconds.toFixed(2)} core-seconds per GiB`);
  }
  const of = (name: string): number => medians[name] ?? NaN;
  const baseline = of('hash twice') + of('read') + of('write');
  figures.values['cpuSplit'] = medians;
  addFigures(figures, {
    cpuPerGiB: { value: (of('build') - of('start and plan')) / baseline, atMost: 1.25 },
  });
}
