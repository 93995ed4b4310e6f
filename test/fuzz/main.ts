import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { packCase } from './kept-case.ts';
import { nameCase, READER_NAMES } from './readers.ts';
import { buildChild, runChild, type ChildEnd } from './run-child.ts';
import type { ReaderName } from './seeds.ts';

/*
 * Gives mutated files to everything that reads bytes of unknown origin. A case fails when it takes more
 * than 5 s of processor time or 500 MiB, or ends with an error without a code. It is then kept in
 * test/fuzz/corpus, where a test reads it from then on, and the exit code is 1.
 *
 *     npm run fuzz -- [--seconds 120] [--reader iso] [--seed N] [--cases FOLDER]
 *
 * The seconds are those of all readers together.
 */

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '120' },
    reader: { type: 'string', multiple: true },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    /** Where failing cases go. */
    cases: { type: 'string', default: fileURLToPath(new URL('corpus', import.meta.url)) },
  },
});

const names = (values.reader ?? READER_NAMES) as readonly ReaderName[];
const unknown = names.filter((name) => !READER_NAMES.includes(name));
if (unknown.length > 0) throw new Error(`readers are ${READER_NAMES.join(', ')}`);
const seed = Number(values.seed);
const directory = mkdtempSync(join(tmpdir(), 'sealift-fuzz-'));
const program = await buildChild();
let found = 0;

/** A case fails by itself, or what was before it made it fail. */
async function confirm(
  reader: ReaderName,
  { index, failure = '', bytes }: ChildEnd,
): Promise<void> {
  if (!bytes) throw new Error(`no bytes of a case of ${reader}: ${failure}`);
  const name = `${nameCase(bytes)}.${index % 6}.br`;
  const path = join(directory, name);
  writeFileSync(path, packCase(bytes));
  const again = await runChild(program, { reader, directory, args: [`${path}#${index % 6}`] });
  if (again.failure === undefined) {
    console.log(`${reader}: case ${index} failed only after others: ${failure.slice(0, 300)}`);
    if (failure.startsWith('memory')) return; // garbage of many cases
  }
  found++;
  const kept = join(values.cases, reader, name);
  mkdirSync(join(values.cases, reader), { recursive: true });
  copyFileSync(path, kept);
  console.log(`${reader}: case ${index} of seed ${seed}, ${bytes.length} bytes: ${failure}`);
  console.log(`  kept as ${kept}`);
}

async function fuzz(reader: ReaderName, seconds: number): Promise<void> {
  const began = Date.now();
  const left = (): number => seconds - (Date.now() - began) / 1000;
  let first = 0;
  do {
    const args = ['--seed', String(seed), '--first', String(first), '--seconds', left().toFixed(1)];
    const end = await runChild(program, { reader, directory, args });
    if (end.failure !== undefined) await confirm(reader, end);
    first = end.index + 1;
  } while (left() > 1);
  console.log(`${reader}: ${first} cases in ${Math.round((Date.now() - began) / 1000)} s`);
}

try {
  for (const name of names) await fuzz(name, Number(values.seconds) / names.length);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
console.log(`${found} cases failed, seed ${seed}`);
process.exitCode = found === 0 ? 0 : 1;
