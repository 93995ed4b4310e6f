import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pLimit from 'p-limit';
import { failsAlone, fuzzReader, type Failure } from './fuzz-reader.ts';
import { OLD_BUGS, type OldBug } from './old-bugs.ts';
import { READER_NAMES } from './readers.ts';
import { buildChild } from './run-child.ts';
import type { ReaderName } from './seeds.ts';

/*
 * Gives mutated files to everything that reads bytes of unknown origin. A case fails when it takes more
 * than 5 s of processor time or 500 MiB, or ends with an error without a code. It is then kept in
 * test/fuzz/corpus, where a test reads it from then on, and the exit code is 1.
 *
 *     npm run fuzz -- [--seconds 120] [--reader iso] [--seed N] [--cases FOLDER]
 *
 * The seconds are those of all readers together.
 *
 *     npm run fuzz -- --old-bugs [--seconds 600] [--reader iso] [--seed N]
 *
 * puts defects of the past back into the program, one after the other, and says how long it takes to
 * find them: at most so many seconds each.
 */

const { values } = parseArgs({
  options: {
    'old-bugs': { type: 'boolean', default: false },
    'seconds': { type: 'string' },
    'reader': { type: 'string', multiple: true },
    'seed': { type: 'string', default: String(Date.now() % 1_000_000_000) },
    /** Where failing cases go. */
    'cases': { type: 'string', default: fileURLToPath(new URL('corpus', import.meta.url)) },
  },
});

const names = (values.reader ?? READER_NAMES) as readonly ReaderName[];
const unknown = names.filter((name) => !READER_NAMES.includes(name));
if (unknown.length > 0) throw new Error(`readers are ${READER_NAMES.join(', ')}`);
const seed = Number(values.seed);
const directory = mkdtempSync(join(tmpdir(), 'sealift-fuzz-'));
const program = await buildChild();
const secondsSince = (start: number): number => Math.round((Date.now() - start) / 1000);

/** One reader for each processor at a time. @returns how many cases failed */
async function fuzzAll(seconds: number): Promise<number> {
  let found = 0;
  const fuzz = async (reader: ReaderName): Promise<void> => {
    const start = Date.now();
    const fuzzing = { reader, program, directory, seed, seconds: seconds / names.length };
    const cases = await fuzzReader(fuzzing, (failure) => {
      found += Number(keep(failure));
      return false;
    });
    console.log(`${reader}: ${cases} cases in ${secondsSince(start)} s`);
  };
  const lane = pLimit(availableParallelism());
  await Promise.all(names.map((reader) => lane(fuzz, reader)));
  console.log(`${found} cases failed, seed ${seed}`);
  return found;
}

/** Not when many cases before it left garbage. */
function keep({ reader, index, what, size, name, path, isAlone }: Failure): boolean {
  const alone = isAlone ? '' : ', but not alone';
  console.log(`${reader}: case ${index} of seed ${seed}, ${size} bytes: ${what}${alone}`);
  if (!isAlone && what.startsWith('memory')) return false;
  const kept = join(values.cases, reader, name);
  mkdirSync(join(values.cases, reader), { recursive: true });
  copyFileSync(path, kept);
  console.log(`  kept as ${kept}`);
  return true;
}

/** @returns how many were not found */
async function findOldBugs(seconds: number): Promise<number> {
  const missed: OldBug[] = [];
  for (const bug of OLD_BUGS.filter(({ reader }) => names.includes(reader))) {
    const { reader } = bug;
    const start = Date.now();
    const old = await buildChild(bug);
    let what: string | undefined;
    const fuzzing = { reader, program: old, directory, seed, seconds };
    const cases = await fuzzReader(fuzzing, async (failure) => {
      const isOld = failure.isAlone && !(await failsAlone(program, { ...failure, directory }));
      if (isOld) what = failure.what.split('\n', 1)[0];
      return isOld;
    });
    rmSync(old);
    if (what === undefined) missed.push(bug);
    const time = `${secondsSince(start)} s, ${cases} cases`;
    console.log(`${reader}, ${bug.name}: ${what ?? 'not found'} (${time})`);
  }
  return missed.length;
}

try {
  const isBad = values['old-bugs']
    ? await findOldBugs(Number(values.seconds ?? 600))
    : await fuzzAll(Number(values.seconds ?? 120));
  process.exitCode = isBad === 0 ? 0 : 1;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
