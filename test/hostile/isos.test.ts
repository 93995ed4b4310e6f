import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from '../../scripts/bundle.ts';
import type { Measured } from '../support/measure-commands.ts';
import { runMeasured } from '../support/run-measured.ts';
import { HOSTILE_ISOS, writeHostileIso } from './isos.ts';

const BUILT = fileURLToPath(new URL('../built', import.meta.url));
/** The bounds that hold for each command on each image: times the work of `yardstick.ts`, and MiB. */
const EFFORT = 400;
const MEMORY = 300;

const COMMANDS: readonly (readonly string[])[] = [
  ['ls', '-R'],
  ['inspect'],
  ['diff'],
  ['verify'],
  ['rehearse'],
  ['ignition', 'show'],
  ['registry', 'serve', '--port', '0'],
  ['config-iso', 'show'],
  ['config-iso', 'diff'],
];

describe('an ISO that costs more to read than it has bytes', () => {
  let directory: string;
  let program: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-hostile-'));
    ({ program } = await bundle('test/support/measure-commands.ts', BUILT));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const measure = (path: string): Promise<Measured[]> =>
    runMeasured(
      program,
      COMMANDS.map((command) => [...command, path, ...(command.includes('diff') ? [path] : [])]),
    );

  it.each(HOSTILE_ISOS)('is read within bounds, and its fault reported: $title', async (iso) => {
    const path = await writeHostileIso(iso, directory);
    const measured = await measure(path);
    await rm(path);
    const exceeding = measured.filter(
      ({ effort, memory, exitCode }) => effort > EFFORT || memory > MEMORY || exitCode === 1,
    );
    expect(exceeding).toEqual([]);
    expect(measured).toHaveLength(COMMANDS.length); // else one of them did not end
    const told = measured.map(({ stdout, stderr }) => stdout + stderr).join('');
    for (const problem of iso.problems) expect(told).toMatch(problem);
  });
});
