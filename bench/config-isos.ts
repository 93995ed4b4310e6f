import { mkdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { writeSiteInputs } from './config-iso-inputs.ts';
import { addFigures, median, type Figures } from './figures.ts';
import { bundleBench, runMeasured, runSealift, shell, type Measures } from './run.ts';

/** Five signers and the administrator. */
const KEYS_PER_SITE = 6;
/** Keys by openssl, half of them before and half after the build: a core does not keep its pace. */
const SAMPLE = 600;
const MANY = 10_000;

export type SitesOptions = {
  readonly directory: string;
  /** Sites whose keys are made. */
  readonly count: number;
  readonly runs: number;
};

/** A build with keys that were there before. */
type KeylessBuild = {
  readonly seconds: number;
  /** Of all threads, without the start of the process. */
  readonly cpuSeconds: number;
  readonly sites: number;
  /** Bytes of an ISO beyond those of its files. */
  readonly overhead: number;
  readonly isoSize: number;
  readonly measures: Measures;
};

/**
 * Makes configuration ISOs with keys that were made before; then on all cores with keys of their own,
 * between two samples of what openssl alone allows; then so many that memory would show what is kept
 * of each. What was made is removed last: ext4 takes far longer for new files while it remembers
 * removed ones.
 */
export async function benchSites(figures: Figures, options: SitesOptions): Promise<void> {
  const { directory, count, runs } = options;
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const builds: KeylessBuild[] = [];
  for (let index = 0; index < runs; index++) {
    builds.push(await buildKeyless(directory, count, `keyless-${index}`));
  }
  const { sitesPerSecond, opensslKeysPerSecond } = await benchKeys(options);
  Object.assign(figures.values, { sites: count, sitesPerSecond, opensslKeysPerSecond });
  const many = await buildKeyless(directory, MANY, 'many');
  figures.values['otherCpuMsPerSite'] = median(
    builds.map(({ cpuSeconds, sites }) => (cpuSeconds * 1000) / sites),
  );
  figures.values['validateSeconds'] = await validate(directory);
  addFigures(figures, {
    sitesRatio: { value: (sitesPerSecond * KEYS_PER_SITE) / opensslKeysPerSecond, atLeast: 0.9 },
    otherMsPerSite: {
      value: median(builds.map(({ seconds, sites }) => (seconds * 1000) / sites)),
      atMost: 2,
    },
    sitesPeakRssMiB: { value: many.measures.peakRssMiB, atMost: 300 },
    isoOverheadKiB: { value: many.overhead / 1024, atMost: 400 },
  });
  rmSync(directory, { recursive: true });
}

async function benchKeys({ directory, count }: SitesOptions): Promise<{
  readonly sitesPerSecond: number;
  readonly opensslKeysPerSecond: number;
}> {
  const { table, template } = writeSiteInputs(directory, count);
  const before = await makeOpensslKeys(directory);
  const out = join(directory, 'isos');
  const args = ['config-iso', 'build', table, '--template', template, '--out', out];
  const { seconds, measures } = await runSealift(args, directory);
  const after = await makeOpensslKeys(directory);
  const opensslKeysPerSecond = SAMPLE / (before + after);
  console.log(
    `  sites: ${count} in ${seconds.toFixed(1)} s, ${(count / seconds).toFixed(2)} a second, ` +
      `CPU ${measures.userSeconds.toFixed(1)} + ${measures.systemSeconds.toFixed(1)} s; ` +
      `openssl: ${opensslKeysPerSecond.toFixed(2)} keys a second`,
  );
  return { sitesPerSecond: count / seconds, opensslKeysPerSecond };
}

/** Returns seconds for half of the sample. */
async function makeOpensslKeys(directory: string): Promise<number> {
  const { seconds } = await shell(
    `seq ${SAMPLE / 2} | xargs -P ${availableParallelism()} -I{} openssl genrsa -out /dev/null 2048`,
    directory,
  );
  return seconds;
}

async function buildKeyless(directory: string, count: number, name: string): Promise<KeylessBuild> {
  const { table, template } = writeSiteInputs(directory, count);
  const out = join(directory, name);
  const { stdout, measures } = await runMeasured(
    await bundleBench('build-sites'),
    [table, template, out],
    directory,
  );
  const build = { ...(JSON.parse(stdout) as Omit<KeylessBuild, 'measures'>), measures };
  console.log(
    `  sites: ${build.sites} with keys at hand in ${build.seconds.toFixed(1)} s, ` +
      `${((build.seconds * 1000) / build.sites).toFixed(2)} ms each, ` +
      `CPU ${((build.cpuSeconds * 1000) / build.sites).toFixed(2)} ms each, ` +
      `RSS ${measures.peakRssMiB.toFixed(0)} MiB, an ISO of ${(build.isoSize / 1024).toFixed(0)} KiB ` +
      `with ${(build.overhead / 1024).toFixed(0)} KiB beyond its files`,
  );
  return build;
}

/** Returns seconds for the last table that was written. */
async function validate(directory: string): Promise<number> {
  const template = join(directory, 'template');
  const args = ['config-iso', 'validate', join(directory, 'sites.csv'), '--template', template];
  const { seconds } = await runSealift(args, directory);
  console.log(`  sites: ${MANY} validated in ${seconds.toFixed(1)} s`);
  return seconds;
}
